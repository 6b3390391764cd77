"""The verdict's words on drops: what several GPUs felt at once is one drop, and who waited for it is named with it."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.analyse.timeseries.sums import sums_by_key
from gpu_report.catalogue import RULES, UNEXPLAINED, cause_words
from gpu_report.gpu_words import gpu_words, gpus_words
from gpu_report.model import Finding
from gpu_report.wording import length, lower_first

SHOWN_CAUSES = 3  # in one sentence


@dataclass(frozen=True)
class MergedDrop:
    """One drop, felt on some GPUs at once, from the first that fell to the last that rose."""

    cause: str
    span: Span
    gpus: tuple[int | None, ...]
    ids: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """Return how long it took, on the clock and not for each GPU."""
        return self.span[1] - self.span[0]


def merged_drops(findings: Sequence[Finding]) -> list[MergedDrop]:
    """Return the unexpected drops in order of time, those of one cause that overlap on different GPUs as one."""
    merged: list[MergedDrop] = []
    lasting: list[int] = []  # those that the next may overlap: of a month's thousands each is looked at but once
    drops = [f for f in findings if RULES[f.rule].drop and not f.expected]
    for drop in sorted(drops, key=lambda f: f.start_t_s):
        mine = MergedDrop(drop.cause_name or UNEXPLAINED, drop.span, (drop.gpu,), (drop.id,))
        lasting = [n for n in lasting if merged[n].span[1] > drop.start_t_s]
        at = next((n for n in lasting if _is_same(merged[n], mine)), None)
        if at is None:
            lasting.append(len(merged))
            merged.append(mine)
        else:
            merged[at] = _joined(merged[at], mine)
    return merged


def drop_sentences(merged: Sequence[MergedDrop], said: Collection[str] = (), *, several_gpus: bool) -> Iterator[str]:
    """Yield how many drops there were, how long they took, on which GPUs where there are several, and why.

    Where the cause is the only one and `said` holds the ids of all drops, it and the time are not said again.
    """
    noun = "drop" if len(merged) == 1 else "drops"
    took = length(sum(each.seconds for each in merged))
    where = _where(merged) if several_gpus else ""
    count = f"{len(merged):,} unexpected {noun}"
    text = f"{count} lasted {took}{where}"
    causes = {each.cause for each in merged}
    if len(causes) > 1:
        yield f"{text}."
        yield f"Causes: {_by_cause(merged)}."
    else:
        known = all(found in said for each in merged for found in each.ids)
        there = f"There {'was' if len(merged) == 1 else 'were'} {count}{where}"
        yield f"{there}." if known else f"{text}: {lower_first(cause_words(causes.pop()))}."


def waiting_sentence(merged: Sequence[MergedDrop], waits: Sequence[Finding]) -> str:
    """Return who waited for the GPU of the one drop meanwhile, empty where that is not what happened."""
    if len(merged) != 1 or not waits:
        return ""
    (start_s, end_s), gpus = merged[0].span, sorted({f.gpu for f in waits if f.gpu is not None})
    if any(f.gpu in merged[0].gpus or f.start_t_s >= end_s or f.end_t_s <= start_s for f in waits):
        return ""
    who = gpu_words(gpus[0]) if len(gpus) == 1 else f"{len(gpus)} GPUs"
    gpus_of_drop = sorted(gpu for gpu in merged[0].gpus if gpu is not None)
    for_whom = gpus_words(gpus_of_drop) or "it"
    return f"Meanwhile {who} waited for {for_whom}: nvidia-smi shows this wait as 100 % busy."


def _is_same(merged: MergedDrop, other: MergedDrop) -> bool:
    overlap = merged.span[0] < other.span[1] and other.span[0] < merged.span[1]
    return merged.cause == other.cause and overlap and not set(merged.gpus) & set(other.gpus)


def _joined(merged: MergedDrop, other: MergedDrop) -> MergedDrop:
    span = min(merged.span[0], other.span[0]), max(merged.span[1], other.span[1])
    return MergedDrop(merged.cause, span, (*merged.gpus, *other.gpus), (*merged.ids, *other.ids))


def _where(merged: Sequence[MergedDrop]) -> str:
    gpus = {gpu for each in merged for gpu in each.gpus}
    if len(gpus) == 1:
        return f" on {gpu_words(gpus.pop())}"
    alike = all(set(each.gpus) == gpus for each in merged)
    return f" on {len(gpus)} GPUs at once" if alike else f" on {len(gpus)} GPUs"


def _by_cause(merged: Sequence[MergedDrop]) -> str:
    """Return the causes of drops in words with what each took, the one that took most first; of many the first two."""
    took = sums_by_key((each.cause, each.seconds) for each in merged)
    ordered = sorted(took, key=lambda name: -took[name])
    shown = ordered if len(ordered) <= SHOWN_CAUSES else ordered[: SHOWN_CAUSES - 1]
    said = [f"{length(took[name])} {lower_first(cause_words(name))}" for name in shown]
    rest_s = sum(took[name] for name in ordered[len(shown) :])
    return ", ".join([*said, *([f"{length(rest_s)} others"] if rest_s else [])])

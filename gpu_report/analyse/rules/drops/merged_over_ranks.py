"""Falls of the GPUs of one training that wait for their loaders in turn: one event, whichever rank was the latest."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from statistics import median

from gpu_report.analyse.causes.confidence import LIKELY
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.catalogue import CAUSES, RULES
from gpu_report.gpu_words import gpus_words
from gpu_report.model import Advice, Finding, InsideEpoch, InsideRun
from gpu_report.wording import about_length

Key = tuple[int, str, tuple[Advice, ...]]


def merged_over_ranks(context: Context, found: Sequence[Finding]) -> list[Finding]:
    """Return findings, falls of several ranks with one cause and one advice against it as one.

    In each step all ranks wait for the latest, so that each of them shows a part of what the training lost. Not where
    nobody knows what the ranks waited for data.
    """
    groups: dict[Key, list[Finding]] = {}
    for finding in found:
        training = context.training_at(finding.start_t_s, finding.gpu)
        if training is not None and training.ranks > 1 and _is_of_loader(finding):
            groups.setdefault((id(training), finding.cause_name, finding.advice), []).append(finding)
    joined = {id(each[0]): (one, each) for each in groups.values() for one in _joined(context, each)}
    parts = {id(part) for _, each in joined.values() for part in each}
    return [joined[id(f)][0] if id(f) in joined else f for f in found if id(f) in joined or id(f) not in parts]


def _is_of_loader(finding: Finding) -> bool:
    cause = finding.cause
    is_sure = cause is not None and CAUSES[cause.name].is_input and cause.confidence >= LIKELY
    return RULES[finding.rule].fall and not finding.expected and is_sure and bool(finding.advice)


def _joined(context: Context, falls: Sequence[Finding]) -> Iterator[Finding]:
    """Yield the one finding of falls that came and went on several GPUs; nothing of those of one, or at once."""
    gpus = tuple(sorted({each.gpu for each in falls if each.gpu is not None}))
    training = context.training_at(falls[0].start_t_s, falls[0].gpu)
    span = min(each.start_t_s for each in falls), max(each.end_t_s for each in falls)
    lost_s = (_waited_more_s(training, span) or 0.0) if training is not None else 0.0
    if training is None or len(gpus) < 2 or len(falls) <= len(gpus) or lost_s <= 0:
        return
    longest, duration_s = max(falls, key=lambda each: each.duration_s), span[1] - span[0]
    level_pct = longest.level_pct or 100.0
    waited = f"{gpus_words(sorted(training.gpus))} waited for data in turn, {about_length(lost_s)} in all"
    yield replace(
        longest,
        rule="slowdown",
        severity="warning",
        gpu=None,
        gpus=tuple(sorted(training.gpus)),
        start_t_s=span[0],
        end_t_s=span[1],
        summary=f"{waited} within {about_length(duration_s)}",
        at_boundary=False,
        level_pct=level_pct,
        low_pct=level_pct * max(1 - lost_s / duration_s, 0.0),
        evidence=(
            *evidence(
                ("falls of utilisation in it, on all GPUs", float(len(falls)), ""),
                ("waits for data of all ranks, more than in other epochs", lost_s, "s"),
            ),
            *(each for each in longest.evidence if each.key),
        ),
        lost_gpu_s=lost_s * len(training.gpus),
    )


def _waited_more_s(training: Training, span: Span) -> float | None:
    """Return what all ranks together waited longer for data (s) in the epochs of a span than in others.

    No more than these epochs took longer: ranks that wait at the same time wait once. None where it is not known of all
    of them, or there are no others.
    """
    ranks = training.rank_group.ranks if training.rank_group is not None else ()
    waits = [_more_s(rank, span, lambda epoch, _: epoch.data_wait_s) for rank in ranks]
    lengths = [_more_s(rank, span, lambda epoch, end_s: end_s - epoch.start_t_s) for rank in ranks]
    known, longer = ([each for each in every if each is not None] for every in (waits, lengths))
    return min(sum(known), max(longer)) if len(known) == training.ranks else None


def _more_s(rank: InsideRun, span: Span, seconds_of: Callable[[InsideEpoch, float], float]) -> float | None:
    """Return how many more seconds of a kind the epochs of a span had than others; None where there are no others."""
    cover = interval_cover([span])
    ended = [(each, each.end_t_s) for each in rank.epochs[1:] if each.end_t_s]
    epochs = [(seconds_of(each, end_s), (each.start_t_s, end_s)) for each, end_s in ended]
    within = [seconds for seconds, lay in epochs if cover.touches(lay)]
    others = [seconds for seconds, lay in epochs if not cover.touches(lay)]
    return sum(within) - len(within) * median(others) if within and others else None

"""The verdict's words on a bad end: what happened, what prevents it, and how to resume."""

from collections.abc import Iterator, Sequence

from gpu_report.analyse.timeline.thresholds import ENDED_TOGETHER_S
from gpu_report.catalogue import CAUSES, HUNG_KEY, RULES, WAITING_FOR_PEER
from gpu_report.model import Advice, Ending, Finding, Sentence
from gpu_report.wording import ending_words, lower_first, upper_first


def lost(findings: Sequence[Finding]) -> Iterator[Sentence]:
    """Yield the first GPU that the driver lost: before the end of a training, which follows from it."""
    first = min((f for f in findings if f.rule == "gpu-lost"), key=lambda f: f.start_t_s, default=None)
    if first:
        yield Sentence("lost", f"{upper_first(first.summary)}.", (first.id,))
        yield from _prevented(first.advice, first.id)


def ended_badly(findings: Sequence[Finding], ending: Ending | None) -> Iterator[Sentence]:
    """Yield how a training ended that came to no good end, what prevents that, and how to resume it."""
    ended = next((f for f in _last_ends(findings) if f.severity != "info"), None)
    if ended is None:
        return
    grew = [f for f in findings if ran_out_before(f, ended)]
    if grew:  # what to do about it is the news: that it ended so, its traceback said
        yield from _keep_less(grew, ended)
    yield Sentence("ended", f"{upper_first(ended.summary)}{_where(ended, ending)}.", (ended.id,))
    if not grew:
        yield from _prevented(ended.advice, ended.id)
    yield from _resumed(ended, after="Then " if grew or any(each.short for each in ended.advice) else "")


def _keep_less(grew: Sequence[Finding], ended: Finding) -> Iterator[Sentence]:
    """Yield what not to keep; how much memory grew where nobody knows what kept it, for that says it, too."""
    instead = next((each for each in ended.advice if each.short), None)  # less memory only delays it
    named = next((each for f in grew for each in f.advice), None)
    text = named.short if named is not None else CAUSES["memory-growth"].always
    yield Sentence("prevent", f"{text}.", tuple(f.id for f in grew), "memory-growth", named, replaces=instead)
    if named is None:
        yield from (Sentence("grew", f"{f.summary}.", (f.id,)) for f in grew)


def interrupted(findings: Sequence[Finding]) -> Iterator[Sentence]:
    """Yield that somebody stopped a training by hand, who knows it, and how to resume it."""
    stopped = next((f for f in _last_ends(findings) if f.severity == "info"), None)
    if stopped is not None:
        yield Sentence("ended", f"{upper_first(stopped.summary)}.", (stopped.id,))
        yield from _resumed(stopped)


def resumed(findings: Sequence[Finding]) -> Iterator[Sentence]:
    """Yield how a training had ended that was resumed since, and what keeps it from ending so again: the last time."""
    ended = max((f for f in findings if f.was_resumed), key=lambda f: f.end_t_s, default=None)
    if ended is not None:
        yield Sentence("resumed", f"{upper_first(ended.summary)}.", (ended.id,))
        yield from _prevented(ended.advice, ended.id)


def in_hang(findings: Sequence[Finding]) -> frozenset[str]:
    """Return the ids of waits that were the hang in which a training ended: its end has said that, with its length."""
    hangs = [(f.end_t_s - (f.number(HUNG_KEY) or 0.0), f.end_t_s) for f in findings if f.number(HUNG_KEY)]
    waits = [f for f in findings if f.rule == WAITING_FOR_PEER or RULES[f.rule].drop]
    middles = {f.id: (f.start_t_s + f.end_t_s) / 2 for f in waits}  # processes of one training end one after the other
    return frozenset(f.id for f in waits if any(start <= f.start_t_s and middles[f.id] < end for start, end in hangs))


def stopped_early(ending: Ending | None) -> Iterator[Sentence]:
    """Yield that the last training came to fewer epochs than were asked for, since none got better any more."""
    if ending is not None and ending.name == "early stop":
        yield Sentence("stopped early", f"{ending_words(ending, 'The training')}.")


def ran_out_before(finding: Finding, ended: Finding) -> bool:
    """Tell whether memory grew until there was no more of it when a training ended."""
    return finding.ran_out and finding.start_t_s < ended.end_t_s


def _last_ends(findings: Sequence[Finding]) -> list[Finding]:
    """Return how trainings ended that were not resumed."""
    return [f for f in findings if RULES[f.rule].ending and not f.was_resumed]


def _where(ended: Finding, ending: Ending | None) -> str:
    """Return in which epoch a training ended, in brackets, where its summary does not say it."""
    if ending is None or ending.epoch is None or ended.names_epoch or ended.rule != "run-ended":
        return ""
    if ended.phase == "final evaluation":
        return " (in the final evaluation, after all of its epochs)"
    if ending.t_s > ended.end_t_s + ENDED_TOGETHER_S:  # that is the ending of a later training
        return "" if ended.epoch is None else f" (epoch {ended.epoch})"
    of = f" of {ending.epochs}" if ending.epochs else ""
    return f" ({'after ' if ending.whole_epochs else ''}epoch {ending.epoch}{of})"


def _prevented(advice: Sequence[Advice], found: str) -> Iterator[Sentence]:
    """Yield the first thing to do that prevents it, where there is one that can be said in a sentence."""
    yield from (Sentence("prevent", f"{a.short}.", (found,), advice=a) for a in [a for a in advice if a.short][:1])


def _resumed(ended: Finding, after: str = "") -> Iterator[Sentence]:
    """Yield how to resume the training, where that is known; `after` what else was done, which is to be said before."""
    for advice in ended.advice:
        if advice.resume:
            text = f"{after}{lower_first(advice.text) if after else advice.text}."
            yield Sentence("resume", text, (ended.id,), advice=advice)

"""Rule: a training that took long to begin, or never did: which part of its start-up, and in which lines."""

from collections.abc import Iterator, Sequence

from gpu_report.analyse.causes.confidence import CERTAIN
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.timeline.ranks import RankGroup
from gpu_report.analyse.timeseries.intervals import Span, length_s, union
from gpu_report.catalogue import LOADER
from gpu_report.model import Cause, Finding, Phase

FIRST_BATCH = "first batch"
# What people call the parts of a start-up, as callbacks tell them.
WHAT = {FIRST_BATCH: "was busy with its first batch", "data set": "scanned its data set", "model": "built its model"}
WAITED = "waited for its first batch"
OTHERWISE = "was set up"


def slow_starts(context: Context) -> list[Finding]:
    """Report the longest part of a start-up, where it takes SLOW_START_S or more and SLOW_START_SHARE of the training.

    A training that never began has nothing else to be looked at: that is a warning, and otherwise a note.
    """
    return [finding for training in context.rank_groups for finding in _of_training(context, training)]


def _of_training(context: Context, training: RankGroup) -> Iterator[Finding]:
    parts: dict[str, list[Phase]] = {}
    for phase in training.main.phases:
        if phase.name == "startup":
            parts.setdefault(phase.detail, []).append(phase)
    began = any(phase.name != "startup" for phase in training.main.phases)
    longest = max(parts, key=lambda detail: _seconds(parts[detail]), default=None)
    crashed = training.crashed is not None and not training.is_interrupted
    if longest is None or (crashed and not began):  # what ended it says more
        return
    took_s, whole_s = _seconds(parts[longest]), training.end_t_s - training.start_t_s
    if took_s >= max(th.SLOW_START_S, th.SLOW_START_SHARE * whole_s):
        spans = union([phase.span for phase in parts[longest]])
        yield _finding(context, longest, spans, took_s, began=began)


def _seconds(phases: Sequence[Phase]) -> float:
    return length_s([phase.span for phase in phases])


def _finding(context: Context, part: str, spans: Sequence[Span], took_s: float, *, began: bool) -> Finding:
    waited = part == FIRST_BATCH and _in_loader(context, spans)
    what = WAITED if waited else WHAT.get(part, OTHERWISE)
    text = f"Slow start: the training {what} for {took_s:.0f} s"
    longest = max(spans, key=lambda span: span[1] - span[0])
    return context.finding(
        "slow-start",
        "info" if began else "warning",
        longest,
        text if began else f"The training never began: it {what} for {took_s:.0f} s",
        epoch=None,
        phase="startup",
        evidence=evidence((f"the training {what}", took_s, "s")),
        cause=Cause("startup", CERTAIN, f"it {what}"),
        waited_for=LOADER if waited else "",
    )


def _in_loader(context: Context, spans: Sequence[Span]) -> bool:
    """Tell whether stacks show the main process in its loader for most of some spans."""
    waited_s = noted_s = 0.0
    for each in context.signals.idle_stacks:
        if not each.process.is_worker:
            rows, share = each.within(spans)
            seconds = each.seconds[rows] * share
            noted_s += float(seconds.sum())
            waited_s += float(seconds[each.waits[rows]].sum())
    return waited_s > noted_s / 2

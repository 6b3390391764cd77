"""Rule: a training that took long to begin, or never did: which part of its start-up, and in which lines."""

from collections.abc import Iterator, Sequence

from gpu_report.analyse.causes.confidence import CERTAIN
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.timeline.callbacks import FROM_CALLBACKS
from gpu_report.analyse.timeline.ranks import RankGroup
from gpu_report.analyse.timeseries.intervals import Span, length_s, union
from gpu_report.catalogue import LOADER
from gpu_report.model import Cause, Finding, Phase

FIRST_BATCH = "first batch"
# What people call the parts of a start-up, as callbacks tell them.
BEFORE_YOLO = "before YOLO"
WHAT = {
    BEFORE_YOLO: "ran imports and other code before YOLO",
    FIRST_BATCH: "was at its first batch",
    "data set": "prepared its data set",
    "model": "built its model",
}
WAITED, WORKED = "waited for its first batch", "worked on its first batch"
OTHERWISE = "was set up"


def slow_starts(context: Context) -> list[Finding]:
    """Report the longest part of a start-up, where it takes SLOW_START_S or more and SLOW_START_SHARE of the training.

    Of what comes before YOLO it takes SLOW_BEFORE_S.

    A training that never began has nothing else to be looked at: that is a warning, and otherwise a note. So is a
    start-up that still goes on: it may be compiling its model.
    """
    return [finding for training in context.rank_groups for finding in _of_training(context, training)]


def _of_training(context: Context, training: RankGroup) -> Iterator[Finding]:
    parts: dict[str, list[Phase]] = {}
    for phase in (*_before_yolo(context, training), *training.main.phases):
        if phase.name == "startup":
            parts.setdefault(phase.detail, []).append(phase)
    began = any(phase.name != "startup" for phase in training.main.phases)
    longest = max(parts, key=lambda detail: _seconds(parts[detail]), default=None)
    crashed = training.crashed is not None and not training.is_interrupted
    if longest is None or (crashed and not began):  # what ended it says more
        return
    took_s, whole_s = _seconds(parts[longest]), training.end_t_s - training.start_t_s
    least_s = th.SLOW_BEFORE_S if longest == BEFORE_YOLO else th.SLOW_START_S
    if took_s >= max(least_s, th.SLOW_START_SHARE * whole_s):
        spans = union([phase.span for phase in parts[longest]])
        over = training.main.ended is not None or took_s >= th.HANG_FIRST_S
        yield _finding(context, longest, spans, took_s, "began" if began else "over" if over else "going on")


def _before_yolo(context: Context, training: RankGroup) -> Iterator[Phase]:
    """Yield the time from the start of the command to the first thing that YOLO reported, of its first training.

    A command that used the GPU in it did something else first.
    """
    first_s = min(each.start_t_s for each in context.rank_groups)
    started = [event.t_s for event in context.run.events if event.kind == "command_started" and event.t_s < first_s]
    if training.start_t_s == first_s and started and not context.worked((started[-1], first_s)):
        yield Phase("startup", None, started[-1], first_s, FROM_CALLBACKS, BEFORE_YOLO)


def _seconds(phases: Sequence[Phase]) -> float:
    return length_s([phase.span for phase in phases])


def _finding(context: Context, part: str, spans: Sequence[Span], took_s: float, state: str) -> Finding:
    in_loader = _in_loader(context, spans) if part == FIRST_BATCH else None
    what = WHAT.get(part, OTHERWISE) if in_loader is None else WAITED if in_loader else WORKED
    text = {
        "began": "The training",
        "over": "The training never began: it",
        "going on": "The training has not begun: it",
    }
    longest = max(spans, key=lambda span: span[1] - span[0])
    return context.finding(
        "slow-start",
        "warning" if state == "over" else "info",
        longest,
        f"{text[state]} {what} for {took_s:.0f} s",
        epoch=None,
        phase="startup",
        evidence=evidence((f"the training {what}", took_s, "s"), *_cpu(context, longest)),
        cause=Cause("startup", CERTAIN, f"it {what}"),
        waited_for=LOADER if in_loader else "",
    )


def _cpu(context: Context, span: Span) -> Iterator[tuple[str, float | None, str]]:
    """Yield the CPU that the processes of the training used meanwhile."""
    gpu = next((series.gpu for series in context.series), 0)
    signals = context.signals.of(gpu, *span)
    yield "CPU of the main process", signals.within("main_cpu_pct"), "% of a core"
    yield "CPU of all workers", signals.within("workers_cpu_pct"), "% of a core"
    yield "CPU, all cores", signals.within("cpu_pct"), "%"


def _in_loader(context: Context, spans: Sequence[Span]) -> bool | None:
    """Tell whether stacks show the main process in its loader for most of some spans, None where there are none."""
    waited_s = noted_s = 0.0
    for each in context.signals.idle_stacks:
        if not each.process.is_worker:
            rows, share = each.within(spans)
            seconds = each.seconds(rows) * share
            noted_s += float(seconds.sum())
            waited_s += float(seconds[each.waits[rows]].sum())
    return waited_s > noted_s / 2 if noted_s > 0 else None

"""Rules: a validation or a checkpoint that took far longer than its siblings, or in which all work stopped for a while.

Of epochs seen from outside only stops are judged: a longer validation is a drop like any other there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gpu_report.analyse.causes import explain
from gpu_report.analyse.causes.confidence import LIKELY
from gpu_report.analyse.causes.thresholds import IDLE_CPU_PCT
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules.drops.at_epoch_end import reaches_into_training, slower_by_clock
from gpu_report.analyse.rules.drops.first_validation import ONCE_WORDS, takes_longer_once
from gpu_report.analyse.signals.gpu.utilisation_drops import Drop
from gpu_report.analyse.timeline.epoch_ends import EpochEnd
from gpu_report.analyse.timeline.siblings import SiblingLength, SiblingLengths
from gpu_report.analyse.timeline.thresholds import FIRST_VALIDATION_EXTRA_S, LOW_PCT
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats
from gpu_report.analyse.timeseries.intervals import IntervalIndex, Span, intersect, length_s, runs_of
from gpu_report.analyse.timeseries.thresholds import READING_SLACK
from gpu_report.model import Cause, Finding
from gpu_report.wording import length

VALIDATION = "validation"
SCATTERS = 1.1  # times the length of others: as a validation may be by itself
ENDS_WITH_S = 1.0  # a training's last row may be stamped a moment after its end


@dataclass(frozen=True)
class _EpochEndPart:
    """A part of every epoch's end: which rule it is, and where it lies, None where it did not take place."""

    rule: str
    name: str
    spans: tuple[Span | None, ...]


def slow_epoch_ends(context: Context) -> list[Finding]:
    """Report validations and checkpoints that their siblings do not explain, with what held them up."""
    found: list[Finding] = []
    for training in context.trainings:
        first, last = training.span
        mine = [e for e in context.epoch_ends.all if first <= e.row.row_t_s <= last + ENDS_WITH_S]
        reported, seen = [e for e in mine if e.from_callbacks], [e for e in mine if not e.from_callbacks]
        gpu = min(training.gpus, default=None)
        if gpu is not None:
            found += [finding for part in _parts(reported) for finding in _slow(context, gpu, reported, part)]
            found += _slow(context, gpu, seen, _seen_validations(context, seen))
    return found


def _seen_validations(context: Context, ends: Sequence[EpochEnd]) -> _EpochEndPart:
    """Return validations as they were seen from outside, where somebody watched the trainer's processes."""
    by_end = {phase.end_t_s: phase.span for phase in context.phases if phase.name == "validation"}
    watched = context.cached(_host_idle) is not None
    return _EpochEndPart(
        "slow-validation", VALIDATION, tuple(by_end.get(e.row.row_t_s) if watched else None for e in ends)
    )


def _parts(ends: Sequence[EpochEnd]) -> tuple[_EpochEndPart, _EpochEndPart]:
    validations = tuple(None if e.pause is None or e.cut else (e.pause[0], e.row.row_t_s) for e in ends)
    checkpoints = tuple(None if e.pause is None or e.cut else (e.row.row_t_s, e.pause[1]) for e in ends)
    return (
        _EpochEndPart("slow-validation", VALIDATION, tuple(map(_lasting, validations))),
        _EpochEndPart("slow-checkpoint", "checkpoint", tuple(map(_lasting, checkpoints))),
    )


def _lasting(span: Span | None) -> Span | None:
    return span if span is not None and span[0] < span[1] else None


def _slow(context: Context, gpu: int, ends: Sequence[EpochEnd], part: _EpochEndPart) -> Iterator[Finding]:
    """Yield the parts that are too long, or in which the GPU or the trainer rested for too long, by their siblings."""
    firsts = [end.first for end in ends]
    last = len(ends) - 1
    stopped = [_stops(context, gpu, s, is_last=at == last) if s else [] for at, s in enumerate(part.spans)]
    lengths, stops = [span[1] - span[0] if span else np.nan for span in part.spans], list(map(_longest_s, stopped))
    siblings = [SiblingLengths(each, firsts) for each in (lengths, stops)]
    tolerated_s = context.options.drop_seconds
    for number, (end, span) in enumerate(zip(ends, part.spans, strict=True)):
        if span is None or max(lengths[number], stops[number]) <= tolerated_s:
            continue  # of a long run they are thousands
        whole, rests = (each.of(number, tolerated_s, FIRST_VALIDATION_EXTRA_S) for each in siblings)
        is_long = end.from_callbacks and whole is not None and lengths[number] > whole.longest_s
        has_stopped = rests is not None and stops[number] > rests.longest_s
        pause = end.pause if end.from_callbacks and end.pause is not None else span
        in_drop = any(
            drop.start_t_s < span[1] and drop.end_t_s > span[0] and reaches_into_training(drop, pause)
            for drop in context.cached(_drops_in)(*span)
        )
        if whole is not None and is_long and not has_stopped and _is_of_clock(context, gpu, span, whole.typical_s):
            continue
        if whole is not None and (is_long or has_stopped) and not in_drop:
            yield _finding(context, gpu, end, part, span, stopped[number], whole)


def _is_of_clock(context: Context, gpu: int, span: Span, typical_s: float) -> bool:
    """Tell whether a lower clock, which is told, makes a part of an epoch as long as it is."""
    slower = slower_by_clock(context, gpu, span)
    return slower > 1 and span[1] - span[0] <= SCATTERS * typical_s * slower


def _drops_in(context: Context) -> IntervalIndex[Drop]:
    return IntervalIndex(context.drops, lambda drop: drop.span)


def _longest_s(spans: Sequence[Span]) -> float:
    return max((end - start for start, end in spans), default=0.0)


def _stops(context: Context, gpu: int, span: Span, *, is_last: bool) -> list[Span]:
    """Return when the workers used no CPU within a span, or, where nobody watched them, when the GPU rested.

    At the end of the last epoch no worker loads the next one: work stopped only where the main process rested, too.
    """
    watched = context.cached(_host_idle)
    if watched is not None:
        t_s, workers_idle, all_idle = watched
        return _runs(t_s, all_idle if is_last else workers_idle, span)
    return _runs(context.series_of(gpu).t_s, context.cached(_gpu_idle)[gpu], span)


def _gpu_idle(context: Context) -> dict[int, Bools]:
    return {series.gpu: series.util_pct < LOW_PCT for series in context.series}


def _core(context: Context, stop: Span, least_s: float) -> Span:
    """Return the part of a stop in which the main process did nothing either: before, it lived on what was ready."""
    watched = context.cached(_host_idle)
    quiet = _runs(watched[0], watched[2], stop) if watched is not None else []
    core = max(quiet, key=lambda each: each[1] - each[0], default=stop)
    return core if core[1] - core[0] >= least_s else stop


def _host_idle(context: Context) -> tuple[Floats, Bools, Bools] | None:
    """Return the times of the host's rows, and in which the workers, and the main process too, used no CPU."""
    host = context.run.host
    main = host["main_cpu_pct"].to_numpy(dtype=float) if "main_cpu_pct" in host else np.empty(0)
    if np.isnan(main).all():
        return None
    # without workers there is none of their CPU to read; a reading that failed says nothing
    is_none = host["workers"] == 0 if "workers" in host else False
    workers = np.where(is_none, 0.0, host["workers_cpu_pct"].to_numpy(dtype=float))
    idle = workers < IDLE_CPU_PCT
    return host["t_s"].to_numpy(dtype=float), idle, idle & (main < IDLE_CPU_PCT)


def _runs(t_s: Floats, idle: Bools, span: Span) -> list[Span]:
    """Return the stretches within a span in which each reading says that nothing was done."""
    first, last = np.searchsorted(t_s, span, side="right")
    if not idle[first:last].any():
        return []
    begun, ended = runs_of(idle[first:last])
    begins = t_s[np.maximum(first + begun - 1, 0)]  # a row of the host is the mean since the row before
    ends = t_s[first + ended - 1]
    return intersect([span], list(zip(begins.tolist(), ends.tolist(), strict=True)))


def _finding(  # noqa: PLR0913, PLR0917 - what is slow, where, and by what
    context: Context,
    gpu: int,
    end: EpochEnd,
    part: _EpochEndPart,
    span: Span,
    stopped: Sequence[Span],
    usual: SiblingLength,
) -> Finding:
    """Return the finding: over the longest stop in it, else over all of it."""
    took_s, stop = span[1] - span[0], max(stopped, key=lambda each: each[1] - each[0], default=span)
    least_s = context.options.drop_seconds
    held = _core(context, stop, READING_SLACK * least_s) if stop[1] - stop[0] >= least_s else span
    explained = explain(context.signals.of(gpu, *held), kernel_was_read=context.run.kernel.status == "read")
    longer = f"The {part.name} of epoch {end.row.epoch} took {length(took_s)} (typical: {length(usual.typical_s)})"
    rested = "" if held == span else f", GPU idle for {length(length_s([held]))}"
    once = end.first and held == span and part.name == VALIDATION and takes_longer_once(context, span)
    return context.finding(
        part.rule,
        "info" if once else "warning",
        held,
        f"{longer}: {ONCE_WORDS}" if once else f"{longer}{rested}",
        gpu=gpu,
        epoch=end.row.epoch,
        phase=part.name,
        at_boundary=True,
        evidence=(
            *evidence(
                (f"this {part.name}", took_s, "s"),
                (f"{part.name} of the other epochs (median)", usual.typical_s, "s"),
                ("of it, workers without CPU use", length_s(stopped) or None, "s"),
            ),
            *explained.evidence,
        ),
        cause=Cause(VALIDATION, LIKELY, ONCE_WORDS) if once else explained.cause,
        advice=() if once else explained.advice,
        expected=once,
        lost_gpu_s=min(max(took_s - usual.typical_s, 0.0), held[1] - held[0]),
    )

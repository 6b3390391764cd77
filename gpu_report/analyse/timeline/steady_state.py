"""The steady state: what a run does most of the time, and everything else is compared with."""

from collections.abc import Sequence

from gpu_report.analyse.timeline import thresholds as th
from gpu_report.analyse.timeline.activity import Activity
from gpu_report.analyse.timeline.epoch_ends import EpochEnds
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.analyse.timeseries.intervals import Span, length_s, minus
from gpu_report.model import FROM_CALLBACKS, Phase


def steady_phases(phases: Sequence[Phase], epoch_ends: EpochEnds) -> list[Phase]:
    """Return the train phases, without those of the first epoch of a process where enough others are left.

    A first epoch waits for its loader's first batches and warms its kernels up.
    """
    trained = [phase for phase in phases if phase.name == "train"]
    later = [phase for phase in trained if not epoch_ends.is_in_first(phase.start_t_s)]
    seconds = sum(phase.end_t_s - phase.start_t_s for phase in later)
    return later if seconds >= th.LEVEL_AT_LEAST_S else trained


def undisturbed_epochs(
    phases: Sequence[Phase], epoch_ends: EpochEnds, disturbed: Sequence[Span], reading_s: float
) -> tuple[Span, ...]:
    """Return the train phases that nothing disturbed, from end to end; of a first epoch what is no warming up.

    Where that leaves too little for readings that are `reading_s` apart, as of a training that was ended early, a first
    epoch warms up for a share of its length at most; likewise its last batch, where callbacks say when that ended.
    Where that is too little, too, as of epochs of hours, it is what lies between the disturbances.
    """
    held_up, trained = interval_cover(disturbed), [phase for phase in phases if phase.name == "train"]
    for share in (1.0, th.WARM_UP_SHARE):
        spans = [span for phase in trained if (span := _settled(phase, epoch_ends, share))[0] < span[1]]
        kept = tuple(span for span in spans if not held_up.touches(span))
        if is_settled(length_s(kept), reading_s):
            return kept
    between = tuple(minus(spans, _widened(disturbed)))
    return between if is_settled(length_s(between), reading_s) else kept


def _settled(phase: Phase, epoch_ends: EpochEnds, share: float) -> Span:
    if not epoch_ends.is_in_first(phase.start_t_s):
        return phase.start_t_s, phase.end_t_s
    at_most_s = share * (phase.end_t_s - phase.start_t_s)
    last_s = min(th.LAST_BATCH_S, at_most_s) if phase.source == FROM_CALLBACKS else th.LAST_BATCH_S
    return phase.start_t_s + min(th.WARM_UP_S, at_most_s), phase.end_t_s - last_s


def is_settled(seconds: float, reading_s: float) -> bool:
    """Tell whether so much of the steady state, with readings so far apart, says how busy a GPU is all the time."""
    return seconds >= max(th.SETTLED_AT_LEAST_S, min(th.SETTLED_READINGS * reading_s, th.LEVEL_AT_LEAST_S))


def steady_spans(
    steady: Sequence[Phase], activity: Activity, duration_s: float, disturbed: Sequence[Span]
) -> tuple[Span, ...]:
    """Return the inner parts of the steady state, less what is disturbed: where every row is of nothing else.

    Where no epochs are known, that is all but startup and idle.
    """
    away_spans = [*activity.startups, *activity.idle]
    inner = [_inner(p.span, reported=p.source == FROM_CALLBACKS) for p in steady]
    spans = inner or [_inner(span, reported=False) for span in minus([(0.0, duration_s)], away_spans)]
    return tuple(minus([(start, end) for start, end in spans if start < end], _widened(disturbed)))


def _widened(disturbed: Sequence[Span]) -> list[Span]:
    return sorted((start - th.STEADY_EDGE_S, end + th.STEADY_EDGE_S) for start, end in disturbed)


def _inner(span: Span, *, reported: bool) -> Span:
    """Return a span without its edges, whose rows belong half to what was before and after."""
    edge_s = min(
        th.STEADY_CALLBACK_EDGE_S if reported else th.STEADY_EDGE_S, th.STEADY_EDGE_SHARE * (span[1] - span[0])
    )
    return span[0] + edge_s, span[1] - edge_s

"""Each step by what its GPU did."""

import numpy as np

from gpu_report.analyse.timeseries.interval_cover import IntervalCover, interval_cover
from gpu_report.analyse.trace.gpu_work import COPY, Bools, Floats
from gpu_report.analyse.trace.name_masks import names_that
from gpu_report.analyse.trace.window import TraceWindow
from gpu_report.model import TraceStep, TraceStepTime


def step_times(window: TraceWindow) -> tuple[TraceStepTime, ...]:
    """Return the parts of each step, clipped to it; they add up to its length.

    What runs at the same time counts once: as computing, else as communication, else as a copy. Work on all streams
    counts, gpu_user_annotation does not.
    """
    work = window.all_work
    communication = names_that(window.trace, "nccl")[work.name]
    copies = work.kind == COPY
    spans = np.array([(step.start_s, step.end_s) for step in window.steps]).reshape(-1, 2)
    computed_s = _cover(work.spans, ~communication & ~copies).seconds_in_each(spans)
    with_communication_s = _cover(work.spans, ~copies).seconds_in_each(spans)
    busy_s = interval_cover(work.spans).seconds_in_each(spans)
    not_idle_s = interval_cover(np.vstack([work.spans, _data_waits(window)])).seconds_in_each(spans)
    parts = np.diff(np.column_stack([computed_s, with_communication_s, busy_s, not_idle_s]), prepend=0.0, axis=1)
    rows = zip(window.steps, np.maximum(parts, 0.0).tolist(), strict=True)
    return tuple(_step_time(window, at, step, of_step) for at, (step, of_step) in enumerate(rows))


def _step_time(window: TraceWindow, at: int, step: TraceStep, parts: list[float]) -> TraceStepTime:
    return TraceStepTime(
        number=step.number if window.marked else None,
        start_s=step.start_s,
        end_s=step.end_s,
        compute_s=parts[0],
        communication_s=parts[1],
        copy_s=parts[2],
        data_wait_s=parts[3],
        cpu_wait_s=max(step.end_s - step.start_s - sum(parts), 0.0),
        kernels=int(window.kernels[at]),
        used=bool(window.used[at]),
    )


def _cover(spans: Floats, which: Bools) -> IntervalCover:
    return interval_cover(spans[which])


def _data_waits(window: TraceWindow) -> Floats:
    """Return rows of (start, end) in which the training asked its data loader for a batch."""
    marks = window.trace.annotations
    waits = names_that(window.trace, r"enumerate\(DataLoader\)#")[marks.name]
    return np.column_stack([marks.start_s[waits], marks.end_s[waits]])

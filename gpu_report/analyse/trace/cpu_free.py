"""How long a step would take if the CPU were never late."""

import numpy as np

from gpu_report.analyse.trace import thresholds as th
from gpu_report.analyse.trace.gpu_work import KERNEL, NONE
from gpu_report.analyse.trace.window import TraceWindow
from gpu_report.model import CpuFreeStep, LaunchTiming, SyncPoint, TraceStepTime


def cpu_free_step(
    window: TraceWindow, steps: tuple[TraceStepTime, ...], launches: LaunchTiming, syncs: tuple[SyncPoint, ...]
) -> CpuFreeStep | None:
    """Return how long a used step would take if the CPU took no time, None without GPU work.

    `limit_s` is the time in which the GPU was busy, on all streams together: what ran side by side still does, kernels
    take as long as they did, and nothing is fused or left out. Waits for data and other idle time are gone.

    `expected_s` adds two things that a fast CPU does not remove. A kernel begins a moment after the one before it ends,
    also where it was launched in time (`_gap_s`): each kernel of a stream depends on the one before. And where the CPU
    waits for a result before it launches the next kernel, that kernel starts a launch later: the trace's median gap
    from a launch to a start, at most that of an empty queue. CUDA graphs shorten the first, fewer synchronisations the
    second. A clock that falls under load, and memory that slows with it, are not in it.
    """
    count = window.used_count
    if not len(window.work) or not count or launches.gap_s is None:
        return None
    busy_s = sum(step.busy_s for step in steps if step.used) / count
    kernel_gaps_s = _gap_s(window) * float((window.work.kind == KERNEL).sum()) / count
    trips = sum(point.count for point in syncs) / count
    round_trips_s = trips * min(launches.gap_s, th.EMPTY_QUEUE_GAP_S)
    return CpuFreeStep(busy_s, busy_s + kernel_gaps_s + round_trips_s)


def _gap_s(window: TraceWindow) -> float:
    """Return the median time between kernels of a stream of which the later one was launched before the first ended."""
    work = window.work.where((window.work.kind == KERNEL) & (window.work.call != NONE))
    order = np.lexsort((work.start_s, work.stream))
    start_s, end_s, stream = work.start_s[order], work.end_s[order], work.stream[order]
    launched_s = window.trace.calls.end_s[work.call[order]]
    in_time = (stream[1:] == stream[:-1]) & (launched_s[1:] < start_s[:-1])
    if in_time.sum() < th.PAIRS_FOR_GAP:
        return th.KERNEL_GAP_S
    return max(float(np.median((start_s[1:] - end_s[:-1])[in_time])), 0.0)

"""Whether the GPU waits for launches, or launches wait for the GPU."""

import numpy as np

from gpu_report.analyse.trace import thresholds as th
from gpu_report.analyse.trace.gpu_work import KERNEL, NONE, GpuWork
from gpu_report.analyse.trace.window import TraceWindow
from gpu_report.model import Bound, LaunchTiming, TraceStepTime


def launch_timing(window: TraceWindow, steps: tuple[TraceStepTime, ...]) -> LaunchTiming:
    """Return how far ahead of the GPU the CPU was when it launched the kernels of the used steps."""
    work = _first_of_calls(window.work)
    kernels = work.where(work.kind == KERNEL)
    if not len(kernels):
        return LaunchTiming(None, "unknown")
    gap_s = float(np.median(kernels.start_s - window.trace.calls.start_s[kernels.call]))
    return LaunchTiming(gap_s, _bound(gap_s, steps))


def _first_of_calls(work: GpuWork) -> GpuWork:
    """Return what began first of each call: a CUDA graph is many kernels by one."""
    first = np.zeros(len(work), dtype=bool)
    first[np.unique(work.call, return_index=True)[1]] = True
    return work.where(first & (work.call != NONE))


def _bound(gap_s: float, steps: tuple[TraceStepTime, ...]) -> Bound:
    """Return who waits: an empty queue and an idle GPU say launch, a long queue says GPU.

    Waits for data are left out of the time in which the GPU could have been busy, unless they take more of the steps
    than all the rest: then it is them, whatever the queue. Kernels of NCCL that wait for another
    rank fill no queue where the CPU is no further ahead.
    """
    used = [step for step in steps if step.used]
    waited_s = sum(step.data_wait_s for step in used)
    if waited_s > sum(step.length_s for step in used) - waited_s:
        return "data"
    exchanged_s = sum(step.communication_s for step in used)
    if exchanged_s > max(
        sum(step.cpu_wait_s for step in used), th.EXCHANGE_SHARE * sum(step.length_s for step in used)
    ):
        return "exchange"
    busy_s = sum(step.busy_s for step in steps if step.used)
    could_s = sum(step.length_s - step.data_wait_s for step in steps if step.used)
    if gap_s > th.FULL_QUEUE_GAP_S:
        return "gpu"
    if gap_s < th.EMPTY_QUEUE_GAP_S and busy_s < th.LAUNCH_BOUND_BUSY * could_s:
        return "launch"
    return "neither"

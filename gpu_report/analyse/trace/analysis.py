"""A `Trace` becomes a `TraceAnalysis`."""

import numpy as np

from gpu_report.analyse.trace import thresholds as th
from gpu_report.analyse.trace.copies import copy_times
from gpu_report.analyse.trace.cpu_free import cpu_free_step
from gpu_report.analyse.trace.families import find_families
from gpu_report.analyse.trace.gpu_work import NONE
from gpu_report.analyse.trace.kernel_facts import compiled_per_step, kernels_per_step, layout_share, tensor_cores
from gpu_report.analyse.trace.launch_timing import launch_timing
from gpu_report.analyse.trace.layers import layer_times
from gpu_report.analyse.trace.optimizer import optimizer_time
from gpu_report.analyse.trace.runtime_calls import allocator_calls
from gpu_report.analyse.trace.step_times import step_times
from gpu_report.analyse.trace.syncs import sync_calls, sync_points, sync_spans
from gpu_report.analyse.trace.time_tables import family_times, kernel_times, operator_times
from gpu_report.analyse.trace.window import TraceWindow, open_window
from gpu_report.model import Trace, TraceAnalysis, TraceQuality


def analyse_trace(trace: Trace) -> TraceAnalysis:
    """Return what a trace says of the steps of a training, on the GPU that worked most in it."""
    window = open_window(trace)
    families = find_families(window)
    steps = step_times(window)
    launches, waits = launch_timing(window, steps), sync_calls(window)
    syncs = sync_points(window, waits)
    return TraceAnalysis(
        quality=_quality(window),
        steps=steps,
        device=window.all_work.device if len(window.all_work) else None,
        launches=launches,
        families=family_times(window, families),
        operators=operator_times(window, families),
        kernels=kernel_times(window, families),
        layers=layer_times(window),
        syncs=syncs,
        sync_spans=sync_spans(window, waits),
        copies=copy_times(window),
        layout_share=layout_share(window, families),
        tensor_cores=tensor_cores(window, families),
        allocator=allocator_calls(window),
        optimizer=optimizer_time(window),
        kernels_per_step=kernels_per_step(window),
        compiled_per_step=compiled_per_step(window),
        cpu_free=cpu_free_step(window, steps, launches, syncs),
    )


def _quality(window: TraceWindow) -> TraceQuality:
    used = window.used
    kernels = window.kernels[used]
    spread = int(kernels.max() - kernels.min()) if len(kernels) else 0
    first_used = int(used.argmax()) if used.any() else 0
    return TraceQuality(
        steps=len(window.steps),
        has_gpu_work=window.trace.has_gpu_work,
        first_missing=bool(first_used),
        kernels_uneven=bool(len(kernels) and spread > th.KERNELS_AGREE * np.median(kernels)),
        unpaired_work=int((window.all_work.call == NONE).sum()),
        unpaired_launches=int(window.lost.sum()),
    )

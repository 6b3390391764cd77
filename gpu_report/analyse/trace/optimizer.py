"""The optimizer's steps: what they cost, and whether parameters are updated together."""

from typing import Final

from gpu_report.analyse.trace import thresholds as th
from gpu_report.analyse.trace.gpu_work import KERNEL, NONE, Bools, take
from gpu_report.analyse.trace.name_masks import names_that
from gpu_report.analyse.trace.operator_tree import within_marks
from gpu_report.analyse.trace.window import TraceWindow
from gpu_report.model import OptimizerStyle, OptimizerTime

STEP: Final = r"^Optimizer\.step#"
FUSED: Final = r"^aten::_fused_"
FOREACH: Final = r"^aten::_foreach_"


def optimizer_time(window: TraceWindow) -> OptimizerTime | None:
    """Return the optimizer's steps within the used steps, None where the profiler marked none."""
    trace, marks, work = window.trace, window.trace.annotations, window.work
    steps = names_that(trace, STEP)[marks.name] & window.in_used(marks.start_s)
    count = int(steps.sum())
    if not count:
        return None
    operators = trace.operators
    inside = within_marks(marks, steps, operators.thread, operators.start_s)
    launched = take(inside, work.operator, 0).astype(bool) & (work.operator != NONE)
    kernels = int((launched & (work.kind == KERNEL)).sum())
    return OptimizerTime(
        style=_style(window, inside, kernels / count),
        calls=count,
        gpu_pieces=int(launched.sum()),
        gpu_s=float(work.length_s[launched].sum()),
        cpu_s=float((marks.end_s - marks.start_s)[steps].sum()),
    )


def _style(window: TraceWindow, inside: Bools, kernels_per_step: float) -> OptimizerStyle:
    """Return how parameters are updated: by fused operators, by ones for lists of tensors, or each by itself."""
    name = window.trace.operators.name[inside]
    if names_that(window.trace, FUSED)[name].any():
        return "fused"
    if names_that(window.trace, FOREACH)[name].any():
        return "foreach"
    return "per parameter" if kernels_per_step > th.PER_PARAMETER_KERNELS else "unknown"

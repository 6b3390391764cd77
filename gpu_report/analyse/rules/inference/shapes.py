"""Rule: calls of a shape that the model has not had before are far slower, and there are many of them."""

from gpu_report.analyse.causes.confidence import LIKELY, STRONG
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.inference.new_shapes import NewShapes, Why, slow_new_shapes
from gpu_report.analyse.inference.served import judged_models
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.inference.words import active_s, ms, of_calls, percent, set_where, severity
from gpu_report.model import Advice, Cause, Finding, ServedModel

ONE_SIZE = "give the model images of one size, or of a few (`imgsz`, padding)"
SETTINGS: frozenset[Why] = frozenset({"cudnn_benchmark", "compile"})  # that are known to have been on
# What to do beside that, and what is said of the reason.
REASONS: dict[Why, tuple[str, str]] = {
    "cudnn_benchmark": (
        "Remove `torch.backends.cudnn.benchmark = True`{}, or ",
        "with `cudnn.benchmark` all of cuDNN's kernels are tried for each new shape",
    ),
    "compile": ("Compile with `dynamic=True`{}, or ", "`torch.compile` compiles anew for a new shape"),
    "convolutions": (
        "Leave `torch.backends.cudnn.benchmark` off{}, or ",
        "inference stood in convolutions, as when all of cuDNN's kernels are tried (`cudnn.benchmark`)",
    ),
    "unknown": ("", "libraries choose their kernels anew for a new shape"),
}


def new_shapes(context: Context) -> list[Finding]:
    """Report each model that loses CALLS_LOST_SHARE of its time or more to calls of a new shape."""
    found = []
    for served in context.cached(judged_models):
        slow = context.cached(slow_new_shapes, served)
        if slow is not None and slow.lost_s >= th.CALLS_LOST_SHARE * active_s(served):
            found.append(_finding(context, served, slow))
    return found


def _finding(context: Context, served: ServedModel, slow: NewShapes) -> Finding:
    gain = min(slow.lost_s / active_s(served), 1.0)
    do, why = REASONS[slow.why]
    fix = f"{do.format(set_where(context, served, slow.why))}{ONE_SIZE}"
    fix = fix[0].upper() + fix[1:]
    than = "" if slow.known_ms is None else f", {ms(slow.known_ms)} for a shape that it knows"
    return context.finding(
        "new-shapes",
        severity(gain, slow.lost_s),
        (served.start_s, served.end_s),
        f"{slow.calls} of {served.latency.calls:,} calls had a new image shape: inference takes {ms(slow.mean_ms)} "
        f"then{than} ({of_calls(served)})",
        gpu=served.calls.gpu,
        evidence=evidence(
            ("calls of a new shape", slow.calls, ""),
            ("their inference (mean)", slow.mean_ms, "ms"),
            ("inference of known shapes (median)", slow.known_ms, "ms"),
            ("GPU time per call (mean)", served.gpu_ms, "ms"),
        ),
        cause=Cause("new-shapes", STRONG if slow.why in SETTINGS else LIKELY, why),
        advice=(Advice(fix, gain_at_most=gain, short=f"{fix}: at most {percent(gain)} less time for all calls"),),
    )

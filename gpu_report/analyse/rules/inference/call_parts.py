"""Rules: a part of a call that takes longer than it should beside the inference itself."""

from collections.abc import Sequence
from dataclasses import replace

from gpu_report.analyse.causes.confidence import CERTAIN
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.inference.call_time import MS
from gpu_report.analyse.inference.gaps import lines_within, noted_thread
from gpu_report.analyse.inference.served import judged_models
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.inference.words import active_s, ms, of_calls, percent, severity
from gpu_report.model import Advice, Cause, CodeLocation, Finding, ServedModel

RESIZE = (
    "Resize images to `imgsz` in other threads or processes, or pass a tensor (B x 3 x H x W, 0 to 1). Of one that is "
    "on the GPU already ultralytics resizes nothing"
)
RESIZE_SHORT = "Resize images in other processes, or pass tensors that are on the GPU"
RESIZE_ON_CPU = "Resize images to `imgsz` in other threads or processes, or pass a tensor (B x 3 x H x W, 0 to 1)"
RESIZE_ON_CPU_SHORT = "Resize images in other processes, or pass tensors"
FEWER_BOXES = "Let fewer boxes through: a higher `conf`, a lower `max_det`"
NO_NMS = "Use the end-to-end head of YOLO26, which needs no NMS: `nms=False`"
END_TO_END = ("yolo26", "yolov10")  # families that have a head without NMS


def slow_preprocessing(context: Context) -> list[Finding]:
    """Report a model whose pre-processing takes PART_SHARE of its calls or more."""
    on_gpu = Advice(RESIZE, short=RESIZE_SHORT)
    advice = on_gpu if context.run.gpus else Advice(RESIZE_ON_CPU, short=RESIZE_ON_CPU_SHORT)
    return [
        _finding(context, served, "slow-preprocessing", "preprocess", (advice,))
        for served in context.cached(judged_models)
        if _share(served, served.parts.preprocess_ms) >= th.PART_SHARE
    ]


def slow_postprocessing(context: Context) -> list[Finding]:
    """Report a model whose post-processing takes PART_SHARE of its calls or more."""
    return [
        _finding(context, served, "slow-postprocessing", "postprocess", _fewer_boxes(served))
        for served in context.cached(judged_models)
        if _share(served, served.parts.postprocess_ms) >= th.PART_SHARE
    ]


def _share(served: ServedModel, part_ms: float | None) -> float:
    return 0.0 if part_ms is None or served.parts.total_ms <= 0 else part_ms / served.parts.total_ms


def _finding(context: Context, served: ServedModel, rule: str, function: str, advice: Sequence[Advice]) -> Finding:
    is_before = function == "preprocess"
    part_ms = (served.parts.preprocess_ms if is_before else served.parts.postprocess_ms) or 0.0
    inference_ms, name = served.parts.inference_ms or 0.0, "Pre-processing" if is_before else "Post-processing"
    seconds = part_ms / MS * served.latency.calls
    of_time = min(seconds / active_s(served), 1.0) if active_s(served) else 0.0
    of_call = f"{ms(part_ms)} of the {ms(served.parts.total_ms)} of a call"
    than = "longer than inference" if part_ms >= inference_ms else f"inference {ms(inference_ms)}"
    cause = "preprocessing" if is_before else "postprocessing"
    return context.finding(
        rule,
        severity(of_time, seconds),
        (served.start_s, served.end_s),
        f"{name} takes {of_call} ({of_calls(served)}), {than}",
        gpu=served.calls.gpu,
        evidence=evidence(
            (f"{name.lower()} (mean of a call)", part_ms, "ms"),
            ("inference (mean of a call)", inference_ms, "ms"),
            ("share of a call", 100 * part_ms / served.parts.total_ms, "%"),
        ),
        cause=Cause(cause, CERTAIN, f"ultralytics' own times: {percent(part_ms / served.parts.total_ms)} of a call"),
        where=_lines(context, served, function),
        advice=tuple(_with_gain(each, of_time) for each in advice),
    )


def _with_gain(advice: Advice, share: float) -> Advice:
    short = f"{advice.short}: at most {percent(share)} less time for all calls"
    return replace(advice, gain_at_most=share, short=short)


def _lines(context: Context, served: ServedModel, function: str) -> tuple[CodeLocation, ...]:
    notes = noted_thread(context, served.calls.pid)
    return () if notes is None else lines_within(notes, (served.start_s, served.end_s), function)


def _fewer_boxes(served: ServedModel) -> tuple[Advice, ...]:
    settings = served.calls.settings
    conf, name = settings.get("conf"), str(settings.get("model", "")).rsplit("/", 1)[-1]
    low = f"{conf:g}" if isinstance(conf, float) else None
    advice = [Advice(FEWER_BOXES, "conf" if low else None, low, "0.25" if low else None, short=FEWER_BOXES)]
    if "nms" in settings and settings.get("end2end") is False and name.startswith(END_TO_END):
        advice.insert(0, Advice(NO_NMS, "nms", str(settings["nms"]), "False", short=NO_NMS))
    return tuple(advice)

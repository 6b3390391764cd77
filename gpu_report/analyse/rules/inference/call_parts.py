"""Rules: a part of a call that takes longer than it should beside the inference itself."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpu_report.analyse.causes.confidence import CERTAIN
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.inference.gaps import lines_within, noted_thread
from gpu_report.analyse.inference.postprocess_kinds import most_of_postprocessing
from gpu_report.analyse.inference.served import judged_models
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.inference.contention import cpu_is_its_own, parts_are_its_own
from gpu_report.analyse.rules.inference.words import active_s, ms, of_calls, passed_s, percent, severity
from gpu_report.model import Advice, Cause, CodeLocation, Finding, ServedModel, Setting

RESIZE = (
    "Resize images to `imgsz` in other threads or processes, or pass a tensor (B x 3 x H x W, 0 to 1). Of one that is "
    "on the GPU already ultralytics resizes nothing"
)
RESIZE_SHORT = "Resize images in other processes, or pass tensors that are on the GPU"
RESIZE_ON_CPU = "Resize images to `imgsz` in other threads or processes, or pass a tensor (B x 3 x H x W, 0 to 1)"
RESIZE_ON_CPU_SHORT = "Resize images in other processes, or pass tensors"
FEWER_BOXES = "Let fewer boxes through: a higher `conf`, a lower `max_det`"
CONF, MAX_DET = 0.25, 300  # ultralytics' own, of predictions
NO_COPIES = (
    "Call `model.model` itself where you need no image with each result: of a tensor on the GPU ultralytics copies "
    "every image back to the CPU"
)
NO_COPIES_SHORT = "Call `model.model` itself: ultralytics copies each image of a tensor back to the CPU"
NO_NMS = "Use the end-to-end head of YOLO26, which needs no NMS: `nms=False`"
END_TO_END = ("yolo26", "yolov10")  # families that have a head without NMS


def slow_preprocessing(context: Context) -> list[Finding]:
    """Report a model whose pre-processing takes PART_SHARE of its calls or more."""
    on_gpu = Advice(RESIZE, short=RESIZE_SHORT)
    advice = on_gpu if context.run.gpus else Advice(RESIZE_ON_CPU, short=RESIZE_ON_CPU_SHORT)
    return [
        _finding(context, served, "slow-preprocessing", "preprocess", (advice,))
        for served in context.cached(judged_models)
        if _is_slow(served, served.parts.preprocess_ms) and cpu_is_its_own(context, served)
    ]


def slow_postprocessing(context: Context) -> list[Finding]:
    """Report a model whose post-processing takes PART_SHARE of its calls or more."""
    return [
        _finding(context, served, "slow-postprocessing", "postprocess", _of_postprocessing(context, served))
        for served in context.cached(judged_models)
        if _is_slow(served, served.parts.postprocess_ms) and parts_are_its_own(context, served)
    ]


def _is_slow(served: ServedModel, part_ms: float | None) -> bool:
    total_ms = served.parts.total_ms
    return part_ms is not None and total_ms > 0 and part_ms >= th.PART_SHARE * total_ms


def _finding(context: Context, served: ServedModel, rule: str, function: str, advice: Sequence[Advice]) -> Finding:
    is_before = function == "preprocess"
    part_ms = (served.parts.preprocess_ms if is_before else served.parts.postprocess_ms) or 0.0
    inference_ms, name = served.parts.inference_ms or 0.0, "Pre-processing" if is_before else "Post-processing"
    seconds = passed_s(served, part_ms)
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


def _of_postprocessing(context: Context, served: ServedModel) -> tuple[Advice, ...]:
    """Return what to do about post-processing, by the lines in which it stood.

    Where these are not known, more boxes than by default are what makes it long, and nothing else can be said.
    """
    kind = most_of_postprocessing(context, served)
    if kind == "copies of images":
        return (Advice(NO_COPIES, short=NO_COPIES_SHORT),)
    more = _more_boxes(served.calls.settings)
    boxes = (_fewer_boxes(more),) if more or kind in {"NMS", "masks"} else ()
    return (*(_without_nms(served) if kind in {"NMS", None} else ()), *boxes)


def _more_boxes(settings: Mapping[str, object]) -> tuple[Setting, ...]:
    """Return the arguments that let more boxes through than they do by default."""
    conf, most = settings.get("conf"), settings.get("max_det")
    low = [Setting("conf", f"{conf:g}", f"{CONF:g}")] if isinstance(conf, float) and conf < CONF else []
    many = [Setting("max_det", str(most), str(MAX_DET))] if isinstance(most, int) and most > MAX_DET else []
    return (*low, *many)


def _fewer_boxes(more: Sequence[Setting]) -> Advice:
    """Return to let fewer boxes through: with the arguments that let more of them through than by default."""
    if not more:
        return Advice(FEWER_BOXES, short=FEWER_BOXES)
    text = f"Let fewer boxes through: {' and '.join(f'`{each.argument}={each.to_value}`' for each in more)}"
    first, *others = more
    return Advice(text, first.argument, first.from_value, first.to_value, short=text, also=tuple(others))


def _without_nms(served: ServedModel) -> tuple[Advice, ...]:
    settings = served.calls.settings
    name = str(settings.get("model", "")).rsplit("/", 1)[-1]
    if "nms" in settings and settings.get("end2end") is False and name.startswith(END_TO_END):
        return (Advice(NO_NMS, "nms", str(settings["nms"]), "False", short=NO_NMS),)
    return ()

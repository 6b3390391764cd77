"""Rules: arguments by which a model computes more of each image than it need: `augment`, `imgsz` beyond the images."""

import math
from typing import NamedTuple

from gpu_report.analyse.causes.confidence import CERTAIN
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.inference.call_time import MS
from gpu_report.analyse.inference.served import judged_models
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.inference.words import active_s, model_px, ms, of_calls, severity
from gpu_report.analyse.timeline.trainings import STRIDE_PX
from gpu_report.model import Advice, Cause, Finding, ServedModel

# The pixels of an image at all sizes that `augment` asks for (1, 0.83 and 0.67, ultralytics 8.4), in its own.
AUGMENTED_PIXELS = 1.0 + 0.83**2 + 0.67**2


class _ArgumentFix(NamedTuple):
    """The argument that a rule is about, its value now and the one to try, and the share of inference to win."""

    rule: str
    argument: str
    before: str
    after: str
    of_inference: float


def augmented_calls(context: Context) -> list[Finding]:
    """Report models that look at each image in three sizes. Heads without NMS, and exported models, do not do it."""
    return [
        _finding(
            context,
            served,
            f"`augment=True` runs the model on three sizes of each image ({of_calls(served)})",
            _ArgumentFix("augmented-calls", "augment", "True", "False", 1 - 1 / AUGMENTED_PIXELS),
        )
        for served in context.cached(judged_models)
        if _is_augmented(served) and _is_large(served)
    ]


def _is_augmented(served: ServedModel) -> bool:
    settings = served.calls.settings
    plain = settings.get("format") == "pt" and settings.get("end2end") is False and settings.get("task") == "detect"
    return plain and settings.get("augment") is True


def enlarged_images(context: Context) -> list[Finding]:
    """Report models whose `imgsz` is ENLARGED_FROM times the largest image or more: each is enlarged to it."""
    return [found for served in context.cached(judged_models) if (found := _enlarged(context, served)) is not None]


def _enlarged(context: Context, served: ServedModel) -> Finding | None:
    now_px, image_px = model_px(served), served.calls.image_px
    if image_px is None or not _is_large(served):
        return None
    enough_px = max(STRIDE_PX * math.ceil(image_px / STRIDE_PX), th.IMGSZ_LEAST_PX)
    if now_px < th.ENLARGED_FROM * enough_px:
        return None
    summary = f"Images of at most {image_px:,} px are enlarged to {now_px:,} px ({of_calls(served)})"
    change = _ArgumentFix("enlarged-images", "imgsz", str(now_px), str(enough_px), 1 - (enough_px / now_px) ** 2)
    return _finding(context, served, summary, change)


def _is_large(served: ServedModel) -> bool:
    """Tell whether inference takes PART_SHARE of a call or more."""
    inference_ms = served.parts.inference_ms
    return inference_ms is not None and inference_ms >= th.PART_SHARE * served.parts.total_ms


def _finding(context: Context, served: ServedModel, summary: str, change: _ArgumentFix) -> Finding:
    inference_ms = served.parts.inference_ms or 0.0
    seconds = inference_ms / MS * served.latency.calls * change.of_inference
    share = min(seconds / active_s(served), 1.0) if active_s(served) else 0.0
    now = f"{change.argument}={change.before}"
    fix = f"Try `{change.argument}={change.after}`, and compare what it detects"
    return context.finding(
        change.rule,
        severity(share, seconds),
        (served.start_s, served.end_s),
        summary,
        gpu=served.calls.gpu,
        evidence=evidence(
            ("inference (mean of a call)", inference_ms, "ms"),
            ("a call (mean)", served.latency.mean_ms, "ms"),
            ("largest image", served.calls.image_px, "px"),
        ),
        cause=Cause(change.rule, CERTAIN, f"{now}, and inference takes {ms(inference_ms)} of a call"),
        advice=(Advice(fix, change.argument, change.before, change.after, gain_at_most=share, short=fix),),
    )

"""Calls whose images have a shape that the model has not had before: what they take longer than others, and why.

At a new shape libraries may choose their kernels anew: cuDNN's autotuner tries all of them, `torch.compile` compiles.
"""

from typing import Final, Literal, NamedTuple

import numpy as np

from gpu_report.analyse.context import Context
from gpu_report.analyse.inference import thresholds as th
from gpu_report.analyse.inference.call_time import MS
from gpu_report.analyse.inference.gap_kinds import is_in_call
from gpu_report.analyse.inference.gaps import noted_stacks
from gpu_report.analyse.signals.code.stack_kinds import calls_convolution
from gpu_report.analyse.signals.thresholds import IN_CONVOLUTIONS
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats
from gpu_report.model import ModelCalls, ServedModel, Stack

Why = Literal["cudnn_benchmark", "compile", "convolutions", "unknown"]
INFERENCE: Final = "inference"


class NewShapes(NamedTuple):
    """Calls of a new shape: how many, their mean inference, that of others (None: too few of them), what was lost.

    `why` is what is known of it: a setting that was on, or that inference stood in convolutions alone.
    """

    calls: int
    mean_ms: float
    known_ms: float | None
    lost_s: float
    why: Why


def slow_new_shapes(context: Context, served: ServedModel) -> NewShapes | None:
    """Return a model's calls of new shapes, where these are several: far slower than others, or for a known reason."""
    calls, new = served.steady_calls, _is_new(served.calls)[served.warm_up_calls :]
    timed = np.isfinite(calls.inference_ms) & (_pixels(calls) > 0)  # which no NaN is
    first, again = new & timed, ~new & timed
    if int(first.sum()) < th.NEW_SHAPES_LEAST:
        return None
    why = _why(context, served)
    if int(again.sum()) >= th.NEW_SHAPES_LEAST:
        return _beside_known(calls, first, again, why)
    busy, inference_ms = served.gpu_busy_share, calls.inference_ms[first]
    if why == "unknown" or served.gpu_ms is None or busy is None:
        return None
    lost_ms = inference_ms - served.gpu_ms
    mostly = float(lost_ms.sum()) >= th.NEW_SHAPE_IDLE * float(inference_ms.sum())
    mean_ms = float(inference_ms.mean())
    return NewShapes(len(inference_ms), mean_ms, None, float(lost_ms.sum()) / MS, why) if mostly else None


def mostly_new_shapes(served: ServedModel) -> bool:
    """Tell whether most calls of a model have a shape that it has not had: what is typical of one is not known then."""
    return bool(_is_new(served.calls)[served.warm_up_calls :].mean() > th.MOSTLY)


def _beside_known(calls: ModelCalls, first: Bools, again: Bools, why: Why) -> NewShapes | None:
    """Return new shapes beside calls of known ones, which are taken to be as fast for each pixel, or as a whole."""
    known_ms, pixels = float(np.median(calls.inference_ms[again])), _pixels(calls)
    scale = np.maximum(pixels[first] / np.median(pixels[again]), 1.0)
    new_ms = calls.inference_ms[first]
    lost_ms = new_ms - known_ms * scale
    if float(np.median(new_ms / (known_ms * scale))) < th.NEW_SHAPE_SLOWER:
        return None
    return NewShapes(len(new_ms), float(new_ms.mean()), known_ms, float(lost_ms.sum()) / MS, why)


def _is_new(calls: ModelCalls) -> Bools:
    """Tell of each call whether its shape is one that the model has not had; one that is not known is not new."""
    shapes = np.column_stack([calls.images, calls.height, calls.width])
    known = np.isfinite(shapes).all(axis=1)
    _, rows = np.unique(shapes[known], axis=0, return_index=True)
    new = np.zeros(len(shapes), dtype=bool)
    new[np.flatnonzero(known)[rows]] = True
    return new


def _pixels(calls: ModelCalls) -> Floats:
    pixels: Floats = calls.images * calls.height * calls.width
    return pixels


def _why(context: Context, served: ServedModel) -> Why:
    """Return what is known to choose kernels anew at each shape."""
    pid, settings = served.calls.pid, served.calls.settings
    if settings.get("compile"):
        return "compile"
    modes = [run.settings.get("slow_modes") for run in context.run.inside if run.pid == pid]
    if any(isinstance(each, list | tuple) and "cudnn_benchmark" in each for each in modes):
        return "cudnn_benchmark"
    return "convolutions" if _stood_in_convolutions(context, served) else "unknown"


def _stood_in_convolutions(context: Context, served: ServedModel) -> bool:
    """Tell whether a thread stood in convolutions for nearly all of inference: launched, they take two thirds of it."""
    notes = noted_stacks(context, served.calls.pid, (served.start_s, served.end_s))
    inference = [(stack, spent) for stack, spent in notes if _is_inference(stack)]
    total = sum(spent for _, spent in inference)
    inside = sum(spent for stack, spent in inference if calls_convolution(stack))
    return total >= th.GAP_NOTES_S and inside >= IN_CONVOLUTIONS * total


def _is_inference(stack: Stack) -> bool:
    return any(frame.function == INFERENCE for frame in stack) and is_in_call(stack)

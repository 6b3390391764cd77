"""What calls of models were set up with: whether two runs of them can be compared, and what of a change may explain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from gpu_report.analyse.compare.calls.matching import MatchedModel
from gpu_report.analyse.compare.calls.samples import CallSample
from gpu_report.analyse.compare.fingerprint import (
    PIXELS,
    Fingerprint,
    Value,
    differences,
    gpu_names,
    machine_traits,
    text_of,
)
from gpu_report.model import Difference, Obstacle

# What ultralytics was asked for, or chose, of a model; `providers` are ONNX Runtime's.
ARGUMENTS: Final = ("format", "half", "task", "mode", "compile", "end2end", "providers")


def fingerprint_of_model(sample: CallSample) -> Fingerprint:
    """Return what one model of a run was set up with."""
    used = [summary.gpu for summary in sample.analysis.gpus if summary.used]
    pixels = [_pixels(served.calls.height, served.calls.width) for served in sample.served]
    known = [each for each in pixels if each is not None]
    return Fingerprint(
        hard={
            "GPU model": gpu_names(used),
            "GPUs used": len(used) or None,
            "model": None if sample.name in {"best", "last", "model"} else sample.name,
            "imgsz": _size(sample.settings),
            PIXELS: round(float(np.mean(known))) if known else None,
        },
        arguments={
            **{name: text_of(sample.settings.get(name)) for name in ARGUMENTS},
            "images a call": str(sample.batch),
        },
        soft={**machine_traits(sample.analysis, used), "calls of other batches": _others(sample)},
        of_calls=True,
    )


def fingerprint_of_calls(samples: Sequence[CallSample]) -> Fingerprint:
    """Return what a run that calls models was set up with: of several models their names and settings together."""
    each = sorted(map(fingerprint_of_model, samples), key=lambda known: str(known.hard))
    first = each[0]
    names = ("model", "imgsz")
    hard = {**first.hard, **{name: _joined([known.hard[name] for known in each]) for name in names}}
    arguments = {name: _joined([known.arguments[name] for known in each]) for name in first.arguments}
    return Fingerprint(hard, arguments, first.soft, of_calls=True)


def differences_of(models: Sequence[MatchedModel]) -> tuple[Difference, ...]:
    """Return what is not the same in the newest baseline; what is of one model of several is said with its name."""
    found = [(model, _of_model(model)) for model in models]
    shared = [each for each in found[0][1] if all(each in of for _, of in found)] if found else []
    own = [
        Difference(f"{model.model}: {each.name}" if model.model else each.name, each.baseline, each.run, each.kind)
        for model, of in found
        for each in of
        if each not in shared
    ]
    return tuple(sorted((*shared, *own), key=lambda each: ("hard", "argument", "soft").index(each.kind)))


def set_up_obstacles(model: MatchedModel) -> list[Obstacle]:
    """Return what keeps a model from being compared with the newest baseline's."""
    hard = [each for each in _of_model(model) if each.kind == "hard"]
    return [Obstacle("set-up", each.name, f"{each.baseline} in the baseline, {each.run} in the run") for each in hard]


def _of_model(model: MatchedModel) -> tuple[Difference, ...]:
    return differences(fingerprint_of_model(model.baselines[0]), fingerprint_of_model(model.run))


def _pixels(height: np.typing.NDArray[np.float64], width: np.typing.NDArray[np.float64]) -> float | None:
    pixels = height * width
    return float(np.nanmean(pixels)) if np.isfinite(pixels).any() else None


def _size(settings: Mapping[str, object]) -> str | None:
    size = settings.get("imgsz")
    return " x ".join(dict.fromkeys(map(str, size))) if isinstance(size, list | tuple) else text_of(size)


def _others(sample: CallSample) -> str:
    """Return how many calls have another number of images, to the tenth: traffic is not the same twice."""
    tenths = round(10 * float((sample.images != sample.batch).mean()))
    return f"about {10 * tenths} %" if tenths else "none"


def _joined(values: Sequence[Value]) -> str | None:
    known = dict.fromkeys(str(value) for value in values if value is not None)
    return ", ".join(known) or None

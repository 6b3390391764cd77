"""The calls of a model that serves, predicts or tracks, as our callbacks kept them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
CPU_PROVIDER = "CPUExecutionProvider"


@dataclass(frozen=True, eq=False)
class ModelCalls:
    """All calls of one model in one process, one element each, in order of their beginnings; NaN where not known.

    `settings` are model (its file), task, mode (predict, track), format (pt, torchscript, onnx, engine ...), half,
    compile, end2end, imgsz, batch, providers (ONNX Runtime's, the one in use first), device, asked_device, augment,
    source (stream, screenshot, from_img, tensor, files, file: one image a call): None where not known.
    `gpu` is the device index, None on a CPU. `predictors` is how many model objects the process made of this one,
    `failed` how many calls began and never ended (None where the process has several models). `image_px` is the longer
    side of the largest image that it was given, None where it was given tensors, or that is not known. `repeated` is
    how many calls had the image of the call before, of so many different ones (`repeated_images`); None where that is
    not known.
    `start_s` is seconds of the run. `images` counts those of a batch, `height` and `width` are pixels of what the model
    got. `preprocess_ms`, `inference_ms`, `postprocess_ms` are ultralytics' own parts of a batch, in `total_ms`.
    `new_thread` is 1 where the thread called this model for the first time, else 0; None, or NaN, where not known.
    `gap_ms` is how long this process had no call before: NaN for its first one, 0 where calls overlap.
    """

    pid: int
    number: int
    settings: Mapping[str, object]
    gpu: int | None
    start_s: Floats
    images: Floats
    height: Floats
    width: Floats
    preprocess_ms: Floats
    inference_ms: Floats
    postprocess_ms: Floats
    total_ms: Floats
    gap_ms: Floats
    predictors: int | None = None
    failed: int | None = None
    image_px: int | None = None
    repeated: int | None = None
    repeated_images: int | None = None
    new_thread: Floats | None = None

    @property
    def name(self) -> str:
        """Return the model's file, `model` where it is not known."""
        name = self.settings.get("model")
        return name if isinstance(name, str) and name else "model"

    def after(self, count: int) -> ModelCalls:
        """Return the calls without the first `count`; the arrays are not copied."""
        columns: dict[str, Any] = {
            name: value[count:] for name, value in vars(self).items() if isinstance(value, np.ndarray)
        }
        return replace(self, **columns)

    @property
    def end_s(self) -> Floats:
        """Return when each call ended."""
        return self.start_s + self.total_ms / 1000.0


def provider_in_use(settings: Mapping[str, object]) -> str:
    """Return the provider of ONNX Runtime that does the work, empty of other formats; `settings` as of ModelCalls."""
    providers = settings.get("providers")
    return str(providers[0]) if isinstance(providers, list | tuple) and providers else ""


def asked_for_cpu(settings: Mapping[str, object]) -> bool:
    """Tell whether the user named the CPU. Without a device ultralytics takes the first GPU."""
    return str(settings.get("asked_device", "")).startswith("cpu")


def fell_back_to_cpu(settings: Mapping[str, object]) -> bool:
    """Tell whether ONNX Runtime works on the CPU though that was not asked for.

    `device` does not tell: ultralytics may set it to the CPU when ONNX Runtime falls back.
    """
    return provider_in_use(settings) == CPU_PROVIDER and not asked_for_cpu(settings)

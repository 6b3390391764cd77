"""The calls of a model that serves, predicts or tracks, as our callbacks kept them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ModelCalls:
    """All calls of one model in one process, one element each, in order of their beginnings; NaN where not known.

    `settings` are model (its file), task, mode (predict, track), format (pt, torchscript, onnx, engine ...), half,
    compile, end2end, imgsz, batch, providers (ONNX Runtime's, the one in use first), device: None where not known.
    `gpu` is the device index, None on a CPU. `predictors` is how many model objects the process made of this one,
    `failed` how many calls began and never ended (None where the process has several models).
    `start_s` is seconds of the run. `images` counts those of a batch, `height` and `width` are pixels of what the model
    got. `preprocess_ms`, `inference_ms`, `postprocess_ms` are ultralytics' own parts of a batch, in `total_ms`.
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

    @property
    def name(self) -> str:
        """Return the model's file, `model` where it is not known."""
        name = self.settings.get("model")
        return name if isinstance(name, str) and name else "model"

    @property
    def end_s(self) -> Floats:
        """Return when each call ended."""
        return self.start_s + self.total_ms / 1000.0

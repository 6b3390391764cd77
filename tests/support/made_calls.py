"""Runs that call models, made of plain numbers: latencies of so many calls, each like the one before it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_report.analyse import analyse
from gpu_report.model import Analysis, ModelCalls
from support.runs import make_run

Floats = npt.NDArray[np.float64]
SETTINGS = {
    "model": "yolo26n.pt",
    "task": "detect",
    "mode": "predict",
    "format": "pt",
    "half": False,
    "imgsz": [640, 640],
}
WATTS = 200.0


def latencies(count: int, seed: int, correlation: float = 0.3, mean_ms: float = 15.0, spread: float = 0.05) -> Floats:
    """Return latencies (ms) whose logarithms are a first-order autoregressive series."""
    random = np.random.default_rng(seed)
    noise = random.standard_normal(count) * (1 - correlation**2) ** 0.5
    value, values = float(random.standard_normal()), []
    for step in noise.tolist():
        value = correlation * value + step
        values.append(value)
    return mean_ms * np.exp(spread * np.array(values))


def model_calls(total_ms: Floats, *, gap_ms: float = 1.0, images: int = 1, **more: Any) -> ModelCalls:
    """Return calls one after the other from second 10 on; `more` are settings, `start_s`, and parts a share of a call.

    Of a call 10 % is pre-processing (`preprocess`), 80 % inference and 5 % post-processing, where nothing else is said.
    """
    count = len(total_ms)
    parts = {
        name: more.pop(name, share) for name, share in (("preprocess", 0.1), ("inference", 0.8), ("postprocess", 0.05))
    }
    start_s, pid = more.pop("start_s", 10.0), more.pop("pid", 100)
    begins = start_s + np.concatenate([[0.0], np.cumsum(total_ms + gap_ms)[:-1]]) / 1000
    return ModelCalls(
        pid=pid,
        number=1,
        settings={**SETTINGS, **more},
        gpu=0,
        start_s=begins,
        images=np.full(count, float(images)),
        height=np.full(count, 640.0),
        width=np.full(count, 640.0),
        **{f"{name}_ms": part if isinstance(part, np.ndarray) else part * total_ms for name, part in parts.items()},
        total_ms=total_ms,
        gap_ms=np.concatenate([[np.nan], np.full(count - 1, gap_ms)]),
    )


def serving(*calls: ModelCalls, watts: float = WATTS, memory_mib: float = 800.0, name: str = "NVIDIA H200") -> Analysis:
    """Return the analysis of a run that made these calls and trained nothing."""
    seconds = int(max(each.end_s.max() for each in calls)) + 3
    column = [1.0] * seconds
    run = make_run(
        [40.0] * seconds,
        quantities={
            "power_w": [watts * each for each in column],
            "memory_used_mib": [memory_mib * each for each in column],
        },
        facts={"name": name},
    )
    return analyse(replace(run, calls=tuple(calls)))


def served(total_ms: Floats | Sequence[float], **more: Any) -> Analysis:
    """Return the analysis of a run that made calls of one model."""
    return serving(model_calls(np.asarray(total_ms, dtype=float), **more))

"""Calls of models made of plain numbers, and runs that hold them."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpu_report.model import InsideRun, ModelCalls, Phase, Run
from support.runs import make_run, readings

SETTINGS = {
    "model": "yolo26n.pt",
    "task": "detect",
    "format": "pt",
    "half": False,
    "device": "cuda:0",
    "imgsz": [640, 640],
}


def make_calls(
    count: int = 600,
    *,
    parts_ms: tuple[float, float, float] = (1.0, 10.0, 1.0),
    gap_ms: float | Sequence[float] = 1.0,
    images: float | Sequence[float] = 1.0,
    first_ms: float = 0.0,
    start_s: float = 5.0,
    gpu: int | None = 0,
    pid: int = 7,
    predictors: int | None = 1,
    noise: float = 0.02,
    **settings: Any,
) -> ModelCalls:
    """Return calls one after the other, each of these parts and 1 ms of its own, noisy by a share of it."""
    rng = np.random.default_rng(0)
    scale = np.exp(noise * rng.normal(size=count))
    before, model, after = (part * scale for part in parts_ms)
    total = before + model + after + 1.0
    total[0] += first_ms
    gaps = np.broadcast_to(np.asarray(gap_ms, dtype=float), count).copy()
    gaps[0] = np.nan
    starts = start_s + np.concatenate([[0.0], np.cumsum(total[:-1] + gaps[1:])]) / 1000.0
    sizes = np.broadcast_to(np.asarray(images, dtype=float), count).copy()
    square = np.full(count, 640.0)
    facts = {**SETTINGS, **settings}
    return ModelCalls(
        pid, 1, facts, gpu, starts, sizes, square, square, before, model, after, total, gaps, predictors, 0
    )


def make_served(calls: ModelCalls | Sequence[ModelCalls], util_pct: float = 50.0, **more: Any) -> Run:
    """Return a run in which models were called, on a GPU that is busy while they are, for a share of the time."""
    several = [calls] if isinstance(calls, ModelCalls) else list(calls)
    end_s = max(float(each.end_s.max()) for each in several)
    run = make_run(readings((0.0, 5.0), (util_pct, np.ceil(end_s) - 5.0), (0.0, 2.0)), **more)
    inside = tuple(
        InsideRun(None, 0, pid, "predict", {}, (Phase("predict", None, 5.0, end_s, "callbacks"),), ())
        for pid in sorted({each.pid for each in several})
    )
    return dataclasses.replace(run, calls=tuple(several), inside=inside)

"""Served models for tests of what is said of them: made-up calls, and what they come to."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpu_report.model import (
    CallGroup,
    CallParts,
    CodeLocation,
    GapPart,
    Latency,
    ModelCalls,
    Quantile,
    ServedModel,
    calls_needed,
)

SETTINGS = {
    "model": "yolo26n.pt",
    "task": "detect",
    "mode": "predict",
    "format": "pt",
    "half": False,
    "imgsz": [640, 640],
    "batch": 1,
    "device": "cuda:0",
}
WARM_UP_MS = (8000.0, 60.0, 40.0)
FIRST_S = 30.0  # of the first call


def made_calls(count: int = 2000, *, settings: Mapping[str, Any] | None = None, pid: int = 510) -> ModelCalls:
    """Return calls of about 14 ms with 2 ms between them, after three slow ones; every hundredth takes 90 ms."""
    random = np.random.default_rng(count)
    total = random.normal(14.0, 0.6, count)
    total[::100] = 90.0 + random.normal(0.0, 1.0, len(total[::100]))
    total[: len(WARM_UP_MS)] = WARM_UP_MS[:count]
    gap = np.full(count, 2.0)
    start = FIRST_S + (np.cumsum(total + gap) - total - gap) / 1000.0
    gap[0] = np.nan
    images = np.where(np.arange(count) % 4 == 3, 8.0, 1.0)
    ones = np.ones(count)
    parts = {"preprocess_ms": 1.5 * ones, "inference_ms": total - 4.5, "postprocess_ms": ones}
    size = {"height": 384 * ones, "width": 640 * ones}
    told = SETTINGS | dict(settings or {})
    return ModelCalls(
        pid, 1, told, 0, start, images, **size, **parts, total_ms=total, gap_ms=gap, predictors=1, failed=0
    )


def latency_of(total_ms: Any) -> Latency:
    """Return what latencies come to, with intervals of a fiftieth."""
    values = np.asarray(total_ms, dtype=float)
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    known = {name: float(np.quantile(values, at)) for name, at in shares.items() if len(values) >= calls_needed(at)}
    quantiles = {name: Quantile(value, value * 0.98, value * 1.02) for name, value in known.items()}
    return Latency(len(values), float(values.mean()), float(values.max()), **quantiles)


def served_model(calls: ModelCalls | None = None, warm_up: int = 3, **known: Any) -> ServedModel:
    """Return what calls come to; `known` replaces fields of it."""
    calls = made_calls() if calls is None else calls
    total, images = calls.total_ms[warm_up:].astype(float), calls.images[warm_up:]
    start, end = float(calls.start_s[warm_up]), float(calls.end_s[-1])
    inside_s, whole_s = float(total.sum()) / 1000.0, end - start
    gap_s = max(whole_s - inside_s, 0.0)
    fields: dict[str, Any] = {
        "warm_up_calls": warm_up,
        "warm_up_s": float(calls.total_ms[:warm_up].sum()) / 1000.0,
        "first_ms": float(calls.total_ms[0]),
        "start_s": start,
        "end_s": end,
        "images": int(images.sum()),
        "latency": latency_of(total),
        "parts": _parts(calls, warm_up),
        "groups": _by_batch(images, total),
        "images_per_s": float(images.sum()) / whole_s,
        "images_per_s_in_calls": float(images.sum()) / inside_s,
        "in_calls_share": min(inside_s / whole_s, 1.0),
        "gap_s": gap_s,
        "gap_parts": (GapPart("decoding", gap_s * 0.9, CodeLocation("main", "read", "/home/me/serve.py", 7, 0.9)),),
        "gpu_busy_share": 0.11,
        "gpu_ms": 1.9,
        "joules_per_image": 1.42,
        "money_per_million": 12.5,
    }
    return ServedModel(calls, **fields | known)


def _parts(calls: ModelCalls, warm_up: int) -> CallParts:
    names = ("preprocess_ms", "inference_ms", "postprocess_ms", "total_ms")
    pre, inference, post, total = (float(np.mean(getattr(calls, name)[warm_up:])) for name in names)
    return CallParts(pre, inference, post, total - pre - inference - post, total)


def _by_batch(images: Any, total: Any) -> tuple[CallGroup, ...]:
    groups = []
    for size in np.unique(images).tolist():
        own = images == size
        label = f"{size:.0f} image{'' if size == 1 else 's'}"
        groups.append(CallGroup("batch", label, int(images[own].sum()), latency_of(total[own])))
    return tuple(groups)

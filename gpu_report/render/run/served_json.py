"""`calls[]` of summary.json: models that were called. Latencies are of a call after warming up, in milliseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpu_report.render.served_words import PARTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_report.model import Analysis, CallGroup, CodeLocation, GapPart, Latency, ServedModel

Json = dict[str, Any]
APART = ("task", "mode", "format")  # settings that have a key of their own


def calls(analysis: Analysis, location: Callable[[CodeLocation], Json]) -> list[Json]:
    """Return the models that were called, the one with the most images first; `location` is a line of code as JSON."""
    return [_served(each, location) for each in analysis.served]


def _served(served: ServedModel, location: Callable[[CodeLocation], Json]) -> Json:
    made, told = served.calls, served.calls.settings
    return {
        "model": made.name,
        **{name: _text(told.get(name)) for name in APART},
        "settings": {name: value for name, value in told.items() if name not in {"model", *APART}},
        "pid": made.pid,
        "gpu": made.gpu,
        "batch": served.batch,
        "start_s": served.start_s,
        "end_s": served.end_s,
        "warm_up_calls": served.warm_up_calls,
        "warm_up_s": served.warm_up_s,
        "first_ms": served.first_ms,
        "images": served.images,
        "images_per_s": served.images_per_s,
        "images_per_s_in_calls": served.images_per_s_in_calls,
        **_latency(served.latency),
        "parts": {f"{part}_ms": getattr(served.parts, f"{part}_ms") for part in PARTS},
        "in_calls_share": served.in_calls_share,
        "gap_s": served.gap_s,
        "gap_parts": [_gap(part, location) for part in served.gap_parts],
        "groups": [_group(group) for group in served.groups],
        "gpu_busy_share": served.gpu_busy_share,
        "gpu_ms": served.gpu_ms,
        "joules_per_image": served.joules_per_image,
        "money_per_million_images": served.money_per_million,
        "predictors": made.predictors,
        "failed": made.failed,
    }


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _latency(latency: Latency) -> Json:
    """Return latencies; a quantile of too few calls is null, and so is its 95 % interval."""
    found: Json = {"calls": latency.calls, "mean_ms": latency.mean_ms, "worst_ms": latency.worst_ms}
    for name in ("p50", "p95", "p99"):
        quantile = getattr(latency, name)
        ends = (quantile.low_ms, quantile.high_ms)
        found[f"{name}_ms"] = quantile.value_ms
        found[f"{name}_interval_ms"] = None if None in ends else list(ends)
    return found


def _gap(part: GapPart, location: Callable[[CodeLocation], Json]) -> Json:
    where = None if part.where is None else location(part.where)
    return {"kind": part.kind, "seconds": part.seconds, "where": where, "waited_for": part.waited_for}


def _group(group: CallGroup) -> Json:
    return {"kind": group.kind, "label": group.label, "images": group.images, **_latency(group.latency)}

"""What the page's script is given: the packed columns, and everything that is drawn or looked up beside them."""

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import pandas as pd

from gpu_report import schema
from gpu_report.model import Analysis, EpochSummary, Finding, Phase
from gpu_report.render import happenings
from gpu_report.render.compose_findings import finding_title
from gpu_report.render.quantities import (
    CLOCK_EVENT_REASONS,
    EPOCH_DIGITS,
    EPOCH_QUANTITIES,
    LANES,
    Quantity,
    gpu_quantities,
    host_quantities,
)
from gpu_report.render.series import PackedColumn, pack_frame
from gpu_report.render.words import clean, known, sentence

Json = dict[str, Any]


def chart_data(analysis: Analysis) -> tuple[Json, str]:
    """Return the page's data as an object for JSON, and all packed columns as one base64 text."""
    blob = bytearray()
    gpus = [_gpu(analysis, index, blob) for index in _indexes(analysis)]
    host = _columns(pack_frame(analysis.run.host, _decimals(host_quantities())), blob)
    data: Json = {
        **_run(analysis),
        "gpus": gpus,
        "host": host,
        "quantities": _recorded(gpu_quantities(), [column for gpu in gpus for column in _all_columns(gpu)]),
        "host_quantities": _recorded(host_quantities(), host),
        "epoch_quantities": [asdict(quantity) for quantity in EPOCH_QUANTITIES],
        "lanes": [asdict(lane) for lane in LANES],
        "reasons": [[bit, words] for bit, words in CLOCK_EVENT_REASONS.items()],
        **_marks(analysis),
        "processes": _processes(analysis.run.processes),
    }
    return data, base64.b64encode(blob).decode("ascii")


def to_json(data: Mapping[str, Any]) -> str:
    """Return JSON that can stand in a script element; ValueError for a NaN, which JSON does not have."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _run(analysis: Analysis) -> Json:
    recording = analysis.run.recording
    return {
        "start_wall_s": round(analysis.run.start_wall_s, 3),
        "duration_s": round(analysis.run.duration_s, 3),
        "interval_s": known(recording.interval_s),
        "driver": recording.driver and clean(recording.driver),
        "cuda": recording.cuda and clean(recording.cuda),
        "kernel_read": analysis.run.kernel.status == "read",
    }


def _indexes(analysis: Analysis) -> list[int]:
    sampled = analysis.run.samples["gpu"].dropna().astype(int).unique().tolist()
    return sorted({*sampled, *(gpu.index for gpu in analysis.run.gpus)})


def _gpu(analysis: Analysis, index: int, blob: bytearray) -> Json:
    known_gpu = next((gpu for gpu in analysis.run.gpus if gpu.index == index), None)
    samples = analysis.run.samples
    columns = pack_frame(samples[samples["gpu"] == index], _decimals(gpu_quantities()))
    return {
        "index": index,
        "name": clean(known_gpu.name) if known_gpu and known_gpu.name else None,
        "memory_total_mib": known(known_gpu.memory_total_mib) if known_gpu else None,
        "power_limit_w": known(known_gpu.power_limit_w) if known_gpu else None,
        "columns": _columns(columns, blob),
        "rings": _rings(analysis.run.ring, index, blob),
    }


def _all_columns(gpu: Json) -> list[Json]:
    return [*gpu["columns"], *(column for packed in gpu["rings"].values() for column in packed)]


def _recorded(quantities: tuple[Quantity, ...], columns: list[Json]) -> list[Json]:
    names = {column["name"] for column in columns}
    return [asdict(quantity) for quantity in quantities if quantity.name in names]


def _rings(ring: pd.DataFrame, index: int, blob: bytearray) -> Json:
    """Return what the driver kept of each quantity of a GPU, each on its own time axis."""
    rings = {}
    for column in schema.RING_QUANTITIES:
        kept = ring[(ring["gpu"] == index) & ring[column.name].notna()]
        if not kept.empty:
            rings[column.name] = _columns(pack_frame(kept, {column.name: column.decimals}), blob)
    return rings


def _columns(columns: tuple[PackedColumn, ...], blob: bytearray) -> list[Json]:
    described = []
    for column in columns:
        place = {"offset": len(blob), "length": len(column.data)}
        kind = {"count": column.count, "dtype": column.dtype, "delta": column.delta, "decimals": column.decimals}
        described.append({"name": column.name, **place, **kind})
        blob += column.data
    return described


def _decimals(quantities: tuple[Quantity, ...]) -> dict[str, int]:
    return {quantity.name: quantity.decimals for quantity in quantities}


def _marks(analysis: Analysis) -> Json:
    sources = list(dict.fromkeys(phase.source for phase in analysis.phases))
    return {
        "phases": [_phase(phase, sources.index(phase.source)) for phase in analysis.phases],
        "phase_sources": sources,
        "epochs": [_epoch(epoch) for epoch in analysis.epochs],
        "low": [[i.gpu, *_span(i.start_t_s, i.end_t_s)] for i in analysis.low_intervals],
        "gaps": [[g.gpu, *_span(g.start_t_s, g.end_t_s)] for g in analysis.gaps],
        "findings": [_finding(f) for f in analysis.findings],
        "kernel": [_kernel_event(analysis, number) for number in range(len(analysis.run.kernel.events))],
        "happenings": [
            [round(event.t_s, 3), clean(happenings.WHAT.get(event.kind, event.kind)), clean(happenings.detail(event))]
            for event in happenings.marked(analysis.run.events)
        ],
    }


def _epoch(epoch: EpochSummary) -> list[Any]:
    """Return an epoch as a row: where it lies, then EPOCH_QUANTITIES in their order, null where not known."""
    values = (known(getattr(epoch, quantity.name)) for quantity in EPOCH_QUANTITIES)
    rounded = (None if value is None else float(f"{value:.{EPOCH_DIGITS}g}") for value in values)
    return [epoch.run, epoch.epoch, *_span(epoch.start_t_s, epoch.end_t_s), *rounded]


def _phase(phase: Phase, source: int) -> list[Any]:
    """Return a phase as a row; most have no detail, and a long run has thousands."""
    row = [phase.name, phase.epoch, *_span(phase.start_t_s, phase.end_t_s), source]
    return [*row, clean(phase.detail)] if phase.detail else row


def _finding(finding: Finding) -> Json:
    start, end = _span(finding.start_t_s, finding.end_t_s)
    return {
        "id": finding.id,
        "title": finding_title(finding),
        "drop": finding.level_pct is not None,
        "gpu": finding.gpu,
        "start": start,
        "end": end,
        "expected": finding.expected,
        "summary": clean(finding.summary),
    }


def _kernel_event(analysis: Analysis, number: int) -> Json:
    event = analysis.run.kernel.events[number]
    return {
        "t": round(event.t_s, 3),
        "severity": event.severity,
        "title": f"Xid {event.code}" if event.code is not None else event.kind,
        "meaning": clean(sentence(event.meaning)),
        "text": clean(event.text),
        "gpu": event.gpu,
        "count": event.count,
    }


def _span(start_s: float, end_s: float) -> tuple[float, float]:
    return round(start_s, 3), round(end_s, 3)


def _processes(frame: pd.DataFrame) -> list[list[Any]]:
    columns = ["t_s", "gpu", "pid", "name", "memory_used_mib", "change"]
    numbers = {"gpu": float, "pid": float, "memory_used_mib": float}
    rows = frame[columns].astype(numbers).sort_values("t_s", kind="stable")
    return [_process(row) for row in rows.itertuples(index=False, name=None)]


def _process(row: tuple[Any, ...]) -> list[Any]:
    t_s, gpu, pid, name, memory, change = row
    whole = [None if known(value) is None else int(value) for value in (gpu, pid)]
    named = clean(name) if isinstance(name, str) and name else None
    return [round(float(t_s), 3), *whole, named, known(memory), str(change)]

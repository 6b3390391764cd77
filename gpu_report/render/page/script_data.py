"""What the page's script is given: the packed columns, and everything that is drawn or looked up beside them."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from gpu_report.catalogue import RULES
from gpu_report.model import Analysis, Finding
from gpu_report.render import recorder_events
from gpu_report.render.formatting import clean, finding_title, known, sentence
from gpu_report.render.page.sections.code_time import flame_data
from gpu_report.render.page.sections.findings import finding_numbers
from gpu_report.render.page.sections.inference import latencies
from gpu_report.render.page.sections.overview import has_floor
from gpu_report.render.quantity_labels import (
    CLOCK_EVENT_REASONS,
    EPOCH_QUANTITIES,
    Quantity,
    gpu_quantities,
    host_quantities,
    lanes,
)
from gpu_report.render.samples.coarse_timeline import span_s
from gpu_report.render.samples.columns import Blob, GpuColumns, Packing
from gpu_report.render.samples.tables import tables

Json = dict[str, Any]


def chart_data(analysis: Analysis, packing: Packing | None = None) -> tuple[Json, str, str]:
    """Return the page's data as an object for JSON, and all packed columns as two texts, one behind the other.

    The first one, of `first_characters`, is all that the first picture of a long run needs. `packing` is that of the
    run's columns where it was begun before.
    """
    packing, blob = packing or Packing(analysis.run), Blob()
    overviews = {index: blob.put(columns.overview) for index, columns in packing.gpus().items()}
    first = {"host_overview": blob.put(packing.host_overview()), **tables(analysis, blob)}
    first["first_characters"], first_text = blob.characters(), blob.take()
    gpus = [
        _gpu(analysis, index, columns, blob) | {"overview": overviews[index]}
        for index, columns in packing.gpus().items()
    ]
    host = blob.put(packing.host())
    code = {"code": flame_data(analysis, blob)} if analysis.code_lines else {}
    latency = {"latency": latencies(analysis, blob)} if analysis.served else {}
    data: Json = {
        **_run(analysis),
        "gpus": gpus,
        "host": host,
        "span": [round(at, 3) for at in span_s(analysis.run)],
        "quantities": _recorded(gpu_quantities(), [column for gpu in gpus for column in _all_columns(gpu)]),
        "host_quantities": _recorded(host_quantities(), host),
        "epoch_quantities": [asdict(quantity) for quantity in EPOCH_QUANTITIES],
        "lanes": [asdict(lane) for lane in lanes(len(gpus))],
        "reasons": [[bit, words] for bit, words in CLOCK_EVENT_REASONS.items()],
        **_marks(analysis),
        **first,
        **code,
        **latency,
    }
    return data, first_text, blob.take()


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


def _gpu(analysis: Analysis, index: int, columns: GpuColumns, blob: Blob) -> Json:
    known_gpu = next((gpu for gpu in analysis.run.gpus if gpu.index == index), None)
    return {
        "index": index,
        "name": clean(known_gpu.name) if known_gpu and known_gpu.name else None,
        "memory_total_mib": known(known_gpu.memory_total_mib) if known_gpu else None,
        "power_limit_w": known(known_gpu.power_limit_w) if known_gpu else None,
        "columns": blob.put(columns.samples),
        "rings": {name: blob.put(ring) for name, ring in columns.rings.items()},
    }


def _all_columns(gpu: Json) -> list[Json]:
    return [*gpu["columns"], *(column for packed in gpu["rings"].values() for column in packed)]


def _recorded(quantities: tuple[Quantity, ...], columns: list[Json]) -> list[Json]:
    names = {column["name"] for column in columns}
    return [asdict(quantity) for quantity in quantities if quantity.name in names]


def _marks(analysis: Analysis) -> Json:
    numbers = finding_numbers(analysis)
    return {
        "low": [[i.gpu, *_span(*i.span)] for i in analysis.low_intervals],
        "gaps": [[g.gpu, *_span(*g.span)] for g in analysis.gaps],
        "findings": [
            _finding(one, gpu, analysis.options.drop_percent) | _number(numbers.get(all_of.id), place, all_of)
            for all_of in analysis.findings
            for place, one in enumerate(all_of.each, 1)
            for gpu in one.gpus or (one.gpu,)
        ],
        "kernel": [_kernel_event(analysis, number) for number in range(len(analysis.run.kernel.events))],
        "happenings": [
            [
                round(event.t_s, 3),
                clean(recorder_events.WHAT.get(event.kind, event.kind)),
                clean(recorder_events.detail(event)),
            ]
            for event in recorder_events.marked(analysis.run.events)
        ],
    }


def _number(number: int | None, place: int, all_of: Finding) -> Json:
    """Return the number that a finding has on its card, with a place behind it where it happened several times."""
    if number is None:
        return {}
    return {"number": f"{number}.{place}" if all_of.times > 1 else str(number)}


def _finding(finding: Finding, gpu: int | None, drop_percent: float) -> Json:
    floor = finding.level_pct * (1 - drop_percent / 100) if finding.level_pct and has_floor(finding) else None
    start, end = _span(*finding.span)
    return {
        "id": finding.id,
        "title": finding_title(finding),
        "severity": finding.severity,
        "drop": finding.level_pct is not None or RULES[finding.rule].at_epoch_ends,
        **({} if floor is None else {"floor": round(floor, 1)}),
        "gpu": gpu,
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

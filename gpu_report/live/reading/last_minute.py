"""What there is beside GPUs: the host, and how fast models answered in the last minute.

Read anew at each look, from the ends of files: nothing else needs their rows.
"""

import csv
import os
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any

from gpu_report import schema
from gpu_report.live.reading.tail import FileTail
from gpu_report.ordinary_file import LARGEST_HEADER, open_ordinary
from gpu_report.run_folder import finite

END_BYTES = 262_144  # of a file: a minute of calls of 2 ms each has 2 MB at most, of which the newest count
LAST_S = 60.0  # what the page calls the last minute
TAIL_SHARE = 0.95  # of calls: that many take no longer
MOST_TABLES = 16  # of processes
DRAWN = {"cpu_pct": "cpu_pct", "memory_used_mib": "host_memory_mib"}  # columns of host.csv, by what the page calls them
CALLS_AT_LEAST = 2  # of one nobody knows how many there are a second


def host_now(folder: Path, now_s: float, fresh_s: float) -> dict[str, Any] | None:
    """Return what the host did in the newest row of host.csv, None where that is older than `fresh_s`, or not there."""
    row = next(iter(deque(_end_of(folder / schema.HOST_CSV), maxlen=1)), {})
    at_s = _number(row, "wall_s")
    if at_s is None or abs(now_s - at_s) > fresh_s:
        return None
    used, free = _number(row, "memory_used_mib"), _number(row, "memory_available_mib")
    return {
        "mono_s": _number(row, "mono_s"),
        "cpu_pct": _number(row, "cpu_pct"),
        "main_cpu_pct": _number(row, "main_cpu_pct"),
        "memory_used_mib": used,
        "memory_total_mib": None if used is None or free is None else used + free,
    }


def host_recent(folder: Path, since_s: float) -> list[tuple[float, dict[str, float]]]:
    """Return what the page draws of the host: the readings of its rows from a moment (wall seconds) on."""
    rows = [(_number(row, "wall_s"), row) for row in _end_of(folder / schema.HOST_CSV)]
    readings = [(at_s, {name: _number(row, column) for column, name in DRAWN.items()}) for at_s, row in rows]
    return [
        (round(at_s, 2), {name: value for name, value in values.items() if value is not None})
        for at_s, values in readings
        if at_s is not None and at_s >= since_s
    ]


def calls_now(folder: Path, now_mono_s: float) -> dict[str, Any] | None:
    """Return the calls of models in the minute before a moment (the machine's monotonic clock), None without any."""
    tables = sorted(folder.glob(f"inside/*{schema.CALLS_SUFFIX}"))[:MOST_TABLES]
    found = [call for path in tables for call in _calls_of(path)]
    last_s = max((at_s for at_s, _ in found if at_s <= now_mono_s), default=now_mono_s)
    found = [(at_s, took) for at_s, took in found if now_mono_s - LAST_S <= at_s <= now_mono_s]
    took_ms = sorted(took for _, took in found)
    if len(took_ms) < CALLS_AT_LEAST:
        return None
    span_s = last_s - min(at_s for at_s, _ in found)
    return {
        "calls": len(took_ms),
        "per_s": round((len(took_ms) - 1) / span_s, 3) if span_s > 0 else None,
        "median_ms": round(median(took_ms), 2),
        "p95_ms": round(took_ms[min(int(TAIL_SHARE * len(took_ms)), len(took_ms) - 1)], 2),
    }


def _calls_of(path: Path) -> Iterator[tuple[float, float]]:
    for row in _end_of(path):
        at_s, took_ms = _number(row, "mono_s"), _number(row, "total_ms")
        if at_s is not None and took_ms is not None:
            yield at_s, took_ms


def _end_of(path: Path) -> Iterator[Mapping[str, str]]:
    """Yield the whole rows at the end of a CSV file, none where it is not there."""
    try:
        with open_ordinary(path) as file:
            header = file.readline(LARGEST_HEADER)
            begin = max(os.fstat(file.fileno()).st_size - END_BYTES, len(header) - 1, 0)
        whole = FileTail(path, begin).lines()  # not the rest of the line that it begins in: of the header, or of a row
    except OSError:
        return
    names = header.decode("utf-8-sig", "replace").strip().split(",")
    yield from csv.DictReader((line.decode("utf-8", "replace") for line in whole), names)


def _number(row: Mapping[str, str], name: str) -> float | None:
    try:
        return finite(float(row.get(name) or "nan"))
    except (TypeError, ValueError):
        return None

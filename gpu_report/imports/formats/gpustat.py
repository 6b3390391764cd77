"""gpustat's JSON, one document after the other: `while sleep 5; do gpustat --json; done >> gpustat.json`."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from gpu_report.errors import InputError
from gpu_report.imports.machines import refuse_several_nodes
from gpu_report.imports.parsing.each_log import read_each
from gpu_report.imports.parsing.fields import Field, converted, failures, not_imported
from gpu_report.imports.parsing.json_documents import Documents, damage, number
from gpu_report.imports.parsing.readings import EVERYTHING, Device, Failure, Found, Readings
from gpu_report.imports.parsing.text_file import read_text
from gpu_report.imports.selection import Selection
from gpu_report.ordinary_file import LARGEST_INDEX

TOOL: Final = "gpustat"
HOW: Final = "log with `while sleep 5; do gpustat --json; done >> gpustat.json`"
# gpustat/core.py: memory in MiB, power in whole W.
FIELDS: Final[Mapping[str, Field]] = {
    "utilization.gpu": Field("gpu_util_pct"),
    "memory.used": Field("memory_used_mib"),
    "power.draw": Field("power_w"),
    "temperature.gpu": Field("temperature_c"),
}
_DEVICE: Final = {"memory.total": "memory_total_mib", "enforced.power.limit": "power_limit_w"}
_FIRST_YEAR: Final = 1970  # a clock that was never set begins there
_LOST: Final = "((GPU is lost))"  # in place of a name, without any reading
_KNOWN: Final = frozenset({"index", "uuid", "name", "processes"})


def is_log(_: Path, head: str) -> bool:
    """Tell whether a file's first lines are gpustat's, or of a loop that writes more than gpustat does."""
    return '"query_time"' in head and '"gpus"' in head


@dataclass
class _GpustatRows:
    """What a log's documents said so far, a list a column; `hosts` are those of all logs."""

    hosts: dict[str, None]
    node: str | None
    stamps: list[float] = field(default_factory=list)
    gpus: list[int] = field(default_factory=list)
    cells: dict[str, list[object]] = field(default_factory=lambda: {name: [] for name in FIELDS})
    processes: list[tuple[float, int, float, str, float, float]] = field(default_factory=list)
    devices: dict[int, Device] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    lost: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    dropped: int = 0


def read(paths: Sequence[Path], selection: Selection) -> Found:
    """Return all documents of all logs; InputError where none can be used, and where they are of several machines."""
    hosts: dict[str, None] = {}
    node = dict(selection.labels).get("node")
    logs, left_out = read_each(paths, lambda path: _read(path, _GpustatRows(hosts, node)), HOW)
    if node is None:
        refuse_several_nodes(list(hosts))
    looks = [each for rows, _ in sorted(logs, key=lambda log: log[0].stamps[0]) for each in rows.processes]
    columns = ["stamp_s", "gpu", "pid", "name", "memory_used_mib", "gpu_util_pct"]
    unknown = {name for rows, _ in logs for name in rows.unknown}
    problems = (*left_out, *(problem for _, said in logs for problem in said), *not_imported(TOOL, unknown))
    return Found(
        TOOL,
        HOW,
        [_table(rows) for rows, _ in logs],
        problems,
        in_utc=False,
        processes=pd.DataFrame(looks, columns=columns),
        host_name=node or next(iter(hosts), None),
    )


def _table(rows: _GpustatRows) -> Readings:
    gpu = np.array(rows.gpus, dtype=np.int64)
    quantities = {
        field.column: converted(np.array([number(value) for value in rows.cells[name]], dtype=float), field)
        for name, field in FIELDS.items()
    }
    lost = (Failure(index, EVERYTHING, "GPU is lost", np.array(at)) for index, at in rows.lost.items())
    failed = (*failures(quantities, gpu, "null"), *lost)
    return Readings(np.array(rows.stamps), gpu, quantities, failed, rows.devices, rows.dropped)


def _read(path: Path, rows: _GpustatRows) -> tuple[_GpustatRows, tuple[str, ...]]:
    documents = Documents(read_text(path, TOOL))
    for document in documents:
        stamp_s = _stamp_s(document.get("query_time"))
        gpus = document.get("gpus")
        if stamp_s is None or not isinstance(gpus, list):
            documents.damaged += 1
            continue
        host = _text(document.get("hostname"))
        if host is not None:
            rows.hosts[host] = None
        if rows.node not in {None, host}:
            continue
        for gpu in gpus:
            _add(rows, stamp_s, gpu, document.get("driver_version"))
    if not rows.stamps:
        of = f" of {rows.node}" if rows.node else ""
        raise InputError(f"{path} holds no document of gpustat{of} with a time and GPUs: {HOW}")
    return rows, damage(path, documents)


def _add(rows: _GpustatRows, stamp_s: float, gpu: object, driver: object) -> None:
    """Add what a document says of a GPU; of one that is lost it says no more than index and name."""
    index = gpu.get("index") if isinstance(gpu, dict) else None
    if not isinstance(gpu, dict) or not isinstance(index, int) or not 0 <= index <= LARGEST_INDEX:
        rows.dropped += 1
        return
    if gpu.get("name") == _LOST:
        rows.lost[index].append(len(rows.stamps))
    rows.stamps.append(stamp_s)
    rows.gpus.append(index)
    for name, cells in rows.cells.items():
        cells.append(gpu.get(name))
    if index not in rows.devices and "uuid" in gpu:
        rows.devices[index] = _device(gpu, driver)
        rows.unknown |= gpu.keys() - FIELDS.keys() - _DEVICE.keys() - _KNOWN
    processes = gpu.get("processes")
    if isinstance(processes, list):  # null where the driver does not say
        rows.processes += _looks(stamp_s, index, processes)


def _device(gpu: Mapping[str, Any], driver: object) -> Device:
    numbers = {ours: number(gpu.get(name)) for name, ours in _DEVICE.items()}
    known = {name: value if np.isfinite(value) else None for name, value in numbers.items()}
    return {**known, "uuid": _text(gpu.get("uuid")), "name": _text(gpu.get("name")), "driver": _text(driver)}


def _looks(stamp_s: float, gpu: int, processes: list[Any]) -> list[tuple[float, int, float, str, float, float]]:
    """Return a row a process, without a pid where there is none."""
    nan = float("nan")
    found = [
        (
            stamp_s,
            gpu,
            number(each.get("pid")),
            _text(each.get("command")) or "",
            number(each.get("gpu_memory_usage")),
            nan,
        )
        for each in processes
        if isinstance(each, dict)
    ]
    return found or [(stamp_s, gpu, nan, "", nan, nan)]


def _stamp_s(text: object) -> float | None:
    """Return a document's time, a local one without a zone, in seconds as if it were UTC."""
    try:
        local = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return local.replace(tzinfo=UTC).timestamp() if local.year >= _FIRST_YEAR else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None

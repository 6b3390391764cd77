"""`nvidia-smi -l 5 > log.txt`: the table for people, again and again.

    Sat Nov 21 01:05:51 2026
    | NVIDIA-SMI 580.159.04             Driver Version: 580.159.04     CUDA Version: 13.0     |
    |   0  NVIDIA H200                    On  |   00000000:01:00.0 Off |                    0 |
    | N/A   34C    P0             79W /  700W |       0MiB / 143771MiB |      0%      Default |
    |    0   N/A  N/A            1234      C   python3                                 512MiB |

Widths differ from driver to driver; before 450 a process has no GI and CI, and bus ids have four digits before 375.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from gpu_report.errors import InputError
from gpu_report.imports.formats.nvidia_smi.file import NO_GPU
from gpu_report.imports.formats.nvidia_smi.table import gpus_lost, lost
from gpu_report.imports.parsing.each_log import read_each
from gpu_report.imports.parsing.fields import Field, converted, failures, not_imported
from gpu_report.imports.parsing.json_documents import number
from gpu_report.imports.parsing.readings import EVERYTHING, Device, Failure, Found, Readings
from gpu_report.imports.parsing.text_file import read_text
from gpu_report.imports.selection import Selection
from gpu_report.imports.times import local_time
from gpu_report.ordinary_file import LARGEST_INDEX

TOOL: Final = "nvidia-smi table"
HOW: Final = "log with `nvidia-smi -l 5 > log.txt`"
# What stands in a GPU's second line, in this order of its groups; N/A and ERR! match none of them.
FIELDS: Final[Mapping[str, Field]] = {
    "temp": Field("temperature_c"),
    "perf": Field("performance_state"),
    "usage": Field("power_w"),
    "memory": Field("memory_used_mib"),
    "util": Field("gpu_util_pct"),
}
_CELLS: Final[Mapping[str, re.Pattern[str]]] = {
    "temp": re.compile(r"\b(\d{1,3})C\b"),
    "perf": re.compile(r"\bP(\d{1,2})\b"),
    "usage": re.compile(r"\b(\d{1,5})W +/"),
    "cap": re.compile(r"/ {1,9}(\d{1,5})W\b"),
    "memory": re.compile(r"\b(\d{1,9})MiB +/"),
    "total": re.compile(r"/ {1,9}(\d{1,9})MiB\b"),
    "util": re.compile(r"\b(\d{1,3})% {1,40}\S{1,40} *\|$"),
}
_WITHOUT_A_PLACE: Final = ("Compute M.", "Fan", "Volatile Uncorr. ECC")
_MIG: Final = "MIG devices"
_STAMP: Final = (
    r"^[A-Z][a-z]{2} (?P<month>[A-Z][a-z]{2}) +(?P<day>\d{1,2}) (?P<clock>\d\d:\d\d:\d\d) (?P<year>\d{4})\s*$"
)
_PART: Final = re.compile(
    _STAMP + r"|^\| NVIDIA-SMI [^\n]*?Driver Version: (?P<driver>[\d.]+)"
    r"|^\| +(?P<gpu>\d{1,5})  +(?P<name>\S[^|\n]{0,99}?) {1,99}(?:On|Off|N/A|WDDM|TCC|MCDM) {0,99}\| {0,99}"
    r"(?P<bus>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)[^\n]*\n(?P<cells>\|[^\n]*\|)$"
    r"|^(?P<lost>(?:" + "|".join(map(re.escape, NO_GPU)) + r")[^\n]*)$"
    r"|^\| Processes:[^\n]*\n(?P<processes>(?:\|[^\n]*\n)+)\+-",
    re.MULTILINE,
)
_PROCESS: Final = re.compile(
    r"^\| {1,99}(?P<gpu>\d{1,5}) {1,99}(?:\S{1,9} {1,99}\S{1,9} {1,99})?(?P<pid>\d{1,10}) {1,99}[CGM+]{1,5} {1,99}"
    r"(?P<name>\S[^|\n]{0,999}?) {1,999}(?P<memory>\d{1,9}MiB|N/A) *\|$",
    re.MULTILINE,
)
_SHOWN: Final = 80  # characters of a line that is quoted
_LEAST_TABLES: Final = 2  # one is of one moment


@dataclass
class _ScreenRows:
    """What a log's tables said so far, a list a column; `stamp_s` is that of the table that is being read."""

    stamp_s: float = float("nan")
    driver: str | None = None
    stamps: list[float] = field(default_factory=list)
    gpus: list[int] = field(default_factory=list)
    cells: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    devices: dict[int, Device] = field(default_factory=dict)
    looks: list[tuple[float, int, float, str, float, float]] = field(default_factory=list)
    in_table: list[int] = field(default_factory=list)
    lost: dict[tuple[int, int], str] = field(default_factory=dict)


def is_log(_: Path, head: str) -> bool:
    """Tell whether a file begins with more than one table, each with its time."""
    return "| NVIDIA-SMI " in head and len(re.findall(_STAMP, head, re.MULTILINE)) >= _LEAST_TABLES


def read(paths: Sequence[Path], _: Selection) -> Found:
    """Return all tables of all logs; InputError where none can be used."""
    logs, left_out = read_each(paths, _read, HOW)
    looks = [look for rows, _ in sorted(logs, key=lambda log: log[0].stamps[0]) for look in rows.looks]
    columns = ["stamp_s", "gpu", "pid", "name", "memory_used_mib", "gpu_util_pct"]
    unknown = {name for _, unknown in logs for name in unknown}
    return Found(
        TOOL,
        HOW,
        [_table(rows) for rows, _ in logs],
        (*left_out, *not_imported(TOOL, unknown)),
        in_utc=False,
        processes=pd.DataFrame(looks, columns=columns),
    )


def _read(path: Path) -> tuple[_ScreenRows, set[str]]:
    text = read_text(path, TOOL)
    rows = _ScreenRows()
    for part in _PART.finditer(text):
        if part["year"]:
            _begin(rows, part)
        elif part["driver"]:
            rows.driver = part["driver"]
        elif part["gpu"]:
            _add_gpu(rows, part)
        elif part["lost"]:
            _lose(rows, part["lost"])
        else:
            rows.looks += _looks(rows, part["processes"])
    if not rows.stamps:
        raise InputError(f"{path} has no table of nvidia-smi with a time and GPUs: {HOW}")
    return rows, {*_WITHOUT_A_PLACE, *([_MIG] if f"| {_MIG}:" in text else [])}


def _begin(rows: _ScreenRows, part: re.Match[str]) -> None:
    local = local_time(int(part["year"]), part["month"], part["day"], part["clock"])
    rows.stamp_s = local.replace(tzinfo=UTC).timestamp() if local else float("nan")
    rows.in_table = []


def _add_gpu(rows: _ScreenRows, part: re.Match[str]) -> None:
    gpu = int(part["gpu"])
    if gpu > LARGEST_INDEX or not np.isfinite(rows.stamp_s):
        return
    found = {name: pattern.search(part["cells"]) for name, pattern in _CELLS.items()}
    values = {name: float(each[1]) if each else float("nan") for name, each in found.items()}
    rows.stamps.append(rows.stamp_s)
    rows.gpus.append(gpu)
    rows.in_table.append(gpu)
    for name in FIELDS:
        rows.cells[name].append(values[name])
    if gpu not in rows.devices:
        known = {ours: values[name] for ours, name in (("memory_total_mib", "total"), ("power_limit_w", "cap"))}
        numbers = {name: value if np.isfinite(value) else None for name, value in known.items()}
        rows.devices[gpu] = {**numbers, "name": part["name"], "pci_bus_id": part["bus"], "driver": rows.driver}


def _lose(rows: _ScreenRows, line: str) -> None:
    """Note which GPUs are gone after their last rows."""
    for gpu in gpus_lost(line, rows.devices):
        last = len(rows.gpus) - 1 - rows.gpus[::-1].index(gpu)
        rows.lost.setdefault((gpu, last), lost(line.strip()[:_SHOWN]))


def _looks(rows: _ScreenRows, processes: str) -> Iterator[tuple[float, int, float, str, float, float]]:
    """Yield a row a process of a whole list, and one without a pid of each GPU that has none."""
    nan = float("nan")
    seen = set()
    for each in _PROCESS.finditer(processes):
        seen.add(int(each["gpu"]))
        memory_mib = number(each["memory"].removesuffix("MiB"))
        yield rows.stamp_s, int(each["gpu"]), float(each["pid"]), each["name"], memory_mib, nan
    yield from ((rows.stamp_s, gpu, nan, "", nan, nan) for gpu in rows.in_table if gpu not in seen)


def _table(rows: _ScreenRows) -> Readings:
    gpu = np.array(rows.gpus, dtype=np.int64)
    quantities = {field.column: converted(np.array(rows.cells[name]), field) for name, field in FIELDS.items()}
    gone = (Failure(index, EVERYTHING, reason, np.array([row])) for (index, row), reason in rows.lost.items())
    failed = (*failures(quantities, gpu, "N/A"), *gone)
    return Readings(np.array(rows.stamps), gpu, quantities, failed, rows.devices)

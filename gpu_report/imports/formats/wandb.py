"""Weights & Biases' system metrics: the local `run-ID.wandb`, or rows of `run.history(stream="events")` as CSV or JSON.

wandb averages nothing: a row is a moment, every 15 s by default. The history has 500 rows unless more are asked for.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from gpu_report.errors import InputError
from gpu_report.imports.formats.wandb_file import MAGIC, read_records
from gpu_report.imports.parsing.csv_file import read_columns
from gpu_report.imports.parsing.fields import BYTES_PER_MIB, Field
from gpu_report.imports.parsing.json_documents import Documents, damage, number
from gpu_report.imports.parsing.readings import Found
from gpu_report.imports.parsing.series import Gathered, SeriesPlace, gather_each
from gpu_report.imports.parsing.text_file import read_head, read_text
from gpu_report.imports.selection import Selection

TOOL: Final = "Weights & Biases"
HOW: Final = 'name wandb/run-.../run-ID.wandb, or save `run.history(stream="events", samples=100000)` as CSV'
# https://docs.wandb.ai/ref/python/experiments/system-metrics; memoryAllocated is a share of memoryAllocatedBytes, and
# `cpu` is of the process. smActive and its like are in %, as seen beside a recording on an H100.
FIELDS: Final[Mapping[str, Field]] = {
    "gpu": Field("gpu_util_pct"),
    "memory": Field("memory_util_pct"),
    "memoryAllocatedBytes": Field("memory_used_mib", 1 / BYTES_PER_MIB),
    "powerWatts": Field("power_w"),
    "enforcedPowerLimitWatts": Field("power_limit_w"),
    "energyJoules": Field("energy_j"),
    "temp": Field("temperature_c"),
    "smClock": Field("sm_clock_mhz"),
    "memoryClock": Field("memory_clock_mhz"),
    "pcieTxBytes": Field("pcie_tx_mib_s", 1 / BYTES_PER_MIB),
    "pcieRxBytes": Field("pcie_rx_mib_s", 1 / BYTES_PER_MIB),
    "nvlinkTxBytes": Field("nvlink_tx_mib_s", 1 / BYTES_PER_MIB),
    "nvlinkRxBytes": Field("nvlink_rx_mib_s", 1 / BYTES_PER_MIB),
    "smActive": Field("sm_active_pct"),
    "smOccupancy": Field("sm_occupancy_pct"),
    "pipeTensorActive": Field("tensor_active_pct"),
    "dramActive": Field("dram_active_pct"),
}
HOST_FIELDS: Final[Mapping[str, Field]] = {"proc.memory.availableMB": Field("memory_available_mib")}
_GPU: Final = re.compile(r"gpu\.(?P<gpu>\d{1,5})\.(?P<metric>\w+)")
_NODE: Final = re.compile(r"(?P<name>.+)/l:(?P<node>.+)")
_STAMP: Final = "_timestamp"
_CHARTED: Final = re.compile(r"(?:system\.)?gpu\.\d+\.gpu\b")


def is_log(path: Path, head: str) -> bool:
    """Tell whether a file is wandb's own, or holds rows with its names, or a folder is of a run."""
    return bool(_logs_in(path)) or head.startswith(MAGIC) or (_STAMP in head and _CHARTED.search(head) is not None)


def read(paths: Sequence[Path], selection: Selection) -> Found:
    """Return the system metrics of all logs; InputError where none has any."""
    files = [each for path in paths for each in _logs_in(path) or [path]]
    return gather_each(files, _read, TOOL, HOW, selection)


def _logs_in(path: Path) -> list[Path]:
    """Return wandb's own files in the folder of a run."""
    return sorted(path.glob("run-*.wandb")) if path.is_dir() else []


def _read(path: Path, gathered: Gathered) -> tuple[str, ...]:
    if read_head(path).startswith(MAGIC):
        for stamp_s, items in read_records(path):
            for name, value in items:
                gathered.add(_placed(name), stamp_s, value)
        return ()
    text_begins = read_text(path, TOOL).lstrip()[:1]
    if text_begins in {"{", "["}:
        documents = Documents(read_text(path, TOOL))
        for document in documents:
            for row in _rows(document):
                _add_row(gathered, row)
        return damage(path, documents)
    columns = read_columns(path, TOOL, HOW)
    if _STAMP not in columns:
        raise InputError(f"{path} has no column {_STAMP}: {HOW}")
    for name, values in columns.items():
        if not name.startswith(("_", "Unnamed")):
            gathered.add_all(_placed(name), columns[_STAMP], values)
    return ()


def _rows(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of a document: itself, or of columns, as `DataFrame.to_json` writes them."""
    stamps = document.get(_STAMP)
    if not isinstance(stamps, dict):
        yield document
        return
    columns = {name: cells for name, cells in document.items() if isinstance(cells, dict)}
    for row in stamps:
        yield {name: cells.get(row) for name, cells in columns.items()}


def _add_row(gathered: Gathered, row: Mapping[str, Any]) -> None:
    stamp_s = number(row.get(_STAMP))
    for name, value in row.items():
        if not name.startswith("_") and not isinstance(value, dict | list | str):
            gathered.add(_placed(name), stamp_s, number(value))


@lru_cache(maxsize=10_000)
def _placed(name: str) -> SeriesPlace:
    """Return where a metric belongs."""
    short = name.removeprefix("system.").removeprefix("system/")
    node = _NODE.fullmatch(short)
    short = node["name"] if node else short
    found = _GPU.fullmatch(short)
    if found is None:
        return SeriesPlace(short, node and node["node"], None, HOST_FIELDS.get(short))
    return SeriesPlace(
        f"gpu.N.{found['metric']}", node and node["node"], int(found["gpu"]), FIELDS.get(found["metric"])
    )

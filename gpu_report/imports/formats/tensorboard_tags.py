"""Which tags of TensorBoard hold readings of a GPU, and in which column of samples.csv they belong.

`GPU/Utilization (%)` and `GPU/Memory Used (GB)` are those of a callback that many tutorials copy: one reading at the
start of each epoch, by pynvml. Others name the GPU by its index, as in `gpu0/power_w/mean`, which `export` writes.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gpu_report import schema
from gpu_report.ordinary_file import LARGEST_INDEX
from gpu_report.wording import MIB_PER_GIB

_NAMED: Final = {each.name for each in schema.GPU_QUANTITIES}
_OURS: Final = re.compile(r"gpu(?P<gpu>\d{1,5})/(?P<name>\w+)/mean")
_TAG: Final = re.compile(r"gpu[ _:]?(?P<gpu>\d{1,5})?/(?P<what>[\w .]+?) ?(?:\((?P<unit>[^()]*)\))?", re.IGNORECASE)


def _same(value: float) -> float:
    return value


def _from_gib(value: float) -> float:
    return value * MIB_PER_GIB


# By what a tag says, in small letters, and its unit: the column, and what makes the value one of it. What such
# callbacks call GB is bytes / 1024**3.
_COLUMNS: Final[dict[tuple[str, str], tuple[str, Callable[[float], float]]]] = {
    ("utilization", "%"): ("gpu_util_pct", _same),
    ("utilisation", "%"): ("gpu_util_pct", _same),
    ("memory used", "gb"): ("memory_used_mib", _from_gib),
    ("memory used", "gib"): ("memory_used_mib", _from_gib),
    ("memory used", "mb"): ("memory_used_mib", _same),
    ("memory used", "mib"): ("memory_used_mib", _same),
    ("power", "w"): ("power_w", _same),
    ("temperature", "c"): ("temperature_c", _same),
    ("temperature", "°c"): ("temperature_c", _same),
}


@dataclass(frozen=True)
class GpuTag:
    """Of which GPU a tag's values are, and in which column they belong once `converted`."""

    gpu: int
    column: str
    converted: Callable[[float], float]


def gpu_tag(tag: str) -> GpuTag | None:
    """Return what a tag holds of a GPU, None where it holds nothing of one; without a number it is GPU 0."""
    if (ours := _OURS.fullmatch(tag)) and ours["name"] in _NAMED:
        return _of_index(int(ours["gpu"]), ours["name"], _same)
    found = _TAG.fullmatch(tag)
    if found is None:
        return None
    column = _COLUMNS.get((found["what"].lower(), (found["unit"] or "").lower()))
    return _of_index(int(found["gpu"] or 0), *column) if column else None


def _of_index(gpu: int, column: str, converted: Callable[[float], float]) -> GpuTag | None:
    return GpuTag(gpu, column, converted) if gpu <= LARGEST_INDEX else None

"""What the columns of `nvidia-smi --query-gpu` are called, and how a cell of each is read."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from gpu_report.imports.parsing.fields import LARGEST

QUERY: Final = (
    "nvidia-smi --query-gpu=timestamp,index,uuid,name,pci.bus_id,utilization.gpu,utilization.memory,memory.used,"
    "memory.total,power.draw,power.limit,temperature.gpu,clocks.current.sm,clocks.current.memory,pstate,"
    "clocks_event_reasons.active,pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max "
    "--format=csv -l 1"
)
NEEDED: Final = ("timestamp", "utilization.gpu")

# A quantity of samples.csv and the columns that hold it; where several do, the first that has readings is taken.
QUANTITY_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "gpu_util_pct": ("utilization.gpu",),
    "memory_util_pct": ("utilization.memory",),
    "memory_used_mib": ("memory.used",),
    "memory_reserved_mib": ("memory.reserved",),
    # The 1 s average is what NVML's power call gives on Ampere and later, and what the recorder writes.
    "power_w": ("power.draw.average", "power.draw", "power.draw.instant"),
    "temperature_c": ("temperature.gpu",),
    "sm_clock_mhz": ("clocks.current.sm", "clocks.sm"),
    "memory_clock_mhz": ("clocks.current.memory", "clocks.mem"),
    "performance_state": ("pstate",),
    "clock_event_reasons": ("clocks_event_reasons.active", "clocks_throttle_reasons.active"),
    "pcie_link_generation": ("pcie.link.gen.gpucurrent", "pcie.link.gen.current"),
    "pcie_link_width": ("pcie.link.width.current",),
}
DEVICE_NUMBERS: Final[Mapping[str, tuple[str, ...]]] = {
    "memory_total_mib": ("memory.total",),
    "power_limit_w": ("enforced.power.limit", "power.limit"),
    "max_sm_clock_mhz": ("clocks.max.sm",),
    "max_memory_clock_mhz": ("clocks.max.memory", "clocks.max.mem"),
    "max_pcie_link_generation": ("pcie.link.gen.max",),
    "max_pcie_link_width": ("pcie.link.width.max",),
    "gpu_max_pcie_link_generation": ("pcie.link.gen.gpumax",),
}
DEVICE_TEXTS: Final[Mapping[str, tuple[str, ...]]] = {
    "uuid": ("uuid", "gpu_uuid"),
    "pci_bus_id": ("pci.bus_id", "gpu_bus_id"),
    "name": ("name", "gpu_name"),
    "mig_enabled": ("mig.mode.current",),
    "driver": ("driver_version",),
}
_LARGEST_OTHER: Final = 2.0**53  # beyond it a float no longer holds every whole number, and no quantity gets there

# The unit that nvidia-smi gives a quantity in, by how ours ends; temperature has none, or C.
_UNITS: Final[Mapping[str, str]] = {"_pct": "%", "_mib": "mib", "_w": "w", "_mhz": "mhz", "_c": "c"}
_QUANTITY_OF: Final[Mapping[str, str]] = {
    column: quantity for quantity, columns in (*QUANTITY_COLUMNS.items(), *DEVICE_NUMBERS.items()) for column in columns
}
_STRUCTURE: Final = frozenset({"timestamp", "index"})
_UNIT: Final = re.compile(r"\s*\[([^\]]*)\]\s*$")
_NUMBER: Final = re.compile(r"(\d{1,17}(?:\.\d{1,9})?)(?: ?([%A-Za-z/]{1,8}))?")
_STATE: Final = re.compile(r"[Pp](\d{1,2})")
_MASK: Final = re.compile(r"0x([0-9a-fA-F]{1,16})")


def column_name(header_cell: str) -> str:
    """Return the query's name of a header cell: `memory.used [MiB]` is memory.used.

    One in a unit that is not nvidia-smi's keeps that in its name, and is no column that is read.
    """
    whole = header_cell.strip().strip('"').lower()
    name, unit = _UNIT.sub("", whole), _UNIT.search(whole)
    return name if unit is None or _is_unit_of(_QUANTITY_OF.get(name, ""), unit[1].strip()) else whole


def _is_unit_of(quantity: str, unit: str) -> bool:
    """Tell whether a unit is the one that a quantity is given in, or nobody reads the quantity as a number with one."""
    expected = next((known for end, known in _UNITS.items() if quantity.endswith(end)), None)
    return expected in {None, unit.lower()}


def in_other_units(columns: Iterable[str]) -> list[str]:
    """Return the columns that would be read but for their unit, each with it: utilization.gpu [quux]."""
    return [name for name in columns if _UNIT.search(name) and _UNIT.sub("", name) in _QUANTITY_OF]


def without_a_place(columns: Iterable[str]) -> set[str]:
    """Return the columns that a run has no place for, but for those that are left out for their unit."""
    named = {
        name for each in (QUANTITY_COLUMNS, DEVICE_NUMBERS, DEVICE_TEXTS) for names in each.values() for name in names
    }
    return {name for name in columns if name and name not in named | _STRUCTURE and _UNIT.sub("", name) not in named}


def read_cell(quantity: str, cell: str) -> float | None:
    """Return the number in a cell, with or without its unit, or None for `[N/A]`, ERR!, other units and all else."""
    text = cell.strip()
    if quantity == "performance_state" and (found := _STATE.fullmatch(text)):
        value = float(found[1])
    elif quantity == "clock_event_reasons" and (found := _MASK.fullmatch(text)):
        value = float(int(found[1], 16))
    elif (found := _NUMBER.fullmatch(text)) and (found[2] is None or _is_unit_of(quantity, found[2])):
        value = float(found[1])
    else:
        return None
    no_link = value == 0 and "pcie_link" in quantity  # each link has lanes: 0 is no reading
    return None if no_link or value > LARGEST.get(quantity, _LARGEST_OTHER) else value


def read_text(cell: str) -> str | None:
    """Return a cell's text, or None where nvidia-smi says that it has none (`[N/A]`, `ERR!`)."""
    text = cell.strip()
    return None if not text or text.startswith("[") or text in ("N/A", "ERR!") else text

"""How each recorded quantity is called, and in which lane of the timeline it stands."""

from dataclasses import dataclass

from gpu_report import schema


@dataclass(frozen=True)
class Quantity:
    """A recorded quantity as the page names it; `lane` is its place from the top of the timeline, None without one."""

    name: str
    label: str
    unit: str
    decimals: int
    lane: int | None = None


_UNITS = {"pct": "%", "mib": "MiB", "w": "W", "j": "J", "c": "°C", "mhz": "MHz"}
_LABELS = {
    "gpu_util_pct": "GPU utilisation",
    "memory_util_pct": "Memory utilisation",
    "memory_used_mib": "Memory used",
    "memory_reserved_mib": "Memory reserved",
    "power_w": "Power",
    "energy_j": "Energy counter",
    "temperature_c": "Temperature",
    "sm_clock_mhz": "SM clock",
    "memory_clock_mhz": "Memory clock",
    "performance_state": "Performance state",
    "clock_event_reasons": "Clock event reasons",
    "cpu_pct": "Host CPU",
    "cpu_busiest_core_pct": "Busiest core",
    "iowait_pct": "Waiting for input or output",
    "memory_available_mib": "Memory available",
}
_GPU_LANES = ("gpu_util_pct", "memory_used_mib", "power_w", "temperature_c", "sm_clock_mhz")
_HOST_LANES = ("cpu_pct",)

# nvmlClocksEventReason* of nvml.h (reference/nvml.md): why the clocks are where they are, by bit.
CLOCK_EVENT_REASONS = {
    0x1: "GPU idle",
    0x2: "application clocks",
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
    0x100: "display clock",
}


def gpu_quantities() -> tuple[Quantity, ...]:
    """Return the quantities of a GPU in the order of the schema."""
    return tuple(_quantity(column, _GPU_LANES) for column in schema.GPU_QUANTITIES)


def host_quantities() -> tuple[Quantity, ...]:
    """Return the quantities of the host in the order of the schema."""
    return tuple(_quantity(column, _HOST_LANES) for column in schema.HOST_QUANTITIES)


def _quantity(column: schema.Column, lanes: tuple[str, ...]) -> Quantity:
    label = _LABELS.get(column.name, column.name.replace("_", " ").capitalize())
    unit = _UNITS.get(column.name.rpartition("_")[2], "")
    lane = lanes.index(column.name) if column.name in lanes else None
    return Quantity(column.name, label, unit, column.decimals, lane)

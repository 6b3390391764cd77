"""How each recorded quantity is called, and what stands in the lanes of the timeline."""

from dataclasses import dataclass
from typing import Literal

from gpu_report import schema


@dataclass(frozen=True)
class Quantity:
    """A recorded quantity as the page names it; `digits` are the significant ones of it, 0 for all."""

    name: str
    label: str
    unit: str
    decimals: int
    digits: int = 0


@dataclass(frozen=True)
class Lane:
    """A lane of the timeline: the quantities that are drawn in it, and more that its read-out gives.

    `kind` says whose quantities they are: each GPU's, the host's, or an epoch's. `heat`: of many GPUs a heat strip, a
    row for each, in place of a line for each.
    """

    kind: Literal["gpu", "host", "epoch"]
    title: str
    drawn: tuple[str, ...]
    told: tuple[str, ...] = ()
    heat: bool = False


# By the end of a column's name; the longer of two that fit stands first.
_UNITS = {"mib_s": "MiB/s", "pct": "%", "mib": "MiB", "mhz": "MHz", "w": "W", "j": "J", "c": "°C", "s": "s"}
_OF_ONE_CORE = frozenset({"main_cpu_pct", "busiest_worker_cpu_pct", "workers_cpu_pct"})
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
    "memory_temperature_c": "Memory temperature",
    "sm_active_pct": "SM activity",
    "sm_occupancy_pct": "SM occupancy",
    "tensor_active_pct": "Tensor core activity",
    "dram_active_pct": "Memory bandwidth",
    "pcie_tx_mib_s": "PCIe, from the GPU",
    "pcie_rx_mib_s": "PCIe, to the GPU",
    "nvlink_tx_mib_s": "NVLink, from the GPU",
    "nvlink_rx_mib_s": "NVLink, to the GPU",
    "power_cap_s": "power cap",
    "sw_thermal_slowdown_s": "heat (driver)",
    "hw_thermal_slowdown_s": "heat (board)",
    "power_brake_s": "power brake",
    "pcie_link_generation": "PCIe generation",
    "pcie_link_width": "PCIe lanes",
    "cpu_pct": "Host CPU",
    "cpu_busiest_core_pct": "Busiest core",
    "iowait_pct": "Idle in I/O wait",
    "cpu_steal_pct": "Taken by the hypervisor (steal)",
    "memory_available_mib": "Memory available",
    "cpu_pressure_pct": "Waiting for a core",
    "io_pressure_pct": "Waiting for I/O",
    "io_full_pressure_pct": "All waiting for I/O",
    "memory_pressure_pct": "Waiting for memory",
    "cgroup_cpu_pressure_pct": "Cgroup waiting for a core",
    "cgroup_io_pressure_pct": "Cgroup waiting for I/O",
    "cgroup_memory_pressure_pct": "Cgroup waiting for memory",
    "cgroup_memory_used_mib": "Memory of the cgroup",
    "swap_in_mib_s": "Read from swap",
    "disk_read_mib_s": "Read from disks",
    "shm_free_mib": "Free in /dev/shm",
    "main_cpu_pct": "Main process",
    "busiest_worker_cpu_pct": "Busiest worker",
    "workers_cpu_pct": "All workers",
    "workers": "Workers",
    "main_cores": "Cores of the main process",
    "worker_cores": "Cores of the workers",
    "workers_blocked": "Workers blocked",
    "workers_major_faults": "Page faults of workers (reads from disk)",
    "trainer_stopped": "Stopped by a signal",
    "trainer_read_mib_s": "Read by this run",
    "trainer_memory_mib": "Memory of this run",
    "cpu_clock_mhz": "CPU clock",
    "cpu_heat_throttles_per_s": "CPU slowed for heat",
}

LANES = (
    Lane("gpu", "GPU utilisation", ("gpu_util_pct", "sm_active_pct")),
    Lane("gpu", "Memory used", ("memory_used_mib",)),
    Lane("gpu", "Power", ("power_w",)),
    Lane("gpu", "Temperature", ("temperature_c",)),
    Lane("gpu", "SM clock", ("sm_clock_mhz",)),
    Lane("host", "Host CPU", ("cpu_pct",), ("main_cpu_pct", "busiest_worker_cpu_pct")),
    Lane("host", "Processes waiting", ("cpu_pressure_pct", "io_pressure_pct", "memory_pressure_pct")),
    Lane("host", "Reads", ("disk_read_mib_s", "trainer_read_mib_s")),
    Lane("epoch", "Loss", ("loss",)),
    Lane("epoch", "Learning rate", ("lr",)),
)

HEAT_GPUS = 4  # from so many on, lines of utilisation hide each other, for they cross with every batch
_HEAT_LANES = (
    Lane("gpu", "GPU utilisation", ("gpu_util_pct",), heat=True),
    Lane("gpu", "SM activity", ("sm_active_pct",), heat=True),
)

# What is known of an epoch as a whole, drawn as a step over its time: the model's fields of EpochSummary.
EPOCH_QUANTITIES = (Quantity("loss", "Loss", "", 3), Quantity("lr", "Learning rate", "", 3))
# More of an epoch, for the table of epochs and its CSV.
EPOCH_READINGS = (
    Quantity("warm_up_s", "Warm-up", "s", 3),
    Quantity("train_s", "Train", "s", 3),
    Quantity("validation_s", "Validation", "s", 3),
    Quantity("checkpoint_s", "Checkpoint", "s", 3),
    Quantity("images_per_s", "Images/s", "", 1),
    Quantity("data_wait_s", "Data wait", "s", 3),
    Quantity("gpu_util_pct", "GPU utilisation", "%", 1),
    Quantity("memory_peak_mib", "Memory peak", "MiB", 0),
    Quantity("energy_j", "Energy", "J", 0),
)
EPOCH_DIGITS = 5  # significant ones that the page is given: more than the eye tells apart in a lane

# Columns that move with another one, and so are stored as what they are over it (column_codec.py).
CORRELATED_QUANTITIES = {
    "memory_util_pct": "gpu_util_pct",
    "memory_temperature_c": "temperature_c",
    "sm_occupancy_pct": "sm_active_pct",
    "tensor_active_pct": "sm_active_pct",
    "dram_active_pct": "sm_active_pct",
    "nvlink_rx_mib_s": "nvlink_tx_mib_s",
    "memory_available_mib": "memory_used_mib",
    "workers_cpu_pct": "cpu_pct",
    "io_full_pressure_pct": "io_pressure_pct",
}
RATE_DIGITS = 3  # significant ones of a byte rate; more of it is noise
_RATE_UNIT = "MiB/s"

# Seconds since the driver was loaded: only their growth over the run means something.
THROTTLE_COUNTERS = ("power_cap_s", "sw_thermal_slowdown_s", "hw_thermal_slowdown_s", "power_brake_s")

# nvmlClocksEventReason* of nvml.h: why the clocks are where they are, by bit.
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


def lanes(gpus: int) -> tuple[Lane, ...]:
    """Return the lanes of a timeline of so many GPUs."""
    return LANES if gpus < HEAT_GPUS else (*_HEAT_LANES, *LANES[1:])


def gpu_quantities() -> tuple[Quantity, ...]:
    """Return the quantities of a GPU in the order of the schema."""
    return tuple(map(_quantity, schema.GPU_QUANTITIES))


def host_quantities() -> tuple[Quantity, ...]:
    """Return the quantities of the host in the order of the schema."""
    return tuple(map(_quantity, schema.HOST_QUANTITIES))


def label(name: str) -> str:
    """Return what a column is called."""
    return _LABELS.get(name, name.replace("_", " ").capitalize())


def unit_of(name: str) -> str:
    """Return the unit of a column, empty without one."""
    if name in _OF_ONE_CORE:
        return "% of one core"
    return next((unit for end, unit in _UNITS.items() if name.endswith(f"_{end}")), "")


def _quantity(column: schema.Column) -> Quantity:
    unit = unit_of(column.name)
    digits = RATE_DIGITS if unit == _RATE_UNIT else 0
    return Quantity(column.name, label(column.name), unit, column.decimals, digits)

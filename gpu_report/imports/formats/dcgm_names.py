"""What dcgm-exporter calls its metrics and labels (its etc/default-counters.csv, and dcgm_fields.h)."""

from collections.abc import Mapping
from typing import Final

from gpu_report.imports.parsing.fields import BYTES_PER_MIB, PERCENT, Field

_PREFIX: Final = "DCGM_FI_"
_NANO: Final = 1e-9
_MILLI: Final = 1e-3
FIELDS: Final[Mapping[str, Field]] = {
    _PREFIX + name: field
    for name, field in {
        "DEV_GPU_UTIL": Field("gpu_util_pct"),
        "DEV_MEM_COPY_UTIL": Field("memory_util_pct"),
        "DEV_FB_USED": Field("memory_used_mib"),
        "DEV_FB_RESERVED": Field("memory_reserved_mib"),
        "DEV_POWER_USAGE": Field("power_w"),
        "DEV_TOTAL_ENERGY_CONSUMPTION": Field("energy_j", _MILLI),
        "DEV_GPU_TEMP": Field("temperature_c"),
        "DEV_MEMORY_TEMP": Field("memory_temperature_c"),
        "DEV_SM_CLOCK": Field("sm_clock_mhz"),
        "DEV_MEM_CLOCK": Field("memory_clock_mhz"),
        "DEV_PSTATE": Field("performance_state"),
        "DEV_CLOCKS_EVENT_REASONS": Field("clock_event_reasons"),
        "DEV_CLOCK_THROTTLE_REASONS": Field("clock_event_reasons"),  # the older name of the same
        "DEV_POWER_VIOLATION": Field("power_cap_s", _NANO),
        "PROF_SM_ACTIVE": Field("sm_active_pct", PERCENT),
        "PROF_SM_OCCUPANCY": Field("sm_occupancy_pct", PERCENT),
        "PROF_PIPE_TENSOR_ACTIVE": Field("tensor_active_pct", PERCENT),
        "PROF_DRAM_ACTIVE": Field("dram_active_pct", PERCENT),
        # Bytes a second, though the exporter calls two of them counters.
        "PROF_PCIE_TX_BYTES": Field("pcie_tx_mib_s", 1 / BYTES_PER_MIB),
        "PROF_PCIE_RX_BYTES": Field("pcie_rx_mib_s", 1 / BYTES_PER_MIB),
        "PROF_NVLINK_TX_BYTES": Field("nvlink_tx_mib_s", 1 / BYTES_PER_MIB),
        "PROF_NVLINK_RX_BYTES": Field("nvlink_rx_mib_s", 1 / BYTES_PER_MIB),
    }.items()
}
ENGINE: Final = _PREFIX + "PROF_GR_ENGINE_ACTIVE"  # utilisation where there is no other
XID: Final = _PREFIX + "DEV_XID_ERRORS"  # the last one's code, 0 before the first
WANTED: Final = (*FIELDS, ENGINE, XID)

# Labels that were renamed, or that Prometheus renames where the scraped pod has one of its own.
_SAME: Final = (("Hostname", "hostname", "host"), ("pod", "exported_pod"), ("namespace", "exported_namespace"))


def names_of(label: str) -> tuple[str, ...]:
    """Return the names under which a label may stand."""
    return next((names for names in _SAME if label in names), (label,))


def value_of(labels: Mapping[str, object], label: str) -> str | None:
    """Return the value of a label under any of its names, None where it has none.

    Where Prometheus renamed the exporter's own label, the other one is of the exporter's pod.
    """
    return next((str(labels[name]) for name in reversed(names_of(label)) if labels.get(name)), None)

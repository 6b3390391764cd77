"""What nvidia_gpu_exporter calls its metrics: nvidia-smi's own query, in base units (its docs/METRICS.md).

Its series have the label `uuid` alone; which index that is stands in the labels of INFO, or is the value of INDEX.
"""

from collections.abc import Mapping
from typing import Final

from gpu_report.imports.parsing.fields import BYTES_PER_MIB, HZ_PER_MHZ, PERCENT, Field

_PREFIX: Final = "nvidia_smi_"
FIELDS: Final[Mapping[str, Field]] = {
    _PREFIX + name: field
    for name, field in {
        "utilization_gpu_ratio": Field("gpu_util_pct", PERCENT),
        "utilization_memory_ratio": Field("memory_util_pct", PERCENT),
        "memory_used_bytes": Field("memory_used_mib", 1 / BYTES_PER_MIB),
        "memory_reserved_bytes": Field("memory_reserved_mib", 1 / BYTES_PER_MIB),
        "power_draw_watts": Field("power_w"),
        "energy_joules_total": Field("energy_j"),
        "temperature_gpu": Field("temperature_c"),
        "temperature_memory": Field("memory_temperature_c"),
        "clocks_current_sm_clock_hz": Field("sm_clock_mhz", 1 / HZ_PER_MHZ),
        "clocks_current_memory_clock_hz": Field("memory_clock_mhz", 1 / HZ_PER_MHZ),
        "pstate": Field("performance_state"),
        "clocks_event_reasons_active": Field("clock_event_reasons"),
        "clocks_throttle_reasons_active": Field("clock_event_reasons"),  # the older name of the same
        "clocks_event_reasons_counters_sw_power_cap_seconds": Field("power_cap_s"),
        "pcie_link_gen_gpucurrent": Field("pcie_link_generation"),
        "pcie_link_width_current": Field("pcie_link_width"),
        "pcie_throughput_tx_bytes_per_second": Field("pcie_tx_mib_s", 1 / BYTES_PER_MIB),
        "pcie_throughput_rx_bytes_per_second": Field("pcie_rx_mib_s", 1 / BYTES_PER_MIB),
    }.items()
}
INFO: Final = _PREFIX + "gpu_info"
INDEX: Final = _PREFIX + "index"
WANTED: Final = (*FIELDS, INFO, INDEX)


def uuid_of(label: str) -> str:
    """Return a UUID as nvidia-smi writes it: the exporter leaves out its beginning."""
    return label if label.startswith("GPU-") else f"GPU-{label}"

"""What a GPU's memory and link have been through: counters that matter as a change from start to end of a run.

The replay counter alone takes 0.15 ms on an H200, and the ECC ones likewise: too much for a tick, nothing for a run.
"""

from collections.abc import Callable, Mapping
from typing import Any

import pynvml

from gpu_report import schema
from gpu_report.record.gpu.driver_samples import decode
from gpu_report.record.gpu.nvml_quantities import LOST, NEVER

Health = Mapping[str, int | str | None]

# nvmlDeviceGpuRecoveryAction_t; as numbers, for older bindings lack the newer names.
RECOVERY_ACTIONS = {
    0: "none",
    1: "reset the GPU",
    2: "reboot",
    3: "drain peer-to-peer traffic",
    4: "drain and reset the GPU",
    5: "recover the IMEX domain",
    6: "reset the bus",
    7: "reboot the system",
}
GET_RECOVERY_ACTION = 230  # NVML_FI_DEV_GET_GPU_RECOVERY_ACTION
_REMAPPED = ("remapped_rows_correctable", "remapped_rows_uncorrectable", "row_remap_pending", "row_remap_failed")
_RETIRED = {
    "retired_pages_corrected": pynvml.NVML_FI_DEV_RETIRED_SBE,
    "retired_pages_uncorrected": pynvml.NVML_FI_DEV_RETIRED_DBE,
    "retired_pages_pending": pynvml.NVML_FI_DEV_RETIRED_PENDING,
}


def read_health(handle: Any) -> Health:
    """Return run.json's `health_start` or `health_end` of a GPU; what cannot be read is None. It never raises."""
    known: dict[str, int | str | None] = {}
    for read in _READINGS:
        try:
            known.update(read(handle))
        except Exception as error:  # noqa: BLE001 - a binding or driver of another version may raise anything
            if getattr(error, "value", None) in LOST:
                break  # each further call may last until a timeout
    return {column.name: known.get(column.name) for column in schema.GPU_HEALTH}


def _recovery_action(handle: Any) -> Health:
    action = _fields(handle, {"recovery_action": GET_RECOVERY_ACTION})["recovery_action"]
    return {} if action is None else {"recovery_action": RECOVERY_ACTIONS.get(action, f"action {action}")}


def _pages(handle: Any) -> Health:
    """Return remapped rows (Ampere and later), or retired pages, which boards before it have in their place."""
    try:
        return dict(zip(_REMAPPED, pynvml.nvmlDeviceGetRemappedRows(handle), strict=True))
    except pynvml.NVMLError as error:
        if error.value not in NEVER:
            raise
    return _fields(handle, _RETIRED)


def _replays(handle: Any) -> Health:
    return {"pcie_replays": pynvml.nvmlDeviceGetPcieReplayCounter(handle)}


def _ecc(name: str, kind: int, counter: int) -> Callable[[Any], Health]:
    return lambda handle: {name: pynvml.nvmlDeviceGetTotalEccErrors(handle, kind, counter)}


def _fields(handle: Any, numbers: Mapping[str, int]) -> dict[str, int | None]:
    values = pynvml.nvmlDeviceGetFieldValues(handle, list(numbers.values()))
    by_field = {value.fieldId: int(decode(value.value, value.valueType)) for value in values if value.nvmlReturn == 0}
    return {name: by_field.get(number) for name, number in numbers.items()}


_CORRECTED, _UNCORRECTED = pynvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
_READINGS = (
    _recovery_action,
    _pages,
    _ecc("ecc_volatile_corrected", _CORRECTED, pynvml.NVML_VOLATILE_ECC),
    _ecc("ecc_volatile_uncorrected", _UNCORRECTED, pynvml.NVML_VOLATILE_ECC),
    _ecc("ecc_aggregate_corrected", _CORRECTED, pynvml.NVML_AGGREGATE_ECC),
    _ecc("ecc_aggregate_uncorrected", _UNCORRECTED, pynvml.NVML_AGGREGATE_ECC),
    _replays,
)

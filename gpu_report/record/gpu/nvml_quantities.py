"""What is read from a GPU at a tick: one entry a call of NVML, each with its own guard."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pynvml

from gpu_report.record.gpu.driver_samples import decode
from gpu_report.record.gpu.gpm import Gpm
from gpu_report.record.gpu.mig import MigPlace

MIB = 2**20
UNKNOWN_PERFORMANCE_STATE = 32  # NVML_PSTATE_UNKNOWN
COUNTERS_EVERY_S = 10.0  # the thermal ones cost 0.6 to 0.8 ms each (H200); counters miss nothing between reads
LINK_EVERY_S = 10.0  # the width costs 30 us, with peaks of 2 ms (H200); a link that fell stays there for long
ENERGY_EVERY_S = 10.0  # the call costs 3 ms of CPU, with peaks of 17 ms (measured on an H200)
LOST_RETRY_S = 10.0  # a lost GPU may answer each call only after a long timeout, so it is asked seldom
GPM = "gpm"  # the quantity of an error that concerns all that GPM tells
BOARD = "board"  # the quantity of the one error that says what a MIG device has no readings of
ALL_QUANTITIES = "all"  # the quantity of an error that concerns the whole device

# Codes after which asking again is useless; anything else (Unknown, Timeout, no permission) may pass.
NEVER = frozenset({pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND})
LOST = frozenset({pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_RESET_REQUIRED})
_NO_V2 = frozenset({pynvml.NVML_ERROR_FUNCTION_NOT_FOUND, 25})  # 25: the structure's version is not known

# Why a call that succeeds leaves a cell empty.
NO_VALUE = "the driver gave no value"
WHY_EMPTY = {
    "memory_reserved_mib": "an old driver: memory_used_mib includes what it reserves",
    "performance_state": "the driver does not know it",
}

Handle = Any
Values = Mapping[str, float | None]


@dataclass(frozen=True)
class Change:
    """A quantity of a GPU that can no longer be read (`reason` says why) or can be again (`reason` is None)."""

    gpu: int
    quantity: str
    reason: str | None


@dataclass(frozen=True)
class NvmlCall:
    """One call: the columns it fills, how to make it, and at most how often (seconds, 0: each tick).

    `group` is what its errors name when that is not each of its columns.
    """

    columns: tuple[str, ...]
    read: Callable[[Handle], Values]
    every_s: float = 0.0
    group: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Return what an error of this call names."""
        return (self.group,) if self.group else self.columns


@dataclass
class CallState:
    """What is known of one quantity on one GPU: the error it gave last, its cells said empty, and when it is due."""

    reason: str | None = None
    empty: set[str] = field(default_factory=set)
    given_up: bool = False
    due_s: float = 0.0


def _utilisation(handle: Handle) -> Values:
    rates = pynvml.nvmlDeviceGetUtilizationRates(handle)
    return {"gpu_util_pct": rates.gpu, "memory_util_pct": rates.memory}


def _memory(handle: Handle) -> Values:
    try:
        memory = pynvml.nvmlDeviceGetMemoryInfo(handle, pynvml.nvmlMemory_v2)
    except pynvml.NVMLError as error:
        if error.value not in _NO_V2:
            raise
        return {"memory_used_mib": pynvml.nvmlDeviceGetMemoryInfo(handle).used / MIB, "memory_reserved_mib": None}
    return {"memory_used_mib": memory.used / MIB, "memory_reserved_mib": memory.reserved / MIB}


def _power(handle: Handle) -> Values:
    return {"power_w": pynvml.nvmlDeviceGetPowerUsage(handle) / 1000}


def _energy(handle: Handle) -> Values:
    return {"energy_j": pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1000}


def _temperature(handle: Handle) -> Values:
    try:
        return {"temperature_c": pynvml.nvmlDeviceGetTemperatureV(handle, pynvml.NVML_TEMPERATURE_GPU)}
    except pynvml.NVMLError as error:
        if error.value not in _NO_V2 | NEVER:
            raise
    return {"temperature_c": pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)}


def _sm_clock(handle: Handle) -> Values:
    return {"sm_clock_mhz": pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)}


def _memory_clock(handle: Handle) -> Values:
    return {"memory_clock_mhz": pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM)}


def _performance_state(handle: Handle) -> Values:
    state = pynvml.nvmlDeviceGetPerformanceState(handle)
    return {"performance_state": None if state == UNKNOWN_PERFORMANCE_STATE else state}


def _clock_event_reasons(handle: Handle) -> Values:
    try:
        return {"clock_event_reasons": pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)}
    except pynvml.NVMLError as error:
        if error.value != pynvml.NVML_ERROR_FUNCTION_NOT_FOUND:
            raise
    return {"clock_event_reasons": pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)}  # its name before 535


def _memory_temperature(handle: Handle) -> Values:
    return {"memory_temperature_c": _field(handle, pynvml.NVML_FI_DEV_MEMORY_TEMP)}


def _power_cap(handle: Handle) -> Values:
    return {"power_cap_s": _field(handle, pynvml.NVML_FI_DEV_PERF_POLICY_POWER) / 1e9}


def _sw_thermal_slowdown(handle: Handle) -> Values:
    number = pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN
    return {"sw_thermal_slowdown_s": _field(handle, number) / 1e9}


def _hw_thermal_slowdown(handle: Handle) -> Values:
    number = pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN
    return {"hw_thermal_slowdown_s": _field(handle, number) / 1e9}


def _power_brake(handle: Handle) -> Values:
    return {"power_brake_s": _field(handle, pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN) / 1e9}


def _link_generation(handle: Handle) -> Values:
    return {"pcie_link_generation": _or_none(pynvml.nvmlDeviceGetCurrPcieLinkGeneration(handle))}


def _link_width(handle: Handle) -> Values:
    return {"pcie_link_width": _or_none(pynvml.nvmlDeviceGetCurrPcieLinkWidth(handle))}


def _or_none(number: int) -> int | None:
    """Return None for 0: there is no link of no lanes, so it is no reading."""
    return number or None


def _field(handle: Handle, number: int) -> float:
    """Return one field value, decoded by its type (read as unsigned a signed one is 4 billion); NVMLError if absent."""
    (value,) = pynvml.nvmlDeviceGetFieldValues(handle, [number])
    code = value.nvmlReturn
    if code == pynvml.NVML_ERROR_INVALID_ARGUMENT:  # an older driver does not know the number
        code = pynvml.NVML_ERROR_NOT_SUPPORTED
    if code != pynvml.NVML_SUCCESS:
        raise pynvml.NVMLError(code)
    return decode(value.value, value.valueType)


NVML_CALLS = (
    NvmlCall(("gpu_util_pct", "memory_util_pct"), _utilisation),
    NvmlCall(("memory_used_mib", "memory_reserved_mib"), _memory),
    NvmlCall(("power_w",), _power),
    NvmlCall(("energy_j",), _energy, ENERGY_EVERY_S),
    NvmlCall(("temperature_c",), _temperature),
    NvmlCall(("sm_clock_mhz",), _sm_clock),
    NvmlCall(("memory_clock_mhz",), _memory_clock),
    NvmlCall(("performance_state",), _performance_state),
    NvmlCall(("clock_event_reasons",), _clock_event_reasons),
    NvmlCall(("memory_temperature_c",), _memory_temperature),
    NvmlCall(("power_cap_s",), _power_cap, COUNTERS_EVERY_S),
    NvmlCall(("sw_thermal_slowdown_s",), _sw_thermal_slowdown, COUNTERS_EVERY_S),
    NvmlCall(("hw_thermal_slowdown_s",), _hw_thermal_slowdown, COUNTERS_EVERY_S),
    NvmlCall(("power_brake_s",), _power_brake, COUNTERS_EVERY_S),
    NvmlCall(("pcie_link_generation",), _link_generation, LINK_EVERY_S),
    NvmlCall(("pcie_link_width",), _link_width, LINK_EVERY_S),
)


MIG_CALLS = tuple(call for call in NVML_CALLS if "memory_used_mib" in call.columns)


@dataclass
class DeviceReader:
    """Reads one GPU or MIG device, remembering which quantities fail and why, so that each is reported once."""

    index: int
    handle: Handle
    mig: MigPlace | None = None
    lost_until_s: float = 0.0
    lost_reason: str | None = None
    states: dict[tuple[str, ...], CallState] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Choose what is read of this device."""
        self.gpm = Gpm(self.mig)
        own = NVML_CALLS if self.mig is None else MIG_CALLS
        self.calls = (*own, NvmlCall(tuple(self.gpm.metrics), self.gpm.read, group=GPM))
        self._unsaid = [] if self.mig is None else [Change(self.index, BOARD, _of_the_board(self.mig))]

    def read(self, mono_s: float, *, everything: bool = False) -> tuple[dict[str, float | None], list[Change]]:
        """Read every quantity that is due, or all. Missing ones are absent or None; changes are what to report."""
        values: dict[str, float | None] = {}
        changes, self._unsaid = self._unsaid, []
        if self.lost_reason and mono_s < self.lost_until_s:
            return values, changes
        for call in self.calls:
            state = self.states.setdefault(call.columns, CallState())
            if state.given_up or (mono_s < state.due_s and not everything):
                continue
            if not self._read_one(call, state, mono_s, values, changes):
                return {}, changes
        return values, changes

    def _read_one(
        self,
        call: NvmlCall,
        state: CallState,
        mono_s: float,
        values: dict[str, float | None],
        changes: list[Change],
    ) -> bool:
        """Read one quantity into `values`; False when the whole GPU turns out to be lost."""
        try:
            found = call.read(self.handle)
        except Exception as error:  # noqa: BLE001 - a binding or driver of another version may raise anything
            code = getattr(error, "value", None)
            if code in LOST:
                changes.extend(self._lose(describe_error(error), mono_s))
                return False
            # what only whole GPUs have, drivers refuse to a MIG device in either way
            state.given_up = code in NEVER or (self.mig is not None and code == pynvml.NVML_ERROR_INVALID_ARGUMENT)
            changes.extend(self._fail(call, state, describe_error(error)))
            return True
        values.update(found)
        state.due_s = mono_s + call.every_s if call.every_s else 0.0
        changes.extend(self._recover(call, state))
        changes.extend(self._empty(state, found))
        return True

    def _lose(self, reason: str, mono_s: float) -> list[Change]:
        self.lost_until_s = mono_s + LOST_RETRY_S
        known, self.lost_reason = self.lost_reason, reason
        return [] if known == reason else [Change(self.index, ALL_QUANTITIES, reason)]

    def _fail(self, call: NvmlCall, state: CallState, reason: str) -> list[Change]:
        known, state.reason = state.reason, reason
        return [] if known == reason else [Change(self.index, name, reason) for name in call.names]

    def _empty(self, state: CallState, found: Values) -> list[Change]:
        """Say once why a call that succeeded leaves a cell empty."""
        new = [name for name, value in found.items() if value is None and name not in state.empty]
        state.empty.update(new)
        return [Change(self.index, name, WHY_EMPTY.get(name, NO_VALUE)) for name in new]

    def _recover(self, call: NvmlCall, state: CallState) -> list[Change]:
        changes = []
        if self.lost_reason:
            self.lost_reason = None
            changes.append(Change(self.index, ALL_QUANTITIES, None))
        if state.reason:
            state.reason = None
            changes.extend(Change(self.index, name, None) for name in call.names)
        return changes


def _of_the_board(mig: MigPlace) -> str:
    what = "power, energy, temperatures, clocks, memory utilisation and, without GPM, utilisation"
    return f"{what} are known of the whole board only: see GPU {mig.parent}"


def describe_error(error: Exception) -> str:
    """Return an error of NVML or its binding in words, on one line."""
    text = str(error) if isinstance(error, pynvml.NVMLError) else f"{type(error).__name__}: {error}"
    return " ".join(text.split()).rstrip(".")

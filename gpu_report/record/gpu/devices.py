"""Opening NVML, finding the GPUs, and what stands in run.json about them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pynvml

from gpu_report.errors import UsageError
from gpu_report.gpu_words import gpu_number
from gpu_report.record.gpu.health import read_health
from gpu_report.record.gpu.mig import MigPlace, find_migs
from gpu_report.record.gpu.nvml_quantities import MIB


@dataclass(frozen=True)
class NvmlDevice:
    """A GPU or MIG device that answers: its index, its handle, and its description as in run.json.

    `mig` says where a MIG device lies; `divided` is a GPU whose MIG devices stand beside it.
    """

    index: int
    handle: Any
    description: dict[str, object]
    mig: MigPlace | None = None
    divided: bool = False


@dataclass(frozen=True)
class Opened:
    """NVML as it was found: the chosen GPUs, versions, and those that exist but cannot be opened, with why."""

    devices: tuple[NvmlDevice, ...]
    unusable: tuple[tuple[int, str], ...]
    driver: str | None
    nvml: str | None
    cuda: str | None


def open_nvml(wanted: Sequence[str]) -> Opened:
    """Initialise NVML and describe the chosen GPUs; NVMLError when there is none, UsageError for an unknown one."""
    pynvml.nvmlInit()
    devices, unusable = [], []
    for index in range(pynvml.nvmlDeviceGetCount()):
        try:
            devices += _with_migs(_describe(index, pynvml.nvmlDeviceGetHandleByIndex(index)))
        except pynvml.NVMLError as error:
            unusable.append((index, str(error)))
    if not devices and not unusable:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
    return Opened(
        devices=choose(devices, wanted, dict(unusable)),
        unusable=tuple(unusable) if not wanted else (),
        driver=_maybe(pynvml.nvmlSystemGetDriverVersion),
        nvml=_maybe(pynvml.nvmlSystemGetNVMLVersion),
        cuda=_cuda_version(_maybe(pynvml.nvmlSystemGetCudaDriverVersion)),
    )


def choose(devices: Sequence[NvmlDevice], wanted: Sequence[str], unusable: Mapping[int, str]) -> tuple[NvmlDevice, ...]:
    """Return the devices whose index or UUID (or its beginning) is wanted, all when nothing is.

    A GPU brings its MIG devices with it; a MIG device comes alone. UsageError for one that is not there, or is
    `unusable` (index and reason).
    """
    if not wanted:
        return tuple(devices)
    named = {_find(devices, word.strip(), unusable).index for word in wanted}
    return tuple(d for d in devices if d.index in named or (d.mig is not None and d.mig.parent in named))


def boards(devices: Sequence[NvmlDevice]) -> tuple[tuple[int, Any], ...]:
    """Return index and handle of each GPU that devices are or lie on, once: what events are registered for."""
    found = {d.index if d.mig is None else d.mig.parent: d.handle if d.mig is None else d.mig.board for d in devices}
    return tuple(found.items())


def _find(devices: Sequence[NvmlDevice], word: str, unusable: Mapping[int, str]) -> NvmlDevice:
    found = [device for device in devices if word in _indexes(device) or _is_uuid_of(word, device)]
    if len(found) != 1:
        why = next((f"cannot be opened: {reason}" for index, reason in unusable.items() if word == str(index)), "")
        known = ", ".join(f"{gpu_number(d.index)} ({d.description['name']}, {d.description['uuid']})" for d in devices)
        what = f"GPU {word} {why}" if why else f"this machine has no GPU {word}"
        raise UsageError(f"{what}. {f'--gpus can name these: {known}' if known else 'None of its GPUs answers'}")
    return found[0]


def _indexes(device: NvmlDevice) -> tuple[str, ...]:
    """Return the device's index in words, of a MIG device also as nvidia-smi has it (GPU:number)."""
    return (str(device.index),) if device.mig is None else (str(device.index), f"{device.mig.parent}:{device.mig.slot}")


def _is_uuid_of(word: str, device: NvmlDevice) -> bool:
    """Say whether a word is the device's UUID or the beginning of it, as CUDA_VISIBLE_DEVICES allows too."""
    return word.startswith(("GPU-", "MIG-")) and str(device.description["uuid"]).startswith(word)


def _describe(index: int, handle: Any) -> NvmlDevice:
    return NvmlDevice(
        index,
        handle,
        {
            "index": index,
            "uuid": _maybe(pynvml.nvmlDeviceGetUUID, handle),
            "pci_bus_id": _maybe(lambda: _text(pynvml.nvmlDeviceGetPciInfo(handle).busId)),
            "name": _maybe(pynvml.nvmlDeviceGetName, handle),
            "memory_total_mib": _maybe(lambda: round(pynvml.nvmlDeviceGetMemoryInfo(handle).total / MIB)),
            "power_limit_w": _maybe(lambda: pynvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000),
            "power_limit_default_w": _maybe(lambda: pynvml.nvmlDeviceGetPowerManagementDefaultLimit(handle) / 1000),
            "max_sm_clock_mhz": _maybe(pynvml.nvmlDeviceGetMaxClockInfo, handle, pynvml.NVML_CLOCK_SM),
            "max_memory_clock_mhz": _maybe(pynvml.nvmlDeviceGetMaxClockInfo, handle, pynvml.NVML_CLOCK_MEM),
            # these two are of GPU and slot together: a GPU of gen 4 in a slot of gen 3 can do gen 3; 0 is no answer
            "max_pcie_link_generation": _maybe(pynvml.nvmlDeviceGetMaxPcieLinkGeneration, handle) or None,
            "max_pcie_link_width": _maybe(pynvml.nvmlDeviceGetMaxPcieLinkWidth, handle) or None,
            "gpu_max_pcie_link_generation": _maybe(pynvml.nvmlDeviceGetGpuMaxPcieLinkGeneration, handle) or None,
            "mig_enabled": _maybe(lambda: pynvml.nvmlDeviceGetMigMode(handle)[0] == 1),
            "health_start": read_health(handle),
        },
    )


def _with_migs(device: NvmlDevice) -> list[NvmlDevice]:
    """Return a GPU and the MIG devices that it is divided into."""
    if device.description["mig_enabled"] is not True:
        return [device]
    migs = [_describe_mig(place, handle) for place, handle in find_migs(device.index, device.handle)]
    return [replace(device, divided=bool(migs)), *migs]


def _describe_mig(place: MigPlace, handle: Any) -> NvmlDevice:
    description: dict[str, object] = {
        "index": place.index,
        "uuid": _maybe(pynvml.nvmlDeviceGetUUID, handle),
        "name": _maybe(pynvml.nvmlDeviceGetName, handle),
        "memory_total_mib": _maybe(lambda: round(pynvml.nvmlDeviceGetMemoryInfo(handle).total / MIB)),
        "mig_enabled": None,
        "parent_index": place.parent,
        "mig_index": place.slot,
        "gpu_instance": place.gpu_instance,
        "health_start": None,
    }
    return NvmlDevice(place.index, handle, description, place)


def _maybe(call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except Exception:  # noqa: BLE001 - static facts are extras: one that a driver or binding lacks is unknown
        return None


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _cuda_version(number: int | None) -> str | None:
    """Return 13000 as 13.0 (the driver's encoding is 1000 x major + 10 x minor)."""
    return None if number is None else f"{number // 1000}.{number % 1000 // 10}"

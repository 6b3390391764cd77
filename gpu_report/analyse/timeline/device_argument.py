"""How many GPUs torch sees, and whether it numbers them as the driver does."""

import itertools
import re
from collections.abc import Sequence

from gpu_report.model import Run

CPU = "cpu"  # the device that ultralytics reports without a GPU
MIG = "MIG-"
UUIDS = ("GPU-", MIG)


def visible_gpus(run: Run, *devices: object) -> int:
    """Return how many GPUs torch sees: what CUDA_VISIBLE_DEVICES leaves, 0 where that hides all; else all there are.

    A recording may be of some of them only (`--gpus`): there are no fewer than the highest index that is known, among
    the recorded and among `devices`, which the training named (`0,1`, `cuda:3`).
    """
    named = run.recording.cuda_visible_devices
    if named is not None:
        return len(visible_devices(named))
    whole = [gpu.index for gpu in run.gpus if gpu.parent_index is None]
    numbers = [int(word) for device in devices for word in _numbers(device)]
    return max(len(whole), *(number + 1 for number in [*whole, *numbers]), 1)


def visible_devices(named: str) -> list[str]:
    """Return the devices that a value of CUDA_VISIBLE_DEVICES leaves, as CUDA and torch read it.

    The first entry says what all are: UUIDs of GPUs, of MIG devices (of which a process gets one only) or numbers. The
    first that is none (-1, a word) hides what follows; one that comes twice hides all (torch.cuda, and CUDA's
    programming guide, "CUDA Environment Variables").
    """
    entries = [entry.strip() for entry in named.split(",")]
    prefix = next((prefix for prefix in UUIDS if entries[0].startswith(prefix)), None)
    read = [_read(entry, prefix) for entry in entries]
    known = list(itertools.takewhile(lambda entry: entry is not None, read))
    if len(set(known)) < len(known):
        return []
    return [entry for entry in known if entry][: 1 if prefix == MIG else None]


def _read(entry: str, prefix: str | None) -> str | None:
    """Return an entry of CUDA_VISIBLE_DEVICES, of a number its digits; None for what ends the list."""
    if prefix is not None:
        return entry if entry.startswith(prefix) else None
    number = re.match(r"\+?0*(\d+)", entry)
    return number[1] if number else None


def known_order(run: Run) -> bool:
    """Tell whether torch's number of each GPU is known to be the one that it has here.

    CUDA puts faster GPUs first and equal ones in the order of their bus, as the driver does, unless
    CUDA_VISIBLE_DEVICES says otherwise. What a process reported of its own GPU must agree.
    """
    names = {gpu.name for gpu in run.gpus}
    return len(names) == 1 and None not in names and _sees_all(run)


def known_as_first(run: Run, faster: Sequence[int]) -> bool:
    """Tell whether torch's numbers of the faster GPUs are those that they have here, of models that are not alike.

    CUDA counts faster ones first, or all by their bus where CUDA_DEVICE_ORDER says so: both agree on those that are
    first on the bus, too.
    """
    return list(faster) == sorted(gpu.index for gpu in run.gpus)[: len(faster)] and _sees_all(run)


def _sees_all(run: Run) -> bool:
    """Tell whether a training that was started here sees all GPUs, none of them cut into MIG devices."""
    whole = all(gpu.parent_index is None for gpu in run.gpus)
    return run.began_command and whole and run.recording.cuda_visible_devices is None and _agree(run)


def _agree(run: Run) -> bool:
    uuids = {gpu.index: gpu.uuid for gpu in run.gpus}
    for process in run.inside:
        device, uuid = process.settings.get("device"), process.settings.get("gpu_uuid")
        number = str(device).removeprefix("cuda:")
        if uuid is not None and number.isdecimal() and uuids.get(int(number)) != uuid:
            return False
    return True


def devices_named(device: object) -> int | None:
    """Return how many GPUs a device argument names (`0`, `0,1`, `[0, 1]`, `cuda:0`), None where it names none.

    Each -1 stands for an idle GPU that ultralytics chooses.
    """
    return sum(word.removeprefix("-").isdecimal() for word in _words(device)) or None


def _numbers(device: object) -> list[str]:
    """Return the GPUs that a device argument names by number."""
    return [word for word in _words(device) if word.isdecimal()]


def _words(device: object) -> list[str]:
    listed = device if isinstance(device, list | tuple) else str(device).strip("[]() ").split(",")
    return [str(word).strip().removeprefix("cuda:") for word in listed]

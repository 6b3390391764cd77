"""Logs of two machines, whose GPUs have the same indices: one run can be of one machine only."""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from gpu_report.errors import InputError
from gpu_report.imports.parsing.readings import Device, Readings

MOST_SHOWN: Final = 8  # nodes in an error
# A card that is lost and comes back changes which UUID an index has, a few times in a log; two machines do each time.
_MOST_RENUMBERINGS: Final = 5


def refuse_two_uuids(gpu: int, uuids: Sequence[Hashable], where: object) -> None:
    """Raise InputError where the rows of one index are of two UUIDs by turns; `uuids` are theirs, in their order."""
    changes = sum(before != after for before, after in pairwise(uuids))
    if changes > _MOST_RENUMBERINGS:
        raise InputError(_two_machines(f"{where} is", gpu, *list(dict.fromkeys(uuids))[:2]))


def refuse_two_machines(tables: Sequence[Readings]) -> None:
    """Raise InputError where an index has different UUIDs in logs of the same time."""
    spans: defaultdict[int, list[tuple[float, float, str]]] = defaultdict(list)
    for table in tables:
        for gpu, device in table.devices.items():
            stamps = table.stamp_s[table.gpu == gpu]
            if device.get("uuid") and stamps.size:
                spans[gpu].append((float(np.min(stamps)), float(np.max(stamps)), str(device["uuid"])))
    for gpu, mine in spans.items():
        ends: dict[str, float] = {}
        for first_s, last_s, uuid in sorted(mine):
            if other := next((each for each, end_s in ends.items() if each != uuid and end_s > first_s), None):
                raise InputError(_two_machines("the logs are", gpu, other, uuid))
            ends[uuid] = max(last_s, ends.get(uuid, last_s))


def refuse_other_machine(devices: Mapping[int, Device], others: Mapping[int, Device]) -> None:
    """Raise InputError where logs of the same time, of two tools, have different UUIDs for an index."""
    for gpu in devices.keys() & others.keys():
        uuids = [each[gpu].get("uuid") for each in (devices, others)]
        if all(uuids) and uuids[0] != uuids[1]:
            raise InputError(_two_machines("the logs are", gpu, *uuids))


def refuse_several_nodes(nodes: Sequence[str]) -> None:
    """Raise InputError where logs name several machines, of which none was chosen."""
    if len(nodes) > 1:
        shown = ", ".join(nodes[:MOST_SHOWN])
        raise InputError(f"the log is of {len(nodes)} nodes: choose one with --label node=NAME ({shown})")


def _two_machines(which: str, gpu: int, one: object, other: object) -> str:
    return (
        f"{which} of two machines: GPU {gpu} is {one} and {other} at the same time. Import what each machine logged "
        "into a run of its own, and make one report of them: `gpu-report render job.html RUN_A RUN_B`"
    )

"""Which object holds the tensors that were kept: found from a few of them upwards, by Python's garbage collector.

Of objects only that is asked which others they refer to (`gc.get_referents`, `gc.get_referrers`), which runs no code of
their classes. What is kept from look to look are numbers: `id`s. What keeps a loss keeps its graph, of which Python
sees the loss alone; and a sum of losses is one tensor, whose graph is a chain of additions.
"""

from __future__ import annotations

import gc
import sys
import time
from types import BuiltinFunctionType, FrameType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from . import names

if TYPE_CHECKING:
    from collections.abc import Callable

SAMPLES = 16  # tensors from which is climbed. Some are gradients or the last batch's ...
HELD_SHARE = 0.5  # ... so more than half of those to which anything of Python's refers ...
HELD_SAMPLES = 3  # ... and so many at least are to be found in what holds them
MOST_LEVELS = (
    8  # from a tensor to what holds them all: image < Boxes.__dict__ < Boxes < Results.__dict__ < Results < list
)
MOST_OBJECTS = 32  # on a level: the collector compares each reference of the process with each of them
MOST_COUNTED = 200_000  # objects in what holds them
FEW = 8  # tensors; fewer than this are no list of losses
LEAST_MIB = 16  # bytes of new tensors that are worth to look for; fewer, and what holds graphs is looked for
SUMMED = 16  # additions in a row in a graph: a model's own loss sums up a few parts
MIB = 2**20
NOT_ENTERED = (type, ModuleType, FunctionType, BuiltinFunctionType, FrameType)


def on_device(tensor: Any) -> bool:
    """Tell whether a tensor lies in GPU memory."""
    return bool(tensor.is_cuda)


def look(
    choose: Callable[[set[int]], set[int]], deadline: float, enough_mib: float = 0.0, *, survived: bool = False
) -> tuple[set[int], dict[str, Any]]:
    """Return the ids of all tensors in GPU memory that Python knows of, and what holds most of those chosen of them.

    The latter is as JSON holds it: empty where nothing holds them, or no time is left. `deadline` is a moment of this
    thread's own CPU clock (`time.thread_time`): a process that gets no core must not be the reason to find nothing.
    The collector's walks go through all objects, as the first one does, and cannot be stopped: none begins that would
    end after it.
    """
    with _plain_torch():
        began = time.thread_time()
        tensors = _tensors()
        deadline -= time.thread_time() - began
        ids = {id(each) for each in tensors}
        fresh = choose(ids)
        # what was there at the look before and has a graph is no batch's: the pictures in it have the bytes then
        ways = (_with_graphs, _of_most_bytes) if survived else (_of_most_bytes, _with_graphs)
        for way in ways:
            if time.thread_time() > deadline:
                break
            samples = way([each for each in tensors or _tensors() if id(each) in fresh], max(enough_mib, LEAST_MIB))
            tensors = []  # a list of ours would be found as what refers to the objects in it
            found = _found(samples, fresh, deadline)
            if found:  # else another walk through all objects is worth it
                return ids, found
        return ids, {}


def _found(samples: list[Any], fresh: set[int], deadline: float) -> dict[str, Any]:
    holder, levels = _common_holder(samples, deadline) if samples else (None, 0)
    owner = None if holder is None else names.owner_of(holder, deadline, {id(samples)})
    return {} if owner is None else {**owner, **_held(holder, levels, fresh)}


def _plain_torch() -> Any:
    """Return a context in which torch's own attributes of a tensor call nobody's `__torch_function__`."""
    return sys.modules["torch"]._C.DisableTorchFunction()


def _tensors() -> list[Any]:
    torch = sys.modules["torch"]
    plain, parameter = torch.Tensor, torch.nn.Parameter  # no subclass: it may have an opinion on attributes
    found = [each for each in gc.get_objects() if type(each) is plain or type(each) is parameter]
    return [each for each in found if _is_on_device(each)]


def _is_on_device(tensor: Any) -> bool:
    try:
        return on_device(tensor)
    except Exception:  # noqa: BLE001 - a tensor of a kind that knows no device
        return False


def _of_most_bytes(tensors: list[Any], enough_mib: float) -> list[Any]:
    """Return a few tensors by their bytes; none where these are too few to explain anything."""
    sizes = _sizes(tensors)
    return _spread(tensors, sizes) if sum(sizes) >= enough_mib * MIB else []


def _with_graphs(tensors: list[Any], _enough_mib: float) -> list[Any]:
    """Return a few of the tensors that have a graph, else one that is a sum.

    Pictures of which a loss was made have the bytes, but only the graph holds them, of which Python sees nothing.
    """
    graphs = [each for each in tensors if not each.is_leaf]
    if len(graphs) >= FEW:
        return _spread(graphs, [1] * len(graphs))
    return [each for each in graphs if _is_sum(each)][:1]


def _sizes(tensors: list[Any]) -> list[int]:
    """Return the bytes of each tensor's storage, 0 where an earlier one has the same."""
    known: set[int] = set()
    return [0 if place in known or known.add(place) else size for place, size in map(_storage, tensors)]  # type: ignore[func-returns-value]


def _storage(tensor: Any) -> tuple[int, int]:
    """Return where a tensor's storage lies, and its bytes; torch before 2.0 says them of the tensor alone."""
    try:
        storage = tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else None
        if storage is None:
            return tensor.data_ptr(), tensor.numel() * tensor.element_size()
        return storage.data_ptr(), storage.nbytes()
    except Exception:  # noqa: BLE001 - sparse, or of a kind without storage
        return 0, 0


def _spread(tensors: list[Any], weights: list[int]) -> list[Any]:
    """Return SAMPLES of them at most, at even distances of the running sum of their weights."""
    step = sum(weights) / SAMPLES
    found, total, due = [], 0.0, step / 2
    for each, weight in zip(tensors, weights):  # noqa: B905 - `strict` is of 3.10
        total += weight
        if total >= due:
            found.append(each)
            due = total + step
    return found


def _is_sum(tensor: Any) -> bool:
    """Tell whether a tensor's graph begins with many additions in a row, as that of a sum over batches does."""
    node, count = tensor.grad_fn, 0
    while node is not None and type(node).__name__.startswith("Add") and count < SUMMED:
        count += 1
        before = node.next_functions
        node = next((each for each, _ in before if type(each).__name__.startswith("Add")), None)
    return count >= SUMMED


def _common_holder(samples: list[Any], deadline: float) -> tuple[Any, int]:
    """Return the nearest object through which most samples are reached, and how far up it lies; None where none is."""
    if len(samples) == 1:
        return samples[0], 0
    enough = HELD_SAMPLES
    reached = {id(each): 1 << at for at, each in enumerate(samples)}
    level = list(samples)
    for levels in range(1, MOST_LEVELS + 1):
        if not level or len(level) > MOST_OBJECTS or time.thread_time() > deadline:
            return None, 0
        above = referrers(level, {id(samples), id(level)}, deadline)
        fresh = [each for each in above if id(each) not in reached]
        here = {id(each) for each in level}
        for each in above:
            for below in gc.get_referents(each):
                if id(below) in here:
                    reached[id(each)] = reached.get(id(each), 0) | reached[id(below)]
        if levels == 1:  # a gradient has no referrer: C++ alone holds it
            enough = max(HELD_SAMPLES, int(HELD_SHARE * _count(above, reached)) + 1)
        common = [each for each in above if _count([each], reached) >= enough]
        if common:
            return min(common, key=_references), levels
        level = fresh
        del above, fresh, common  # as above
    return None, 0


def referrers(objects: list[Any], ours: set[int], deadline: float) -> list[Any]:
    """Return what refers to the objects, without frames and without what is ours."""
    found = names.referrers_of(objects, deadline)
    return [each for each in found if type(each) is not FrameType and id(each) not in ours]


def _count(holders: list[Any], reached: dict[int, int]) -> int:
    """Return how many samples are reached through any of these objects."""
    mask = 0
    for each in holders:
        mask |= reached[id(each)]
    return bin(mask).count("1")


def _references(holder: Any) -> int:
    return len(gc.get_referents(holder))


def _held(holder: Any, levels: int, fresh: set[int]) -> dict[str, Any]:
    """Return how many tensors an object holds, `levels` down, their MiB, and what of it is new."""
    torch = sys.modules["torch"]
    kinds = (torch.Tensor, torch.nn.Parameter)
    seen, level, found = {id(holder)}, [holder], []
    for _ in range(levels + 1):
        found += [each for each in level if type(each) in kinds and _is_on_device(each)]
        below = gc.get_referents(*level) if level else []
        level = []
        for each in below:
            if id(each) not in seen and len(seen) < MOST_COUNTED and not isinstance(each, NOT_ENTERED):
                seen.add(id(each))
                level.append(each)
    sizes = _sizes(found)
    mine = [size for each, size in zip(found, sizes) if id(each) in fresh]  # noqa: B905 - `strict` is of 3.10
    return {
        "type": type(holder).__name__,
        "tensors": len(found),
        "mib": round(sum(sizes) / MIB, 1),
        "new_tensors": len(mine),
        "new_mib": round(sum(mine) / MIB, 1),
        "with_graph": sum(not each.is_leaf for each in found),
    }

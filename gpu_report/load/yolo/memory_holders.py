"""What holds the tensors by which a training's GPU memory grew, as its process reported it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gpu_report.load.yolo.callback_lines import CallbackLine, mib, text, whole
from gpu_report.load.yolo.exceptions import one_line
from gpu_report.model import MemoryHolder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST: Final = 8  # of one training: our callbacks look four times
LONGEST_NAME: Final = 120
PLACES: Final = {"class", "instance", "global", "local", "closure", "argument", "cache"}


def memory_holders(lines: Sequence[CallbackLine]) -> tuple[MemoryHolder, ...]:
    """Return what was found at each look, in order; a look that found nothing, or makes no sense, is left out."""
    said = [(line.t_s, line.content) for line in lines if line.kind == "memory_holder"]
    found = [_holder(t_s, content) for t_s, content in said[:MOST]]
    return tuple(each for each in found if each is not None)


def _holder(t_s: float, said: Mapping[str, Any]) -> MemoryHolder | None:
    name, place = one_line(said.get("name"))[:LONGEST_NAME], text(said.get("place"))
    tensors, new_tensors, with_graph = (whole(said.get(key)) for key in ("tensors", "new_tensors", "with_graph"))
    all_mib, new_mib = (mib(said.get(key)) for key in ("mib", "new_mib"))
    if not name or place not in PLACES or tensors is None or new_tensors is None or all_mib is None or new_mib is None:
        return None
    return MemoryHolder(
        t_s=t_s,
        name=name,
        place=place,
        file=one_line(said.get("file")),
        function=one_line(said.get("function")),
        line=whole(said.get("line")) or 0,
        tensors=tensors,
        mib=all_mib,
        new_tensors=new_tensors,
        new_mib=new_mib,
        with_graph=with_graph or 0,
        grown_mib=mib(said.get("grown_mib")),
    )

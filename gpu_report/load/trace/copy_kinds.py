"""Where a copy goes and from what kind of memory, by the name that CUPTI gives it."""

import re
from collections.abc import Mapping
from typing import Final

from gpu_report.model import CopyDirection, CopyKind, HostMemory

_COPY: Final = re.compile(r"Memcpy (\w+)(?: \((\w+) -> (\w+)\))?")  # Memcpy HtoD (Pageable -> Device)
_DIRECTIONS: Final[Mapping[str, CopyDirection]] = {
    "HtoD": "HtoD",
    "DtoH": "DtoH",
    "DtoD": "DtoD",
    "HtoH": "HtoH",
    "PtoP": "PtoP",
}
_HOST_MEMORY: Final[Mapping[str, HostMemory]] = {"Pageable": "pageable", "Pinned": "pinned"}


def copy_kind(name: str) -> CopyKind:
    """Return what kind of copy has such a name."""
    found = _COPY.match(name)
    if found is None:
        return CopyKind("", "")
    host: list[HostMemory] = [_HOST_MEMORY[side] for side in found.groups()[1:] if side in _HOST_MEMORY]
    return CopyKind(_DIRECTIONS.get(found[1], ""), host[0] if host else "")

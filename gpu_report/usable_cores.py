"""How many CPU cores this process may use, and threads that keep them busy."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

MOST_THREADS: Final = 4  # more are no faster: what they do is put together by one


def usable_cores() -> int:
    """Return the cores that the system allows it, where it says so (not on macOS), else those of the machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads(kind: str, spared: int = 0) -> ThreadPoolExecutor:
    """Return threads for as many cores as there are but `spared`: with more, they wait for each other."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - the recorder needs none

    return ThreadPoolExecutor(min(max(usable_cores() - spared, 1), MOST_THREADS), thread_name_prefix=kind)

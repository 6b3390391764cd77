"""Serve a GPU with the core that is the fastest at the time, and say how fast the host is.

Cores of a virtual machine differ by a third, and change within seconds: others work on their other half. A process that
wakes for its turn lands on any of them, and stays there. How fast a core is says a loop of small operations, which is
what the CPU does in a call of one image. A model on the CPU takes all cores: there nothing is moved.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

LAUNCHES = 100  # operations of a loop: half a millisecond
LOOPS = 4  # on a core, of which the shortest counts: the first one has cold caches
SCHEDSTAT = Path("/proc/thread-self/schedstat")  # nanoseconds: on a core, and waiting for one
MOST_CORES = 16  # that are tried, spread over all: 30 ms


class Cores:
    """The cores that this process may use. `gpu` is the GPU's number, None for a model on the CPU."""

    def __init__(self, gpu: int | None) -> None:
        """Take the cores that this thread has now."""
        self._gpu = gpu
        self._all = os.sched_getaffinity(0)

    def loop_ms(self) -> float:
        """Return how long the loop takes on the core that this thread is on, the shortest of LOOPS, in milliseconds."""
        torch: Any = import_module("torch")
        value = torch.zeros(1, device="cpu" if self._gpu is None else f"cuda:{self._gpu}")
        return min(self._one_ms(torch, value) for _ in range(LOOPS))

    @contextmanager
    def fastest(self) -> Iterator[dict[str, Any]]:
        """Keep this thread on the fastest core; give the core, the loop on it, and on a typical one.

        Other threads stay where they are.
        """
        try:
            yield self._on_fastest() or {"loop_ms": self.loop_ms()}
        finally:
            _move(self._all)

    def _on_fastest(self) -> dict[str, Any]:
        """Move this thread to the fastest core; empty where it stays: on the CPU, or where no core may be chosen."""
        tried = self._tried() if self._gpu is not None else []
        found = {core: self.loop_ms() for core in tried if _move({core})}
        core = min(found, key=lambda each: found[each], default=None)
        if core is None or not _move({core}):
            return {}
        return {"core": core, "loop_ms": self.loop_ms(), "typical_loop_ms": median(found.values())}

    def _tried(self) -> list[int]:
        every = sorted(self._all)
        return every[:: -(-len(every) // MOST_CORES)]

    def _one_ms(self, torch: Any, value: Any) -> float:
        began_s = time.perf_counter()
        for _ in range(LAUNCHES):
            value.add(1)
        if self._gpu is not None:
            torch.cuda.synchronize(self._gpu)
        return 1000 * (time.perf_counter() - began_s)


def waited_s() -> float | None:
    """Return for how long this thread has waited for a core so far, in seconds; None where the kernel does not say."""
    try:
        return int(SCHEDSTAT.read_text(encoding="ascii").split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return None


def _move(cores: set[int]) -> bool:
    """Let this thread run on some cores only; tell whether the system allows it (a core may have gone)."""
    try:
        os.sched_setaffinity(0, cores)
    except OSError:
        return False
    return True

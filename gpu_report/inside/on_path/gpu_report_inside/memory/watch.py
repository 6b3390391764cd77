"""When to look for what holds the GPU's memory: torch's own counter says how much is allocated, and is all but free.

Two looks at least are needed: what was there at the first is a cache, what came since and stayed is kept. A look takes
the time that `LONGEST_LOOK_S` says at most, and there are `MOST_LOOKS` in a training.
"""

from __future__ import annotations

import functools
import sys
import time
from typing import TYPE_CHECKING, Any

from ..lines import LINES, report
from . import holders

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_LOOKS = 3  # in a training: from the third on a look says what survives, and each holds up a step
SECOND = 2  # the look that has only one to compare with
# Of CPU. With 2,400 labels a look took 0.4 s on an H200 (2026-11-28), with 30,000 on a slow host more. After 0.3 s
# those steps had been held up, and nothing had a name.
LONGEST_LOOK_S = 1.0
# Of Python's memory: the first walk through all objects cannot be stopped. With 11 million blocks (4 million objects)
# it took 0.23 s, and a whole look 0.46 s, on a slow core (2026-11-28).
MOST_BLOCKS = 20_000_000
# The report calls 4 % and 256 MiB growth (analyse/signals/thresholds.py): two looks lie within that.
LEAST_SHARE, LEAST_MIB = 0.02, 128.0
LEAST_SHARE_OF_CARD = 0.05  # within an epoch, where a look holds up a step: so much of what it may have is taken
BYTES_SHARE = 0.3  # of the growth; new tensors with fewer bytes do not explain it (the report asks for as much)
MIB = 2**20


def _kept_to_itself(method: Callable[[MemoryWatch, int], None]) -> Callable[[MemoryWatch, int], None]:
    """Return a method without its exceptions: what else is said of the epoch must be said."""

    @functools.wraps(method)
    def call(watch: MemoryWatch, epoch: int) -> None:
        try:
            method(watch, epoch)
        except Exception as error:  # noqa: BLE001 - the training must go on
            report("memory_watch", error)

    return call


class MemoryWatch:
    """What is known of one training's GPU memory in this process: numbers alone, no tensor is kept alive."""

    def __init__(self) -> None:
        self._least: dict[str, float] = {}
        self._looks = 0
        self._known: set[int] = set()
        self._recent: set[int] = set()
        self._named = False

    @_kept_to_itself
    def epoch_ends(self, epoch: int) -> None:
        """Look where much more is allocated than at the end of the epoch that had least, or at the last look."""
        allocated = allocated_mib()
        if allocated is not None:
            self._compare("epoch", allocated, max(LEAST_MIB, LEAST_SHARE * allocated), epoch)

    @_kept_to_itself
    def within_epoch(self, epoch: int) -> None:
        """Look where a share of what it may have was taken since: an epoch may be too long to wait for its end."""
        allocated, most = allocated_mib(), allowed_mib()
        if allocated is not None and most:
            self._compare("batch", allocated, LEAST_SHARE_OF_CARD * most, epoch)

    def now(self) -> dict[str, float]:
        """Return what tensors have of GPU memory as a field of a line; nothing without CUDA."""
        try:
            mib = allocated_mib()
        except Exception as error:  # noqa: BLE001 - what else is said must be said
            report("memory_watch", error)
            return {}
        return {} if mib is None else {"allocated_mib": round(mib, 1)}

    @_kept_to_itself
    def ran_out(self, epoch: int) -> None:
        """Look once more where CUDA was out of memory, and what took it has no name yet."""
        allocated = allocated_mib()
        if allocated is not None and self._looks and not self._named:
            self._look(allocated, None, epoch)

    def _compare(self, moment: str, allocated: float, enough: float, epoch: int) -> None:
        least = self._least.get(moment)
        if least is None or allocated < least:
            self._least[moment] = allocated
        elif allocated - least >= enough and self._looks < MOST_LOOKS:
            self._least = {moment: allocated}  # what comes from now on counts, at the other moment, too
            self._look(allocated, allocated - least, epoch)

    def _look(self, allocated: float, grown: float | None, epoch: int) -> None:
        """Compare with the looks before; from the third on what came between two of them and is still there counts."""
        if sys.getallocatedblocks() > MOST_BLOCKS:
            return
        began, began_s = time.thread_time(), time.monotonic()
        self._looks += 1
        enough_mib, survived = BYTES_SHARE * (grown or 0.0), self._looks > SECOND
        tensors, found = holders.look(self._kept, began + LONGEST_LOOK_S, enough_mib, survived=survived)
        if self._looks > 1:
            took_ms = round(1000 * (time.monotonic() - began_s), 1)
            cpu_ms = round(1000 * (time.thread_time() - began), 1)
            at: dict[str, Any] = {"epoch": epoch, "look": self._looks, "allocated_mib": round(allocated, 1)}
            at["grown_mib"] = None if grown is None else round(grown, 1)
            LINES.write("memory_holder", {**at, "took_ms": took_ms, "cpu_ms": cpu_ms, **found})
            self._named |= bool(found)
        self._recent = tensors
        if self._looks == 1:
            self._known = tensors

    def _kept(self, tensors: set[int]) -> set[int]:
        """Return those that came since the first look; once there were two, those that were there at the last."""
        if self._looks <= 1:
            return set()
        return (tensors if self._looks == SECOND else tensors & self._recent) - self._known


def allocated_mib() -> float | None:
    """Return how much GPU memory tensors have, in MiB, by torch's counter; None without CUDA."""
    cuda = _cuda()
    return None if cuda is None else cuda.memory_allocated() / MIB


def allowed_mib() -> float | None:
    """Return how much memory of its GPU this process may have, in MiB, by what torch knows; None without CUDA."""
    cuda = _cuda()
    if cuda is None:
        return None
    device = cuda.current_device()
    ask = getattr(cuda, "get_per_process_memory_fraction", None)  # of newer versions
    return float(cuda.get_device_properties(device).total_memory / MIB * (ask(device) if ask else 1.0))


def _cuda() -> Any:
    """Return torch.cuda where it is in use: it must not begin because we ask."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda if cuda is not None and cuda.is_initialized() else None

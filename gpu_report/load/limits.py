"""How much a recording of some length can hold. What holds more was made to hang a reader, or is broken: it is cut."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

MIB: Final = 2**20
LONGEST_TICK_S: Final = 10.0  # a row vouches for no more than this: a few rows must not make a year
MOST_BOOTS: Final = 100  # of a machine under one recording; a clock that falls back more often is no clock


@dataclass(frozen=True)
class Limits:
    """What may be read of a recording whose samples vouch for so many seconds: so much at once, and so much a second.

    What one costs the reader, measured on a slow core: an epoch 0.6 ms, a kernel line 0.04 ms, a process of YOLO 7 ms.
    """

    seconds: float = 0.0

    @property
    def event_bytes(self) -> int:
        """Return how much of events.jsonl is read; a flood of kernel lines, of which 34/s are kept, has 8 KiB/s."""
        return self._so_much(16 * MIB, 32 * 1024)

    @property
    def kernel_lines(self) -> int:
        """Return how many lines of the kernel log: a saved one has thousands, and the recorder keeps 34 a second."""
        return self._so_much(20_000, 40)

    @property
    def events(self) -> int:
        """Return how many other events of each kind: a driver that fails and recovers makes 2 a second."""
        return self._so_much(1_000, 10)

    @property
    def epochs(self) -> int:
        """Return how many epochs all processes together: 8 ranks of 3 s each are 2.7 a second."""
        return self._so_much(1_000, 3)

    @property
    def yolo_runs(self) -> int:
        """Return how many runs of YOLO, and processes of it: one takes 5 s to start, and some start 8 at a time."""
        return self._so_much(256, 2)

    @property
    def inside_bytes(self) -> int:
        """Return how much of what callbacks wrote, in all: an epoch has 8 lines of 220 to 450 bytes."""
        return self._so_much(4 * MIB, 16 * 1024)

    @property
    def stack_bytes(self) -> int:
        """Return how much of the stacks of all processes: 60 B/s of a main process, 35 of a worker, 128 of them."""
        return self._so_much(8 * MIB, 8 * 1024)

    @property
    def waits(self) -> int:
        """Return how many waits of processes: 30 new ones a minute are written."""
        return self._so_much(1_000, 1)

    @property
    def other_programs(self) -> int:
        """Return how many rows of programs of others: 30 a minute are written."""
        return self._so_much(1_000, 1)

    @property
    def results_bytes(self) -> int:
        """Return how much results.csv may have: it may be of a training that began days before the recording."""
        return self._so_much(8 * MIB, 4 * 1024)

    @property
    def results_rows(self) -> int:
        """Return how many rows: a day of short epochs has 15,000."""
        return self._so_much(30_000, 3)

    @property
    def processes(self) -> int:
        """Return how many processes on the GPUs: there is a look every 5 s, and one starts in a second or so."""
        return self._so_much(1_000, 10)

    def of_kind(self, kind: str) -> int:
        """Return how many events of a kind."""
        return self.kernel_lines if kind == "kernel" else self.events

    def _so_much(self, at_once: int, a_second: int) -> int:
        return at_once + int(self.seconds * a_second)


SHORT: Final = Limits()  # of a recording of which nothing else is known


def limits_of(ticks_s: npt.NDArray[np.float64]) -> Limits:
    """Return what a recording can hold in which the recorder looked at these times, in order."""
    return Limits(float(np.minimum(np.diff(ticks_s), LONGEST_TICK_S).sum()))

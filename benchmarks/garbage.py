"""What does a run of Python's garbage collector cost more where it is recorded? Nanoseconds of CPU, on this machine.

    python benchmarks/garbage.py

An empty youngest generation is collected again and again, with and without, in turn. Of a long one we ask for the stack
as well, which takes longer the deeper that is.
"""

import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "gpu_report" / "inside" / "on_path"))

from gpu_report_inside import garbage

TIMES, ROUNDS, DEPTHS = 20_000, 15, (5, 30)


def at_depth(depth: int, function: Callable[[], float]) -> float:
    """Return what a function returns that is called under so many others."""
    return at_depth(depth - 1, function) if depth else function()


def one_ns() -> float:
    """Return the CPU (ns) of one collection."""
    began_s = time.process_time()
    for _ in range(TIMES):
        gc.collect(0)
    return (time.process_time() - began_s) / TIMES * 1e9


def least_ns(depth: int, *, recorded: bool) -> float:
    """Return the least of some rounds: what else the machine does only adds to it."""
    found = []
    for _ in range(ROUNDS):
        (garbage.COLLECTIONS.start if recorded else garbage.COLLECTIONS.end)()
        found.append(at_depth(depth, one_ns))
    garbage.COLLECTIONS.end()
    return min(found)


if __name__ == "__main__":
    gc.disable()
    for depth in DEPTHS:
        plain, short = (least_ns(depth, recorded=recorded) for recorded in (False, True))
        garbage.LONG_NS, kept = 0, garbage.LONG_NS
        print(
            f"{depth} frames: {plain:.0f} ns, recorded {short:.0f}, with its stack {least_ns(depth, recorded=True):.0f}"
        )
        garbage.LONG_NS = kept

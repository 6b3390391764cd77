"""How fast the host is: a loop of small operations, and how long a thread waited for a core.

Cores of a virtual machine differ by a half, and change within seconds: others work on their other half. A call of one
image follows them, since on a GPU it is mostly small operations that the CPU launches.
"""

import time
from importlib import import_module
from pathlib import Path
from typing import Any

LAUNCHES = 100  # operations of a loop: half a millisecond
LOOPS = 4  # of which the shortest counts: the first one has cold caches
SCHEDSTAT = Path("/proc/thread-self/schedstat")  # nanoseconds: on a core, and waiting for one


def loop_ms(gpu: int | None) -> float:
    """Return how long the loop takes on the core that this thread is on, the shortest of LOOPS, in milliseconds.

    `gpu` is the GPU's number, None for a model on the CPU.
    """
    torch: Any = import_module("torch")
    value = torch.zeros(1, device="cpu" if gpu is None else f"cuda:{gpu}")
    return min(_one_ms(torch, value, gpu) for _ in range(LOOPS))


def waited_s() -> float | None:
    """Return for how long this thread has waited for a core so far, in seconds; None where the kernel does not say."""
    try:
        return int(SCHEDSTAT.read_text(encoding="ascii").split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return None


def _one_ms(torch: Any, value: Any, gpu: int | None) -> float:
    began_s = time.perf_counter()
    for _ in range(LAUNCHES):
        value.add(1)
    if gpu is not None:
        torch.cuda.synchronize(gpu)
    return 1000 * (time.perf_counter() - began_s)

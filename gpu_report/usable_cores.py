"""How many CPU cores this process may use."""

import os


def usable_cores() -> int:
    """Return the cores that the system allows it, where it says so (not on macOS), else those of the machine."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

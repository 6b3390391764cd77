"""Calls of the CUDA runtime that a steady training does without: memory that was not cached."""

from typing import Final

import numpy as np

from gpu_report.analyse.trace.name_masks import names_that
from gpu_report.analyse.trace.window import TraceWindow
from gpu_report.model import AllocatorCalls

ALLOCATES: Final = r"^(?:cuda|hip)(?:(?:Malloc|Free)(?:Host|Async)?|HostAlloc)$|^cuMem(?:Create|Map|Unmap|Release)$"


def allocator_calls(window: TraceWindow) -> tuple[AllocatorCalls, ...]:
    """Return the calls that get memory from the driver or give it back, in used steps, longest first."""
    calls = window.trace.calls
    rows = np.flatnonzero(names_that(window.trace, ALLOCATES)[calls.name] & window.in_used(calls.start_s))
    length_s = (calls.end_s - calls.start_s)[rows]
    found = (
        AllocatorCalls(window.trace.names[name], int(here.sum()), float(length_s[here].sum()))
        for name in np.unique(calls.name[rows]).tolist()
        for here in [calls.name[rows] == name]
    )
    return tuple(sorted(found, key=lambda each: -each.cpu_s))

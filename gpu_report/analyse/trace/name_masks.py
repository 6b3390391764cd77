"""Which names of a trace match a pattern: looked at once a name, not once an event."""

import re

import numpy as np

from gpu_report.analyse.trace.gpu_work import Bools
from gpu_report.model import Trace


def names_that(trace: Trace, pattern: str) -> Bools:
    """Return for each name of a trace whether a pattern is found in it, to be indexed by a column `name`."""
    search = re.compile(pattern).search
    return np.fromiter((search(name) is not None for name in trace.names), dtype=bool, count=len(trace.names))

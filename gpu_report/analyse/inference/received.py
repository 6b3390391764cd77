"""What a thread takes over from another process between calls: it computes there, or it waits until something comes.

Both stand in the same lines. The looks at whether the thread used the CPU there tell them apart.
"""

import re
from collections.abc import Mapping
from typing import Final

import numpy as np

from gpu_report.analyse.inference import thresholds as th
from gpu_report.analyse.inference.thread_seconds import Seconds
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.model import ProcessStacks, Stack

PIPES: Final = re.compile(r"[\\/]multiprocessing[\\/](?:connection|queues|reduction|managers)\.py$")
TAKES: Final = frozenset({"_recv", "_recv_bytes", "recv_bytes", "recv", "recv_bytes_into"})


def taking(process: ProcessStacks, spent: Seconds, span: Span) -> Mapping[int, float]:
    """Return for how many of its seconds in each stack the main thread took over what another process sent.

    None where the looks are too few to tell. Who polls does not stand in a function that reads.
    """
    mine = [number for number in spent if _takes(process.stacks.get(number, ()))]
    probes = process.probes
    if not mine or probes is None:
        return {}
    row = np.searchsorted(process.start_s, probes.at_s, side="right") - 1
    inside = (row >= 0) & (probes.at_s >= span[0]) & (probes.at_s < span[1])
    ran = probes.ran[inside][np.isin(process.number[row[inside]], mine)]
    if len(ran) < th.LOOKS_LEAST:
        return {}
    share = float(ran.mean())
    return {number: share * spent[number] for number in mine} if share else {}


def _takes(stack: Stack) -> bool:
    """Tell whether bytes of another process are read in a stack, or made into objects again."""
    inner = stack[0] if stack else None
    in_pipe = inner is not None and PIPES.search(inner.file) is not None
    return inner is not None and in_pipe and (inner.function in TAKES or inner.called == "loads")

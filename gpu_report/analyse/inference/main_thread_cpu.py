"""Whether a main thread computes between calls where it seems to wait, as where it takes over what another sent.

Both stand in the same lines. The looks at whether the thread used the CPU there tell them apart.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from gpu_report.analyse.inference import thresholds as th
from gpu_report.analyse.inference.gap_kinds import waits_in_own
from gpu_report.analyse.inference.thread_seconds import Seconds
from gpu_report.analyse.signals.code.stack_kinds import location_of
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.model import ProcessStacks, Stack

PIPES: Final = re.compile(r"[\\/]multiprocessing[\\/](?:connection|queues|reduction|managers)\.py$")
RECEIVES: Final = frozenset({"_recv", "_recv_bytes", "recv_bytes", "recv", "recv_bytes_into"})


def receiving_s(process: ProcessStacks, spent: Seconds, span: Span) -> Mapping[int, float]:
    """Return for how many of its seconds in each stack the main thread took over what another process sent.

    None where the looks are too few to tell. Who polls does not stand in a function that reads.
    """
    mine = [number for number in spent if _receives(process.stacks.get(number, ()))]
    share = _ran_share(process, mine, span)
    return {number: share * spent[number] for number in mine} if share else {}


def computing_s(process: ProcessStacks, spent: Seconds, span: Span) -> Mapping[int, float]:
    """Return for how many of its seconds in each stack the main thread computed in a function of the user's that waits.

    A note falls where a thread lets go of the interpreter's lock. So one that works with what it reads in small parts
    is noted in the line that reads. Nothing of a function in which it used the CPU for less than WORKS_SHARE.
    """
    functions: dict[tuple[str, str], list[int]] = {}
    for number in spent:
        stack = process.stacks.get(number, ())
        if waits_in_own(stack) and not _receives(stack) and (line := location_of(stack)) is not None:
            functions.setdefault((line.file, line.function), []).append(number)
    shares = {number: _ran_share(process, mine, span) for mine in functions.values() for number in mine}
    return {number: share * spent[number] for number, share in shares.items() if share >= th.WORKS_SHARE}


def _ran_share(process: ProcessStacks, mine: Sequence[int], span: Span) -> float:
    """Return at which share of the looks at a main thread in some stacks it used the CPU, 0 of too few to tell."""
    probes = process.probes
    if not mine or probes is None:
        return 0.0
    row = np.searchsorted(process.start_s, probes.at_s, side="right") - 1
    inside = (row >= 0) & (probes.at_s >= span[0]) & (probes.at_s < span[1])
    ran = probes.ran[inside][np.isin(process.number[row[inside]], mine)]
    return float(ran.mean()) if len(ran) >= th.PROBES_LEAST else 0.0


def _receives(stack: Stack) -> bool:
    """Tell whether bytes of another process are read in a stack, or made into objects again."""
    inner = stack[0] if stack else None
    in_pipe = inner is not None and PIPES.search(inner.file) is not None
    return inner is not None and in_pipe and (inner.function in RECEIVES or inner.called == "loads")

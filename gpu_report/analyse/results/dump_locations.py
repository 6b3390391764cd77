"""The lines of code of a finding by py-spy's dumps, where our own hook noted none.

A dump stands for the time around it, up to halfway to the one before and after: pauses between dumps grow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gpu_report.analyse.context import Context
from gpu_report.analyse.signals.code.stack_kinds import MAIN, WORKERS, is_loader, location_of
from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.analyse.timeseries.sums import sums_by_key
from gpu_report.catalogue import RULES
from gpu_report.model import CodeLocation, Finding, ProcessDumps, Stack

# Of one main process within a finding, or of the workers at work. Three that are all alike speak for a share of 37 % at
# least, with 95 % confidence (0.05 ** (1/3)); two for 22 %, which may be chance.
LEAST_DUMPS = 3
LEAST_SHARE = 0.1  # of the time: with 12 dumps at most, less is one of them
WAITS_SHARE = 0.5  # of the time in the loader: then what its workers did comes first


@dataclass(frozen=True)
class _DumpedStack:
    """A stack in a dump, and the seconds that the dump stands for."""

    stack: Stack
    seconds: float


def dump_locations(context: Context, finding: Finding, spans: Sequence[Span], most: int) -> tuple[CodeLocation, ...]:
    """Return at most so many lines in which a training was in some spans, each with the number of dumps.

    Only of drops: of what lasts longer, such as a slow epoch, dumps saw but the part in which the GPU was idle.
    """
    if not RULES[finding.rule].drop:
        return ()
    fed = _of_gpus(context, finding)
    of_each = [list(_seen(each, spans)) for each in fed if not each.is_worker]
    mains = [seen for each in of_each if len(each) >= LEAST_DUMPS for seen in each]
    workers = [seen for each in fed if each.is_worker for seen in _seen(each, spans)]
    waited_s = sum(seen.seconds for seen in mains if any(map(is_loader, seen.stack)))
    waits = bool(mains) and waited_s >= WAITS_SHARE * sum(seen.seconds for seen in mains)
    found = [*(_locations(WORKERS, workers) if waits else ()), *_locations(MAIN, mains)]
    return tuple(found[:most])


def _of_gpus(context: Context, finding: Finding) -> list[ProcessDumps]:
    """Return the processes that fed a finding's GPUs, and their workers; all, where the driver named none of them."""
    table, dumps = context.run.processes, context.run.dumps
    if not table["pid"].isin([each.pid for each in dumps]).any():
        return list(dumps)
    gpus = set(finding.gpus) or ({finding.gpu} if finding.gpu is not None else set())
    on_gpus = set(table[table["gpu"].isin(gpus)]["pid"].tolist())
    return [each for each in dumps if (each.parent if each.is_worker else each.pid) in on_gpus]


def _seen(process: ProcessDumps, spans: Sequence[Span]) -> Iterator[_DumpedStack]:
    for start_s, end_s in spans:
        first, last = np.searchsorted(process.at_s, [start_s, end_s], side="left").tolist()
        seconds = _stands_for_s(process.at_s[first:last], start_s).tolist()
        yield from map(_DumpedStack, process.stacks[first:last], seconds)


def _stands_for_s(at_s: Floats, start_s: float) -> Floats:
    """Return the time that each dump of a span stands for: half of the pause before it and half of that after it.

    The first stands for all of the time from the span's start. The pause after the last counts as long as that before.
    """
    before_s = np.diff(at_s, prepend=start_s)
    after_s = np.append(before_s[1:], before_s[-1:])
    seconds = (before_s + after_s) / 2
    seconds[:1] += before_s[:1] / 2
    return np.maximum(seconds, 0.0)


def _locations(role: str, seen: Sequence[_DumpedStack]) -> Iterator[CodeLocation]:
    """Yield the lines of most of the time first; of a worker only while it was at work."""
    at = [(location_of(each.stack, of_worker=role == WORKERS), each.seconds) for each in seen]
    lines = sums_by_key((line, seconds) for line, seconds in at if line is not None)
    known, total = sum(line is not None for line, _ in at), sum(lines.values())
    if known < LEAST_DUMPS or total <= 0:
        return
    for line, spent in sorted(lines.items(), key=lambda each: -each[1]):
        if spent >= LEAST_SHARE * total:
            yield CodeLocation(role, line.function, line.file, line.line, spent / total, known)

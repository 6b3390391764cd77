"""What epochs lose while all other ranks of a training wait for one: its cause, else the waits themselves."""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

from gpu_report.analyse.context import Context
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.intervals import Span, intersect, minus, union
from gpu_report.catalogue import SLOW_RANK, WAITING_FOR_PEER
from gpu_report.model import Finding


def waited_for(context: Context, training: Training, took: Sequence[Finding]) -> Mapping[str, list[Span]]:
    """Return by cause when nothing of a training went on but the rank that the others waited for.

    A step takes as long as its slowest rank: while a second one works, too, no faster first one makes it shorter.
    """
    together, slow = _together(context, training), [f for f in took if f.rule == SLOW_RANK and f.cause]
    causes = {finding.cause.name for finding in slow if finding.cause}
    found = {cause: [f.span for f in slow if f.cause and f.cause.name == cause] for cause in causes}
    waits = [finding.span for finding in took if finding.rule == WAITING_FOR_PEER]
    found[WAITING_FOR_PEER] = minus(union(waits), [finding.span for finding in slow])
    return {cause: intersect(union(spans), together) for cause, spans in found.items()}


def _together(context: Context, training: Training) -> list[Span]:
    """Return when all GPUs of a training waited but for one; all of this node's where they wait for another node."""
    return union([span for waits in _of_the_others(context, training) for span in reduce(intersect, waits)])


def _of_the_others(context: Context, training: Training) -> Iterator[list[list[Span]]]:
    """Yield the waits of all GPUs of a training but one, for each that may be late."""
    waits = {gpu: [wait.span for wait in context.busy_waits if wait.gpu == gpu] for gpu in training.gpus}
    for late in (None,) if context.run.job.is_of_several_nodes else sorted(training.gpus):
        if others := [spans for gpu, spans in waits.items() if gpu != late]:
            yield others

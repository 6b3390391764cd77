"""Rule: two trainings of one recording worked on the same GPU at the same time. Each gets a part of it only."""

from collections.abc import Sequence
from itertools import combinations, pairwise

from gpu_report.analyse.causes.confidence import STRONG
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.intervals import Span, intersect, length_s, union
from gpu_report.model import Advice, Cause, Finding
from gpu_report.wording import counted


def trainings_at_once(context: Context) -> list[Finding]:
    """Report when several trainings that callbacks told of trained on one GPU together, for OTHER_PROCESS_AT_LEAST_S.

    A process can only be in one training at a time: two that seem to overlap are one after the other.
    """
    told = [training for training in context.trainings if training.rank_group is not None]
    found = []
    for series in context.used_series:
        here = [training for training in told if series.gpu in training.gpus]
        spans = _together(here)
        if length_s(spans) >= th.OTHER_PROCESS_AT_LEAST_S:
            found.append(_finding(context, series.gpu, here, spans))
    return found


def _together(trainings: Sequence[Training]) -> list[Span]:
    """Return when two or more of some trainings, of different processes, trained."""
    both = [
        span
        for one, other in combinations(trainings, 2)
        if not _pids(one) & _pids(other)
        for span in intersect(one.train_spans, other.train_spans)
    ]
    return union(both)


def _pids(training: Training) -> frozenset[int]:
    return training.rank_group.pids if training.rank_group else frozenset()


def _finding(context: Context, gpu: int, trainings: Sequence[Training], spans: Sequence[Span]) -> Finding:
    whole = (spans[0][0], spans[-1][1])
    mine = [each for each in trainings if length_s(intersect(each.train_spans, spans)) > 0]
    times = counted(len(mine), "training", "trainings")
    signals = context.signals.of(gpu, *whole)
    short = f"Train one after the other, or each on a GPU of its own: {times} shared GPU {gpu}"
    return context.finding(
        "other-process",
        "warning",
        whole,
        f"{times} shared GPU {gpu} for {length_s(spans):.0f} s",
        gpu=gpu,
        evidence=evidence(
            ("trainings on this GPU at the same time", float(_most_at_once(mine)), ""),
            ("they trained at the same time for", length_s(spans), "s"),
            ("utilisation meanwhile", signals.gpu_within("gpu_util_pct"), "%"),
        ),
        cause=Cause("other-process", STRONG, f"{times} of this recording shared the GPU"),
        advice=(Advice(f"{short}. Together they may still finish sooner than one by one: compare", short=short),),
    )


def _most_at_once(trainings: Sequence[Training]) -> int:
    """Return the largest number of trainings that trained at one moment."""
    edges = sorted({edge for each in trainings for span in each.train_spans for edge in span})
    middles = [(a + b) / 2 for a, b in pairwise(edges)]
    return max((sum(any(a <= t <= b for a, b in each.train_spans) for each in trainings) for t in middles), default=0)

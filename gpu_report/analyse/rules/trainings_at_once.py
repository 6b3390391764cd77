"""Rule: two trainings of one recording worked on the same GPU at the same time. Each gets a part of it only."""

from collections.abc import Sequence
from itertools import accumulate, combinations

from gpu_report.analyse.causes.confidence import STRONG
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.intervals import Span, intersect, union
from gpu_report.gpu_words import gpu_words
from gpu_report.model import Advice, Cause, Finding
from gpu_report.wording import counted, length


def trainings_at_once(context: Context) -> list[Finding]:
    """Report when several trainings that callbacks told of trained on one GPU together, for OTHER_PROCESS_AT_LEAST_S.

    A process can only be in one training at a time: two that seem to overlap are one after the other.
    """
    told = [training for training in context.trainings if training.rank_group is not None and training.train_spans]
    found = []
    for series in context.used_series:
        here = [training for training in told if series.gpu in training.gpus]
        spans = union([span for one, other in combinations(here, 2) for span in _together(one, other)])
        found += [_finding(context, series.gpu, here, s) for s in spans if s[1] - s[0] >= th.OTHER_PROCESS_AT_LEAST_S]
    return found


def _together(one: Training, other: Training) -> list[Span]:
    """Return when two trainings of different processes trained at once, validations in between included."""
    return [] if _pids(one) & _pids(other) else intersect([_extent(one)], [_extent(other)])


def _extent(training: Training) -> Span:
    return training.train_spans[0][0], training.train_spans[-1][1]


def _pids(training: Training) -> frozenset[int]:
    return training.rank_group.pids if training.rank_group else frozenset()


def _finding(context: Context, gpu: int, trainings: Sequence[Training], span: Span) -> Finding:
    most = _most_at_once(trainings, span)
    times = counted(most, "training", "trainings")
    signals = context.signals.of(gpu, *span)
    short = f"Train one after the other, or each on a GPU of its own: {times} shared {gpu_words(gpu)}"
    return context.finding(
        "other-process",
        "warning",
        span,
        f"{times} shared {gpu_words(gpu)} for {length(span[1] - span[0])}",
        gpu=gpu,
        evidence=evidence(
            ("trainings on this GPU at the same time, at most", float(most), ""),
            ("utilisation meanwhile", signals.gpu_within("gpu_util_pct"), "%"),
        ),
        cause=Cause("other-process", STRONG, f"{times} of this recording shared the GPU"),
        advice=(Advice(f"{short}. Together they may still finish sooner than one by one: compare", short=short),),
    )


def _most_at_once(trainings: Sequence[Training], span: Span) -> int:
    """Return the largest number of trainings that trained at one moment of a stretch."""
    parts = [both for each in trainings for both in intersect([span], [_extent(each)])]
    edges = sorted([(start, 1) for start, _ in parts] + [(end, -1) for _, end in parts])
    return max(accumulate(step for _, step in edges), default=0)

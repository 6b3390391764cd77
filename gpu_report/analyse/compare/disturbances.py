"""What disturbed a training now and then: it is set aside where two runs' speed in the steady state is compared.

One rule for all: what lies in more than RECURS_SHARE of a run's ordinary epochs is how that run trains, and stays; what
is rarer is set aside, with every epoch or window that it took more than DISTURBED_SHARE of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpu_report.analyse.compare import thresholds as th
from gpu_report.analyse.compare.samples import RunSample
from gpu_report.analyse.timeseries.interval_cover import IntervalCover, interval_cover
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.catalogue import RULES
from gpu_report.model import EpochSummary, Finding

Kinds = Mapping[tuple[str, str | None], Sequence[Finding]]


def rare_disturbances(training: RunSample) -> tuple[Finding, ...]:
    """Return what disturbed a few of the ordinary epochs, each time that it did; nothing that recurs."""
    spans = [whole_span(epoch) for epoch in training.epochs]
    rare = [found for found in _by_kind(training).values() if 0 < _touched(found, spans) <= _few(len(spans))]
    return tuple(finding for found in rare for finding in found)


def cover_of(disturbances: Sequence[Finding]) -> IntervalCover:
    """Return the time that is disturbed."""
    return interval_cover(finding.span for finding in disturbances)


def is_steady(cover: IntervalCover, span: Span) -> bool:
    """Tell whether so little of a span is disturbed that it tells how fast the training is."""
    return cover.seconds_in(span) <= th.DISTURBED_SHARE * (span[1] - span[0])


def train_span(epoch: EpochSummary) -> Span:
    """Return the training part of an epoch."""
    return epoch.start_t_s, epoch.start_t_s + (epoch.train_s or 0.0)


def validation_span(epoch: EpochSummary) -> Span:
    """Return the validation of an epoch, which comes after its training."""
    end_s = train_span(epoch)[1]
    return end_s, end_s + (epoch.validation_s or 0.0)


def checkpoint_span(epoch: EpochSummary) -> Span:
    """Return what follows the validation of an epoch: its checkpoint, and callbacks."""
    end_s = validation_span(epoch)[1]
    return end_s, end_s + (epoch.checkpoint_s or 0.0)


def whole_span(epoch: EpochSummary) -> Span:
    """Return an epoch's training and validation."""
    return epoch.start_t_s, validation_span(epoch)[1]


def _by_kind(training: RunSample) -> Kinds:
    """Return all that may disturb a training, each time that it happened, by rule and cause."""
    kinds: dict[tuple[str, str | None], list[Finding]] = {}
    for finding in training.analysis.findings:
        if RULES[finding.rule].disturbs and not finding.expected:
            kinds.setdefault((finding.rule, finding.cause.name if finding.cause else None), []).extend(finding.each)
    return kinds


def _touched(found: Sequence[Finding], spans: Sequence[Span]) -> int:
    cover = cover_of(found)
    return sum(not is_steady(cover, span) for span in spans)


def _few(epochs: int) -> int:
    """Return in how many of so many epochs something may lie, and still be no habit of the run: always in one."""
    return max(int(th.RECURS_SHARE * epochs), 1)

"""The epoch that a training is expected to have, of which no steady one was recorded: they may take hours."""

from collections.abc import Sequence
from dataclasses import replace

from gpu_report.analyse.advice import thresholds as th
from gpu_report.analyse.context import Context
from gpu_report.analyse.rules.epochs.typical_validation import RECURRING
from gpu_report.analyse.timeline.thresholds import FIRST_VALIDATION_EXTRA_S, SETTLED_AT_LEAST_S, WARM_UP_S
from gpu_report.analyse.timeline.trainings import Training, whole
from gpu_report.analyse.timeseries.intervals import Span, length_s, minus
from gpu_report.model import EpochSummary


def expected_epoch(context: Context, training: Training | None, firsts: Sequence[EpochSummary]) -> EpochSummary | None:
    """Return an epoch with the seconds that training takes and waits in it (`train_s`, `data_wait_s`), else None.

    It is as long as its batches take after the warm-up, as callbacks reported them; or as the first epoch, where that
    was shorter: a warm-up only adds to it, and a rate of its end has an empty queue. Where callbacks reported no
    batches, it is the first epoch, if that is long enough for the warm-up not to matter.
    """
    if training is None:
        return None
    spans = training.within(context.undisturbed)
    long = [epoch for epoch in firsts if (epoch.train_s or 0.0) * th.WARM_UP_SHARE >= WARM_UP_S]
    expected = _of_batches(context, training, spans)
    if expected is None:
        return long[-1] if long else None
    shorter = [epoch for epoch in firsts if 0 < (epoch.train_s or 0.0) < (expected.train_s or 0.0)]
    return _as_later_ones(context, training, shorter[-1]) if shorter else expected


def _as_later_ones(context: Context, training: Training, epoch: EpochSummary) -> EpochSummary:
    """Return a first epoch without what its last batch took longer for being of a size that was new then."""
    mine = [span for span in training.train_spans if epoch.start_t_s <= span[0] and span[1] <= epoch.end_t_s]
    images, batch = whole(training.settings.get("images")), whole(training.settings.get("batch"))
    if context.throughput is None or epoch.train_s is None or not mine or not images or not batch or not images % batch:
        return epoch
    return replace(epoch, train_s=epoch.train_s - context.throughput.odd_batch_s(mine[0]))


def expected_end_s(context: Context, firsts: Sequence[EpochSummary]) -> float:
    """Return what validation and saving take at least (s) at the end of later epochs, by that of a first one.

    The first validation starts its workers and loads kernels: what it takes beyond that comes again, and so does
    the part that it has in common with later ones. 0 where no first epoch was whole.
    """
    if not firsts:
        return 0.0
    first = firsts[-1]
    within = (p for p in context.phases if p.validated and first.start_t_s <= p.start_t_s < first.end_t_s)
    known = next((phase.validated for phase in within if phase.name == "validation"), None)
    recurs_s = known.seconds.get(RECURRING, 0.0) if known else 0.0
    return max((first.validation_s or 0.0) - FIRST_VALIDATION_EXTRA_S, recurs_s) + (first.checkpoint_s or 0.0)


def epoch_as_it_went(context: Context, training: Training) -> EpochSummary | None:
    """Return the epoch that its batches come to at the speed of all its training, but for the warm-up; else None."""
    spans = training.train_spans
    if not spans:
        return None
    warm_s = context.throughput.warm_at_s(spans[0]) if context.throughput else 0.0
    return _of_batches(context, training, minus(spans, [(spans[0][0], max(spans[0][0] + WARM_UP_S, warm_s))]))


def _of_batches(context: Context, training: Training, spans: Sequence[Span]) -> EpochSummary | None:
    """Return the epoch that its batches come to at the speed of some spans, where these are a few of them."""
    batches, seconds = whole(training.settings.get("batches")), length_s(spans)
    if context.throughput is None or not batches or seconds < SETTLED_AT_LEAST_S:
        return None
    rate, wait = context.throughput.batches_per_s(spans), context.throughput.data_wait_share(spans)
    if not rate or wait is None or rate * seconds < th.STEPS_LEAST:
        return None
    start_s, train_s = spans[0][0], batches / rate
    return EpochSummary(
        run=training.number or 0,
        epoch=1,
        attempt=1,
        start_t_s=start_s,
        end_t_s=start_s + train_s,
        gpu_util_pct=None,
        memory_peak_mib=None,
        energy_j=None,
        gpus={},
        loss=None,
        lr=None,
        train_s=train_s,
        data_wait_s=wait * train_s,
    )

"""Rule: from epoch to epoch the trainer waits longer for data (reported by callbacks only)."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from statistics import mean

from gpu_report.analyse.causes import Explanation, explain_waiting
from gpu_report.analyse.causes.confidence import LIKELY
from gpu_report.analyse.causes.slower_storage import advice_on_storage, until_cached
from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.epochs.comparable_epochs import KnownSlowdowns, TrainedEpoch, groups
from gpu_report.analyse.rules.epochs.growth import (
    advice_on_growth,
    evidence_of_growth,
    lost_gpu_s,
    risen,
    risen_line,
    risen_since,
    thirds,
)
from gpu_report.analyse.rules.epochs.slower_cpu import by_slower_cpu
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.timeseries.intervals import as_array
from gpu_report.analyse.timeseries.trend import Trend, mann_kendall_rise
from gpu_report.catalogue import CAUSES
from gpu_report.model import Advice, Finding
from gpu_report.wording import epoch_length

MEMORY = "memory-pressure"


def data_wait_growing(context: Context, epochs: Sequence[TrainedEpoch], held_up: KnownSlowdowns) -> list[Finding]:
    """Report data waits that rise over the run and cost some seconds: caches that fill, a disk that others load."""
    found = ((siblings, risen(siblings, held_up, waits_grow)) for siblings in groups(epochs))
    return [_finding(context, _with_first(siblings, *rise), rise[1]) for siblings, rise in found if rise is not None]


def _with_first(
    siblings: Sequence[TrainedEpoch], steady: Sequence[TrainedEpoch], grown: Trend
) -> Sequence[TrainedEpoch]:
    """Return the steady epochs with those right before a rise at one moment that waited as the ones since then do.

    Utilisation fell in them, and that is no other event: it is how the rise began.
    """
    if grown.is_gradual:
        return steady
    since = risen_since(steady, [epoch.data_wait_s or 0.0 for epoch in steady], grown)
    before = reversed([epoch for epoch in siblings if epoch.span < since.span])
    left_out = itertools.takewhile(lambda epoch: epoch not in steady, before)
    begun = list(itertools.takewhile(lambda epoch: (epoch.data_wait_s or 0.0) >= risen_line(grown), left_out))
    return sorted([*steady, *begun], key=lambda epoch: epoch.span)


def waits_grow(epochs: Sequence[TrainedEpoch]) -> Trend | None:
    """Return how data waits of epochs rose, None where they did not, or too little to matter, or were not reported."""
    waits = [epoch.data_wait_s for epoch in epochs if epoch.data_wait_s is not None]
    grown = mann_kendall_rise(waits) if len(waits) == len(epochs) else None
    if grown is None:
        return None
    trained_s = mean(epoch.train_s for epoch in thirds(epochs)[1])
    enough = grown.grown >= max(th.WAIT_GROWS_S, th.WAIT_GROWS_SHARE * trained_s)
    return grown if enough and sum(waits) - len(waits) * grown.first >= th.WAIT_COSTS_S else None


def _finding(context: Context, epochs: Sequence[TrainedEpoch], grown: Trend) -> Finding:
    lost_s = sum((epoch.data_wait_s or 0.0) - grown.first for epoch in epochs)
    why, since = (
        _why(context, epochs, grown),
        risen_since(epochs, [epoch.data_wait_s or 0.0 for epoch in epochs], grown),
    )
    on = "" if since is epochs[0] else f", from epoch {since.epoch} on"
    rose = "grew" if grown.is_gradual else "rose"  # at one moment
    because = f": {why.cause.explanation}" if why is not None else ""
    return context.finding(
        "data-wait-growing",
        "warning",
        (since.span[0], epochs[-1].span[1]),
        f"Waiting for data {rose} from {epoch_length(grown.first)} to {epoch_length(grown.last)} an epoch{on}{because}",
        evidence=(
            *evidence_of_growth(context, epochs, grown, "waiting for data per epoch", lost_s),
            *(why.evidence if why is not None else ()),
        ),
        cause=None if why is None else why.cause,
        advice=advice_on_wait(why) or _look(context, epochs, grown, why),
        epoch=None,
        phase=None,
        lost_gpu_s=lost_gpu_s(context, epochs, lost_s),
    )


def _look(
    context: Context, epochs: Sequence[TrainedEpoch], grown: Trend, why: Explanation | None
) -> tuple[Advice, ...]:
    """Return where to look for what grows: what is to be done about memory that is short, else in the loader.

    Where pages are waited for, a line of code is the one that touches them, and not what takes the memory.
    """
    if why is not None and why.cause.name == MEMORY:
        return (Advice(CAUSES[MEMORY].always),)
    return (advice_on_growth(context, epochs, grown, "Find what grows in the data loader", "data loading"),)


def _why(context: Context, epochs: Sequence[TrainedEpoch], grown: Trend) -> Explanation | None:
    """Return why the loader did not keep up in an epoch that waited as the last ones did, None where it is a guess."""
    first, last = thirds(epochs, grown)
    return why_waited(context, last, first)


def why_waited(
    context: Context, waiting: Sequence[TrainedEpoch], usual: Sequence[TrainedEpoch], least: float = LIKELY
) -> Explanation | None:
    """Return why the loader did not keep up in the middle one of some epochs by their wait.

    None where that is a guess, of less than the `least` confidence.

    Typical is what others had: where most of a run waits, that is what its steady state is.
    """
    waited = sorted(waiting, key=lambda epoch: epoch.data_wait_s or 0.0)[len(waiting) // 2]
    alike = signals_beside(context, waited, usual)
    if alike is None:
        return None
    found = explain_waiting(alike)
    if found is None or found.cause.confidence < least:
        return None
    at_first = waiting[-1].span < min(epoch.span for epoch in usual)
    cached = until_cached(context.run.host, [waited.span], [epoch.span for epoch in usual]) if at_first else ()
    return by_slower_cpu(context, with_storage_advice(found, alike, cached), usual, waiting)


def with_storage_advice(found: Explanation, signals: IntervalSignals, cached: tuple[Advice, ...] = ()) -> Explanation:
    """Return why epochs were slow with what to do about storage that kept up in others, `cached` where memory did."""
    if found.cause.name != "input-storage" or found.advice:
        return found
    return replace(found, advice=cached or (advice_on_storage(signals),))


def signals_beside(context: Context, epoch: TrainedEpoch, usual: Sequence[TrainedEpoch]) -> IntervalSignals | None:
    """Return what was read in an epoch, with what others had as typical; None where nobody knows its training."""
    training = context.training_at(epoch.span[0])
    if training is None or not training.gpus:
        return None
    signals = context.signals.of(min(training.gpus), *epoch.span)
    others = as_array([each.span for each in usual])
    return replace(signals, host=signals.host.with_steady(others), own=signals.own.with_steady(others))


def advice_on_wait(why: Explanation | None) -> tuple[Advice, ...]:
    """Return what to do about epochs that waited, where their cause says it: who has the cores, or the disk."""
    return why.advice if why is not None else ()

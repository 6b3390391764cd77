"""Rule: from epoch to epoch the trainer waits longer for data (reported by callbacks only)."""

from collections.abc import Sequence
from statistics import mean

from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.epochs.comparable_epochs import HeldUp, TrainedEpoch, groups
from gpu_report.analyse.rules.epochs.growth import advice_on_growth, evidence_of_growth, risen, thirds
from gpu_report.analyse.timeseries.trend import Trend, mann_kendall_rise
from gpu_report.model import Finding
from gpu_report.wording import epoch_length


def data_wait_growing(context: Context, epochs: Sequence[TrainedEpoch], held_up: HeldUp) -> list[Finding]:
    """Report data waits that rise over the run and cost some seconds: caches that fill, a disk that others load."""
    found = (risen(siblings, held_up, waits_grow) for siblings in groups(epochs))
    return [_finding(context, *each) for each in found if each is not None]


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
    return context.finding(
        "data-wait-growing",
        "warning",
        (epochs[0].span[0], epochs[-1].span[1]),
        f"Waiting for data grew from {epoch_length(grown.first)} to {epoch_length(grown.last)} an epoch",
        evidence=evidence_of_growth(
            context, epochs, grown, "waited for data in an epoch of the first third (median)", lost_s
        ),
        advice=(advice_on_growth(context, epochs, grown, "Find what grows in the data loader"),),
        epoch=None,
        phase=None,
    )

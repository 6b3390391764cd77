"""What epochs take now where something changed for good: in the last ones, in which what slows them goes on."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np

from gpu_report.analyse.advice.judged_epochs import ALL, JudgedEpoch, rest_of_epoch_s
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.catalogue import UNEXPLAINED
from gpu_report.model import Finding, SpeedupLimit

WHOLE_SHARE = 0.9  # of an epoch's training: what holds so much of it up is there all along, and no moment
LAST_EPOCHS = 3  # in a row at the end: fewer may be a fault that passes, and say little of the epochs to come

Limits = Callable[[Sequence[JudgedEpoch]], Iterable[SpeedupLimit]]


def with_ongoing_limits(
    limits_of: Limits, epochs: Sequence[JudgedEpoch], findings: Sequence[Finding], left_out: str
) -> Iterator[SpeedupLimit]:
    """Yield the limits of all epochs, by their mean; of a cause that goes on since some epoch, by the mean since then.

    A training that goes on, or is begun anew, has epochs such as the last ones.
    """
    for limit in limits_of(epochs):
        last = _epochs_still_affected(
            epochs, [each for each in findings if (each.cause_name or UNEXPLAINED) == limit.cause]
        )
        now = next((each for each in limits_of(last) if each.cause == limit.cause), None) if last else None
        if now is None:
            yield _by_mean(limit, epochs, f"{ALL}{left_out}")
        else:
            since = last[0].summary.epoch
            yield replace(_by_mean(now, last, f"epochs {since} to {last[-1].summary.epoch}"), since=since)


def _by_mean(limit: SpeedupLimit, epochs: Sequence[JudgedEpoch], which: str) -> SpeedupLimit:
    return replace(limit, rest_s=rest_of_epoch_s(epochs, fmean), now_is=f"mean of {which}", is_mean=True)


def _epochs_still_affected(epochs: Sequence[JudgedEpoch], findings: Sequence[Finding]) -> Sequence[JudgedEpoch]:
    """Return the last epochs, each of which findings hold up all along; none where they are few, or there is no other.

    The one in which it began is none of them.
    """
    held_s = interval_cover(one.span for each in findings for one in each.each).seconds_in_each(
        [epoch.span for epoch in epochs]
    )
    others = np.flatnonzero(held_s < WHOLE_SHARE * np.array([epoch.train_s for epoch in epochs]))
    first = int(others[-1]) + 1 if len(others) else 0
    return epochs[first:] if first and len(epochs) - first >= LAST_EPOCHS else ()

"""Which epochs stand out from their siblings, and in what."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.model import EpochSummary
from gpu_report.vocabulary import FIRST_EPOCH, MOSAIC_CLOSED, cause_words, lower_first


@dataclass(frozen=True)
class _Measure:
    """A length of an epoch in seconds (None: unknown), and how it is told."""

    words: Callable[[EpochSummary], str]
    of: Callable[[EpochSummary], float | None]


def _held_words(epoch: EpochSummary) -> str:
    """Return what held an epoch up between its batches, as the finding of it says."""
    return f"{lower_first(cause_words(epoch.held_by))} for"


def _held_s(epoch: EpochSummary) -> float | None:
    """Return how long it was held up between batches: not at all where nothing says so, but batches were told."""
    return None if epoch.data_wait_s is None else epoch.held_s or 0.0


MEASURES = (
    _Measure(lambda _: "training took", lambda epoch: epoch.train_s),
    _Measure(lambda _: "validation took", lambda epoch: epoch.validation_s),
    _Measure(lambda _: "the checkpoint took", lambda epoch: epoch.checkpoint_s),
    _Measure(lambda _: "it waited for data", lambda epoch: epoch.data_wait_s),
    _Measure(_held_words, _held_s),
)


def with_outliers(epochs: Sequence[EpochSummary]) -> tuple[EpochSummary, ...]:
    """Return the epochs, each with what of it is longer than its siblings' (thresholds.ODD_*); shorter is no fault."""
    reasons: list[list[str]] = [[] for _ in epochs]
    for run in {epoch.run for epoch in epochs}:
        mine = [number for number, epoch in enumerate(epochs) if epoch.run == run]
        for measure in MEASURES:
            known = [number for number in mine if measure.of(epochs[number]) is not None]
            values = np.array([measure.of(epochs[number]) for number in known], dtype=float)
            for place in _odd(values):
                typical = float(np.median(values))
                reasons[known[place]].append(
                    f"{measure.words(epochs[known[place]])} {values[place]:.1f} s, usually {typical:.1f} s"
                )
    return tuple(
        replace(epoch, odd=(*why, *((note,) if (note := _note(epoch)) else ()))) if why else epoch
        for epoch, why in zip(epochs, reasons, strict=True)
    )


def _odd(values: Floats) -> list[int]:
    """Return the row_ranges of the values that are far above the rest."""
    if len(values) < th.ODD_SIBLINGS:
        return []
    typical = float(np.median(values))
    sigma = th.MAD_TO_SIGMA * float(np.median(np.abs(values - typical)))
    line = typical + max(th.ODD_SHARE * typical, th.ODD_AT_LEAST_S, th.ODD_Z * sigma)
    odd: list[int] = np.flatnonzero(values > line).tolist()
    return odd


def _note(epoch: EpochSummary) -> str:
    """Return what is known to make an epoch longer: it is the first of its process, or its mosaic was closed."""
    if epoch.first:
        return FIRST_EPOCH
    return MOSAIC_CLOSED if epoch.closing else ""

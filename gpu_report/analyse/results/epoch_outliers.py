"""Which epochs stand out from their siblings, and in what."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from gpu_report.analyse.timeseries.robust_outliers import high_outliers
from gpu_report.analyse.timeseries.thresholds import OUTLIER_AT_LEAST_S, OUTLIER_SHARE
from gpu_report.model import EpochSummary, Outlier, PartName


def _stall_s(epoch: EpochSummary) -> float | None:
    """Return how long it was held up between batches: not at all where nothing says so, but batches were reported."""
    return None if epoch.data_wait_s is None else epoch.stall_s or 0.0


# Each part of an epoch that may stand out, and its length in seconds (None: unknown).
PARTS: dict[PartName, Callable[[EpochSummary], float | None]] = {
    "train": lambda epoch: epoch.train_s,
    "validation": lambda epoch: epoch.validation_s,
    "checkpoint": lambda epoch: epoch.checkpoint_s,
    "data wait": lambda epoch: epoch.data_wait_s,
    "stall": _stall_s,
}


def with_outliers(epochs: Sequence[EpochSummary]) -> tuple[EpochSummary, ...]:
    """Return the epochs, each with what of it is longer than its siblings' (OUTLIER_*); shorter is no fault."""
    found: list[list[Outlier]] = [[] for _ in epochs]
    for run in {epoch.run for epoch in epochs}:
        mine = [number for number, epoch in enumerate(epochs) if epoch.run == run]
        for part, length_of in PARTS.items():
            known = [number for number in mine if length_of(epochs[number]) is not None]
            values = np.array([length_of(epochs[number]) for number in known], dtype=float)
            for place in high_outliers(values, OUTLIER_AT_LEAST_S, OUTLIER_SHARE).tolist():
                epoch = epochs[known[place]]
                cause = epoch.stall_cause if part == "stall" else ""
                found[known[place]].append(Outlier(part, float(values[place]), float(np.median(values)), cause))
    return tuple(
        replace(epoch, outliers=tuple(why)) if why else epoch for epoch, why in zip(epochs, found, strict=True)
    )

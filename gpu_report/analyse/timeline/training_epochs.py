"""When a training trained: epoch by epoch where those are known, else all that it worked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpu_report.analyse.timeline import thresholds as th
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats
from gpu_report.analyse.timeseries.intervals import Indices, Span, as_array, mask_of_ranges, minus
from gpu_report.model import Phase


@dataclass(frozen=True)
class TrainingEpoch:
    """The training of one epoch, in spans; `epoch` is None where epochs are not known."""

    epoch: int | None
    spans: tuple[Span, ...]

    @property
    def start_s(self) -> float:
        """Return when it began."""
        return self.spans[0][0]

    @property
    def end_s(self) -> float:
        """Return when it ended."""
        return self.spans[-1][1]


class EpochEdges(NamedTuple):
    """Epochs as arrays: when each began and ended, all their spans, and which of these is the first of each epoch."""

    start_s: Floats
    end_s: Floats
    spans: Floats
    first_span: Indices


@dataclass(frozen=True)
class TrainingEpochs:
    """The epochs of one training in order of time, at least one."""

    all: tuple[TrainingEpoch, ...]

    @cached_property
    def after_warm_up(self) -> tuple[TrainingEpoch, ...]:
        """Return the epochs without the first, in which memory is still being taken.

        Of one epoch alone, that epoch without its first fifth.
        """
        if len(self.all) > 1:
            return self.all[1:]
        (epoch,) = self.all
        from_s = epoch.start_s + th.SETTLES_SHARE * (epoch.end_s - epoch.start_s)
        return (TrainingEpoch(epoch.epoch, tuple(minus(epoch.spans, [(epoch.start_s, from_s)]))),)

    @property
    def start_s(self) -> float:
        """Return when the first of them began."""
        return self.all[0].start_s

    @property
    def end_s(self) -> float:
        """Return when the last of them ended."""
        return self.all[-1].end_s

    @cached_property
    def spans(self) -> list[Span]:
        """Return all their spans in order: many drops ask for those of thousands of epochs."""
        return [span for epoch in self.all for span in epoch.spans]

    @property
    def epoch_s(self) -> float | None:
        """Return how long an epoch takes (median), validation and checkpoint included; None with fewer than three."""
        starts = [epoch.start_s for epoch in self.after_warm_up]
        return float(np.median(np.diff(starts))) if len(starts) > 1 else None

    def covers(self, t_s: Floats) -> Bools:
        """Return which moments lie in one of them."""
        return mask_of_ranges(len(t_s), *rows_of(t_s, as_array(self.spans)))

    @cached_property
    def edges_after_warm_up(self) -> EpochEdges:
        """Return where the epochs after warm-up begin and end, and their spans, worked out once for all GPUs."""
        spans = as_array([span for epoch in self.after_warm_up for span in epoch.spans])
        count = np.array([len(epoch.spans) for epoch in self.after_warm_up])
        first = np.cumsum(count) - count
        return EpochEdges(spans[first, 0], spans[first + count - 1, 1], spans, first)


def rows_of(t_s: Floats, spans: Floats) -> tuple[Indices, Indices]:
    """Return the first row that lies in [start, end] of each span, and the one after the last."""
    return np.searchsorted(t_s, spans[:, 0]), np.searchsorted(t_s, spans[:, 1], side="right")


def training_epochs(phases: Sequence[Phase]) -> TrainingEpochs | None:
    """Return the epochs of one training, whose phases these are; None where it came to no training."""
    epochs: list[TrainingEpoch] = []
    for phase in phases:
        if phase.name == "train":
            _add(epochs, phase)
    return TrainingEpochs(tuple(epochs)) if epochs else None


def epochs_of_each_training(phases: Sequence[Phase]) -> Iterator[TrainingEpochs]:
    """Yield the epochs of each training: startup, idle time or an epoch counted from anew lies between two."""
    epochs: list[TrainingEpoch] = []
    for phase in phases:
        restarts = phase.name == "train" and epochs and (phase.epoch or 0) < (epochs[-1].epoch or 0)
        if epochs and (restarts or phase.name in {"startup", "idle"}):
            yield TrainingEpochs(tuple(epochs))
            epochs = []
        if phase.name == "train":
            _add(epochs, phase)
    if epochs:
        yield TrainingEpochs(tuple(epochs))


def _add(epochs: list[TrainingEpoch], phase: Phase) -> None:
    """Add a train phase to its epoch, which is the last one, or as a new one."""
    span = phase.span
    if epochs and epochs[-1].epoch == phase.epoch:
        epochs[-1] = TrainingEpoch(phase.epoch, (*epochs[-1].spans, span))
    else:
        epochs.append(TrainingEpoch(phase.epoch, (span,)))

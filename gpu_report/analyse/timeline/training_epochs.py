"""When a training trained: epoch by epoch where those are known, else all that it worked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats
from gpu_report.analyse.timeseries.intervals import Indices, Span, as_array, mask_of_ranges, minus
from gpu_report.model import Phase


@dataclass(frozen=True)
class Part:
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


class Edges(NamedTuple):
    """Parts as arrays: when each began and ended, all their spans, and which of these is the first of each part."""

    start_s: Floats
    end_s: Floats
    spans: Floats
    first_span: Indices


@dataclass(frozen=True)
class Parts:
    """The parts of one training in order of time, at least one."""

    all: tuple[Part, ...]

    @cached_property
    def later(self) -> tuple[Part, ...]:
        """Return the parts without the first epoch, in which memory is still being taken.

        Of one part alone, that part without its first fifth.
        """
        if len(self.all) > 1:
            return self.all[1:]
        (part,) = self.all
        from_s = part.start_s + th.SETTLES_SHARE * (part.end_s - part.start_s)
        return (Part(part.epoch, tuple(minus(part.spans, [(part.start_s, from_s)]))),)

    @property
    def start_s(self) -> float:
        """Return when the first of them began."""
        return self.all[0].start_s

    @property
    def end_s(self) -> float:
        """Return when the last of them ended."""
        return self.all[-1].end_s

    @property
    def spans(self) -> list[Span]:
        """Return all their spans in order."""
        return [span for part in self.all for span in part.spans]

    @property
    def epoch_s(self) -> float | None:
        """Return how long an epoch takes (median), validation and checkpoint included; None with fewer than three."""
        starts = [part.start_s for part in self.later]
        return float(np.median(np.diff(starts))) if len(starts) > 1 else None

    def covers(self, t_s: Floats) -> Bools:
        """Return which moments lie in one of them."""
        return mask_of_ranges(len(t_s), *rows_of(t_s, as_array(self.spans)))

    @cached_property
    def later_edges(self) -> Edges:
        """Return where the later parts begin and end, and their spans: arrays that are worked out once for all GPUs."""
        spans = as_array([span for part in self.later for span in part.spans])
        count = np.array([len(part.spans) for part in self.later])
        first = np.cumsum(count) - count
        return Edges(spans[first, 0], spans[first + count - 1, 1], spans, first)


def rows_of(t_s: Floats, spans: Floats) -> tuple[Indices, Indices]:
    """Return the first row that lies in [start, end] of each span, and the one after the last."""
    return np.searchsorted(t_s, spans[:, 0]), np.searchsorted(t_s, spans[:, 1], side="right")


def parts_of(phases: Sequence[Phase]) -> Parts | None:
    """Return the parts of one training, whose phases these are; None where it came to no training."""
    parts: list[Part] = []
    for phase in phases:
        if phase.name == "train":
            _add(parts, phase)
    return Parts(tuple(parts)) if parts else None


def parts_apart(phases: Sequence[Phase]) -> Iterator[Parts]:
    """Yield the parts of each training: a startup, idle time or an epoch counted from anew parts one from the next."""
    parts: list[Part] = []
    for phase in phases:
        restarts = phase.name == "train" and parts and (phase.epoch or 0) < (parts[-1].epoch or 0)
        if parts and (restarts or phase.name in {"startup", "idle"}):
            yield Parts(tuple(parts))
            parts = []
        if phase.name == "train":
            _add(parts, phase)
    if parts:
        yield Parts(tuple(parts))


def _add(parts: list[Part], phase: Phase) -> None:
    """Add a train phase to the part of its epoch, which is the last one, or as a new one."""
    span = (phase.start_t_s, phase.end_t_s)
    if parts and parts[-1].epoch == phase.epoch:
        parts[-1] = Part(phase.epoch, (*parts[-1].spans, span))
    else:
        parts.append(Part(phase.epoch, (span,)))

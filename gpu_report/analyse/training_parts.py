"""The training parts of each process of YOLO: epoch by epoch where those are known, else all that it worked."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.context import Context
from gpu_report.analyse.spans import Indices, Span, as_array, covered, minus
from gpu_report.analyse.track import Bools, Floats
from gpu_report.model import Phase, YoloRun


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
class Training:
    """One process of YOLO while it trained: its parts in order of time, at least one."""

    parts: tuple[Part, ...]

    @cached_property
    def later(self) -> tuple[Part, ...]:
        """Return the parts without the first epoch, in which memory is still being taken.

        Of a training with one part, that part without its first fifth.
        """
        if len(self.parts) > 1:
            return self.parts[1:]
        (part,) = self.parts
        from_s = part.start_s + th.SETTLES_SHARE * (part.end_s - part.start_s)
        return (Part(part.epoch, tuple(minus(part.spans, [(part.start_s, from_s)]))),)

    @property
    def end_s(self) -> float:
        """Return when its last part ended."""
        return self.parts[-1].end_s

    @property
    def epoch_s(self) -> float | None:
        """Return how long an epoch takes (median), validation and checkpoint included; None with fewer than three."""
        starts = [part.start_s for part in self.later]
        return float(np.median(np.diff(starts))) if len(starts) > 1 else None

    def covers(self, t_s: Floats) -> Bools:
        """Return which moments lie in one of its parts."""
        return covered(len(t_s), *rows_of(t_s, as_array([span for part in self.parts for span in part.spans])))

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


def trainings(context: Context) -> tuple[Training, ...]:
    """Return the trainings of a run; without epochs one, of all time outside startup and idle."""
    return context.once(_trainings)


def _trainings(context: Context) -> tuple[Training, ...]:
    told = tuple(Training(parts) for parts in _processes(context.phases))
    if told or not context.activity.used_gpus:
        return told
    awake = minus([(0.0, context.run.duration_s)], [*context.activity.startups, *context.activity.idle])
    return (Training((Part(None, tuple(awake)),)),) if awake else ()


def yolo_run_of(context: Context, training: Training) -> YoloRun | None:
    """Return the YOLO run that a training belongs to: that of its first row, else the only one there is."""
    rows, runs = context.boundaries.all, context.run.yolo_runs
    at = bisect_left(rows, training.parts[0].start_s, key=lambda boundary: boundary.row.row_t_s)
    number = rows[at].row.run if at < len(rows) and rows[at].row.start_t_s <= training.end_s else None
    named = next((yolo for yolo in runs if yolo.number == number), None)
    return named or (runs[0] if len(runs) == 1 else None)


def _processes(phases: tuple[Phase, ...]) -> Iterator[tuple[Part, ...]]:
    """Yield the parts of each process: a startup, idle time or an epoch counted from anew parts one from the next."""
    parts: list[Part] = []
    for phase in phases:
        restarts = phase.name == "train" and parts and (phase.epoch or 0) < (parts[-1].epoch or 0)
        if parts and (restarts or phase.name in {"startup", "idle"}):
            yield tuple(parts)
            parts = []
        if phase.name != "train":
            continue
        span = (phase.start_t_s, phase.end_t_s)
        if parts and parts[-1].epoch == phase.epoch:
            parts[-1] = Part(phase.epoch, (*parts[-1].spans, span))
        else:
            parts.append(Part(phase.epoch, (span,)))
    if parts:
        yield tuple(parts)

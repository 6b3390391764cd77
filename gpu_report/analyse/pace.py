"""How fast a training went at any time: images a second within its epochs, as its callbacks told every few seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpu_report.analyse.spans import Span
from gpu_report.analyse.track import Floats
from gpu_report.model import InsideEpoch, InsideRun, Run


@dataclass(frozen=True, eq=False)
class Pace:
    """Batches done and seconds trained since the beginning at times `t_s`, straight lines between; validation is none.

    `images` is how many images a batch has on average.
    """

    t_s: Floats
    batches: Floats
    trained_s: Floats
    images: float

    def within(self, spans: Sequence[Span]) -> float | None:
        """Return images a second of training within spans, None where nothing was trained there."""
        done = sum(self._grown(self.batches, span) for span in spans)
        seconds = sum(self._grown(self.trained_s, span) for span in spans)
        return self.images * done / seconds if seconds > 0 else None

    def _grown(self, values: Floats, span: Span) -> float:
        before, after = np.interp(span, self.t_s, values)
        return float(after - before)


def pace_of(run: Run) -> Pace | None:
    """Return the pace of a recording's trainings, by rank 0; None where nothing was told from inside."""
    points: list[tuple[float, float, float]] = []
    images = batches = 0
    for process in sorted(
        (p for p in run.inside if p.rank == 0), key=lambda p: p.phases[0].start_t_s if p.phases else 0
    ):
        for epoch in process.epochs:
            if epoch.end_t_s is not None and epoch.end_t_s > epoch.start_t_s:
                _add(points, _points(process, epoch, epoch.end_t_s))
                images, batches = images + (epoch.images or 0), batches + epoch.batches
    if not points or not images or not batches:
        return None
    t_s, done, trained_s = (np.array(column, dtype=float) for column in zip(*points, strict=True))
    return Pace(t_s, done, trained_s, images / batches)


def _points(process: InsideRun, epoch: InsideEpoch, end_s: float) -> list[tuple[float, int]]:
    """Return (time, batches done) within an epoch."""
    told = [(each.t_s, each.batches) for each in process.progress if epoch.start_t_s < each.t_s < end_s]
    known = [(t_s, done) for t_s, done in told if done <= epoch.batches]
    return [(epoch.start_t_s, 0), *known, (end_s, epoch.batches)]


def _add(points: list[tuple[float, float, float]], epoch: Sequence[tuple[float, int]]) -> None:
    """Add an epoch's points to those of all."""
    _, done, trained_s = points[-1] if points else (0.0, 0.0, 0.0)
    points += [(t_s, done + count, trained_s + t_s - epoch[0][0]) for t_s, count in epoch]

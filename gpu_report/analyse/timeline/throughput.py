"""How fast a training went at any time, and how much of it waited for data, as callbacks reported every few seconds."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from gpu_report.analyse.timeline.ranks import rank_groups
from gpu_report.analyse.timeline.thresholds import STRETCH_BATCHES, WARMING_UP_TIMES
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.analyse.timeseries.intervals import Span, indices_within
from gpu_report.analyse.timeseries.thresholds import TOUCHED_S
from gpu_report.model import InsideEpoch, InsideRun, Run

LEAST_REPORTS = 3  # of an epoch: the first, one whose batches tell how long one takes, and the last
# An odd last batch took 2.3 to 4.2 s at steps of 0.13 to 0.19 s, and 8 s on a slow host; without one the end of a first
# epoch was within 1.4 steps of the others (21 runs).
ODD_BATCH_STEPS = 5.0

Point = tuple[float, float, float, float, float]  # a row of Throughput


@dataclass(frozen=True, eq=False)
class Throughput:
    """What had been done since the beginning at times `t_s`, with straight lines between; validation is no training.

    Batches, the images in them (a batch of a training has as many as it has on average), seconds trained, and seconds
    of these that training waited for data.
    """

    t_s: Floats
    batches: Floats
    images: Floats
    trained_s: Floats
    waited_s: Floats

    def images_per_s(self, spans: Sequence[Span]) -> float | None:
        """Return images a second of training within spans, None where nothing was trained there."""
        return self._share(self.images, spans)

    def batches_per_s(self, spans: Sequence[Span]) -> float | None:
        """Return batches a second of training within spans, None where none was done there.

        The time from the last one that was counted to the end of its epoch is none of theirs: a batch that `time=`
        breaks off is never counted, and may have taken most of that time.
        """
        seconds = self._grown(self._counted_s, spans)
        return self._grown(self.batches, spans) / seconds if seconds > 0 else None

    def counts_within(self, spans: Sequence[Span]) -> bool:
        """Tell whether batches were counted within spans, and not only at the ends of the epochs that these lie in."""
        return int(self._is_counted[indices_within(self.t_s, spans)].sum()) >= LEAST_REPORTS

    @cached_property
    def _is_counted(self) -> Bools:
        """Return at which reports batches had been done since the one before."""
        return np.diff(self.batches, prepend=0.0) > 0

    @cached_property
    def _counted_s(self) -> Floats:
        """Return the seconds trained up to each report, without those that end in no batch."""
        return np.cumsum(np.where(self._is_counted, np.diff(self.trained_s, prepend=0.0), 0.0))

    def least_batch_s(self, spans: Sequence[Span]) -> float | None:
        """Return the seconds of a batch in the fastest stretch between two reports that spans touch, None without one.

        In a short training one batch that takes seconds, as an epoch's last one of another size, spoils the mean.
        """
        if not spans:
            return None
        first, last = self._points_around((min(start for start, _ in spans), max(end for _, end in spans)))
        near = slice(first, last + 1)  # of a month's reports, for each of hundreds of drops
        t_s, batches, seconds = self.t_s[near], np.diff(self.batches[near]), np.diff(self.trained_s[near])
        touched = interval_cover(spans).seconds_in_each(np.column_stack([t_s[:-1], t_s[1:]])) > 0
        known = (batches >= STRETCH_BATCHES) & touched
        return float((seconds[known] / batches[known]).min()) if known.any() else None

    def odd_batch_s(self, span: Span) -> float:
        """Return what the last batch of a first epoch took longer than the others (s), 0 where that is not much.

        Of another size, it has its kernels loaded and tuned. `span` is of the training of an epoch that ended: the last
        report in it comes a few batches before its end, of which the others took as long as those before, beside waits.
        """
        rows = self._counting(span[0], span[1] + TOUCHED_S)
        if len(rows) < LEAST_REPORTS:
            return 0.0
        first, before, last = rows[0], rows[-2], rows[-1]
        batches, seconds = self.batches, self.trained_s - self.waited_s
        step_s = (seconds[before] - seconds[first]) / (batches[before] - batches[first])
        longer_s = float(seconds[last] - seconds[before] - (batches[last] - batches[before]) * step_s)
        return longer_s if longer_s >= ODD_BATCH_STEPS * step_s else 0.0

    def _counting(self, start_s: float, end_s: float) -> npt.NDArray[np.intp]:
        """Return the reports in a span, but for those of no more batches than the report before."""
        rows = np.flatnonzero((self.t_s >= start_s) & (self.t_s <= end_s))
        counting: npt.NDArray[np.intp] = rows[np.concatenate([[True], np.diff(self.batches[rows]) > 0])[: len(rows)]]
        return counting

    def warm_at_s(self, span: Span) -> float:
        """Return when the batches of a first epoch began to take what most of it took, beside waits for data."""
        rows = self._counting(span[0] - TOUCHED_S, span[1] + TOUCHED_S)
        if len(rows) < LEAST_REPORTS:
            return span[0]
        batches = np.diff(self.batches[rows])
        each_s = np.diff((self.trained_s - self.waited_s)[rows]) / batches
        slow = each_s >= WARMING_UP_TIMES * _weighted_median(each_s, batches)
        return float(self.t_s[rows[np.argmin(slow)]])

    def data_wait_share(self, spans: Sequence[Span]) -> float | None:
        """Return the share of training within spans that waited for data, 0 to 1, None where nothing was trained.

        A wait is known once it is over. In old recordings a callback of the user's at the end of a batch counts as one.
        """
        return self._share(self.waited_s, spans)

    def data_wait_s(self, span: Span) -> float:
        """Return the seconds waited for data from the last report before a stretch to the first one after it.

        A wait is reported once it is over: this holds the whole of one that lies in the stretch, and maybe more.
        """
        first, last = self._points_around(span)
        return float(self.waited_s[last] - self.waited_s[first])

    def without(self, stops: Sequence[tuple[Span, float]]) -> Throughput:
        """Return the same throughput, of each stretch the given seconds taken from the waits reported around it."""
        waits = np.diff(self.waited_s, prepend=0.0)
        for span, seconds in stops:
            first, last = self._points_around(span)
            mine = waits[first + 1 : last + 1]
            waited_s = float(mine.sum())
            mine *= max(1 - seconds / waited_s, 0.0) if waited_s > 0 else 1.0
        return replace(self, waited_s=np.cumsum(waits))

    def _points_around(self, span: Span) -> tuple[int, int]:
        """Return which point was reported last before a stretch, and which first after it."""
        first = max(int(np.searchsorted(self.t_s, span[0], side="right")) - 1, 0)
        return first, min(int(np.searchsorted(self.t_s, span[1], side="left")), len(self.t_s) - 1)

    def _share(self, values: Floats, spans: Sequence[Span]) -> float | None:
        seconds = self._grown(self.trained_s, spans)
        return self._grown(values, spans) / seconds if seconds > 0 else None

    def _grown(self, values: Floats, spans: Sequence[Span]) -> float:
        before, after = np.interp(np.array(spans, dtype=float).reshape(-1, 2).T, self.t_s, values)
        grown: list[float] = (after - before).tolist()
        return sum(grown)


def _weighted_median(values: Floats, weights: Floats) -> float:
    order = np.argsort(values)
    grown = np.cumsum(weights[order])
    return float(values[order[np.searchsorted(grown, grown[-1] / 2)]])


def throughput_of(run: Run) -> Throughput | None:
    """Return the throughput of a recording's trainings; None without reports, or of two at once.

    Of several ranks it is that of the one that waited longest for data: the others waited for it.
    """
    return _throughput([group.waits_most for group in rank_groups(run) if group.main.rank == 0])


def throughput_by_gpu(run: Run) -> dict[int, Throughput]:
    """Return the throughput of the rank of each GPU, where a training has several: each has a loader of its own."""
    ranks: dict[int, list[InsideRun]] = {}
    for rank in (rank for group in rank_groups(run) if len(group.ranks) > 1 for rank in group.ranks):
        gpu = run.gpu_of_uuid(rank.settings.get("gpu_uuid"))
        if gpu is not None:
            ranks.setdefault(gpu, []).append(rank)
    found = ((gpu, _throughput(mine)) for gpu, mine in ranks.items())
    return {gpu: throughput for gpu, throughput in found if throughput is not None}


def _throughput(reported: Sequence[InsideRun]) -> Throughput | None:
    """Return the throughput of processes that trained one after the other, None without reports, or of two at once."""
    points: list[Point] = []
    for process in sorted(reported, key=lambda process: process.phases[0].start_t_s if process.phases else 0.0):
        ended = [(e, e.end_t_s) for e in process.epochs if e.end_t_s is not None and e.end_t_s > e.start_t_s]
        images, batches = sum(epoch.images or 0 for epoch, _ in ended), sum(epoch.batches for epoch, _ in ended)
        each = images / batches if images and batches else _batch(process)
        for epoch, end_s in ended if images and batches else ():
            _add(points, [*_points(process, epoch, end_s), (end_s, epoch.batches, epoch.data_wait_s)], each or 0.0)
        if (running := _running(process)) is not None and each:
            _add(points, running, each)
    if not points:
        return None
    t_s, done, seen, trained_s, waited_s = (np.array(column, dtype=float) for column in zip(*points, strict=True))
    return None if (np.diff(t_s) < 0).any() else Throughput(t_s, done, seen, trained_s, waited_s)


def _batch(process: InsideRun) -> int | None:
    """Return the images of a batch, over all ranks, as they were set; None where that is not known."""
    size = process.settings.get("batch")
    return size if isinstance(size, int) and not isinstance(size, bool) and size > 0 else None


def _running(process: InsideRun) -> list[tuple[float, int, float]] | None:
    """Return (time, batches done, seconds waited) of an epoch that was not over at the last report, None without one.

    Epochs take hours, and a recording may be over before the first of them is. What an exception had reported in the
    end is left out: the wait that it may have broken off is not in it.
    """
    last = process.epochs[-1] if process.epochs else None
    if last is None or last.end_t_s is not None:
        return None
    points = _points(process, last, math.inf)
    points = points if process.ended is None else points[:-1]
    return points if len(points) > 1 else None


def _points(process: InsideRun, epoch: InsideEpoch, end_s: float) -> list[tuple[float, int, float]]:
    """Return (time, batches done, seconds waited) from the start of an epoch to the last report in it."""
    first = bisect_right(process.progress, epoch.start_t_s, key=lambda reported: reported.t_s)
    last = bisect_left(process.progress, end_s, key=lambda reported: reported.t_s)
    most = epoch.batches if epoch.end_t_s is not None else math.inf
    known = [(p.t_s, p.batches, p.data_wait_s) for p in process.progress[first:last] if p.batches <= most]
    return [(epoch.start_t_s, 0, 0.0), *known]


def _add(points: list[Point], epoch: Sequence[tuple[float, int, float]], images: float) -> None:
    """Add an epoch's points to those of all; `images` are in a batch of it."""
    _, done, seen, trained_s, waited_s = points[-1] if points else (0.0, 0.0, 0.0, 0.0, 0.0)
    start_s = epoch[0][0]
    points += [
        (t_s, done + count, seen + count * images, trained_s + t_s - start_s, waited_s + wait_s)
        for t_s, count, wait_s in epoch
    ]

"""Where utilisation fell: drops against the level before them, and low intervals (docs/findings.md)."""

import dataclasses
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view

from gpu_report.analyse.signals import thresholds as th
from gpu_report.analyse.signals.gpu.dips_without_drop import Dips, are_short, ends_of_dips
from gpu_report.analyse.timeline.thresholds import LEVEL_AT_LEAST_S, LOW_PCT
from gpu_report.analyse.timeseries.block_sums import BLOCK, BlockSums
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats, GpuSeries, Percents
from gpu_report.analyse.timeseries.intervals import Indices
from gpu_report.analyse.timeseries.low_stretches import Pairs, longest_stray_s, low_stretches, stretch_bounds
from gpu_report.analyse.timeseries.running_seconds import RunningSeconds
from gpu_report.analyse.timeseries.thresholds import READING_SLACK, STRAY_S
from gpu_report.median import medians_of
from gpu_report.model import Interval, Options, TimeSpan

# Medians of single windows are dearer than rolling ones: only where so many times a series is sorted. A report of a day
# of 8 GPUs takes 2.9 s with them, 3.5 s with rolling ones alone (2 cores).
FEW_TIMES = 8
FEW_LEVELS = 64  # are worked out one by one before pandas has begun
WINDOWS_OF = 1 << 20  # readings that are copied at once for that


@dataclass(frozen=True)
class Drop(TimeSpan):
    """Utilisation under its line from `start_t_s` to `end_t_s`; `level_pct` before it, `mean_pct` within it."""

    gpu: int
    start_t_s: float
    end_t_s: float
    level_pct: float
    mean_pct: float
    sustained: bool


def find_drops(
    series: GpuSeries, usable: Bools, trains: Bools, options: Options, anew_s: Sequence[float] = ()
) -> tuple[Drop, ...]:
    """Return the drops of one GPU; `usable` says which readings lie outside startup and idle.

    Levels are of the readings in which it `trains`: a validation between them, however long, is no part of them. At the
    moments `anew_s`, in order, the level starts anew: another training may have been set up otherwise.
    """
    edges = [0, *np.searchsorted(series.t_s, np.array(anew_s, dtype=float)).tolist(), len(series.t_s)]
    found: list[Drop] = []
    for first, last in pairwise(edges):
        part = series if (first, last) == (0, len(series.t_s)) else _part(series, first, last)
        chosen = slice(first, last)
        found += _Search(part, usable[chosen], trains[chosen], options.line_share, options.drop_seconds).drops()
    return tuple(found)


def find_low_intervals(series: GpuSeries, usable: Bools) -> tuple[Interval, ...]:
    """Return the stretches of usable readings under LOW_PCT that last LOW_AT_LEAST_S or more."""
    low = usable & (series.util_pct < LOW_PCT)
    begins, ends = stretch_bounds(series, low, usable, STRAY_S)
    long = ~are_short(series, begins, ends, th.LOW_AT_LEAST_S - READING_SLACK * series.interval_s)
    pairs = zip(begins[long].tolist(), ends[long].tolist(), strict=True)
    found = [pair for stretch in pairs for pair in _truly_low(series, low, stretch)]
    return tuple(_interval(series, *pair) for pair in found if _counts(series, pair, th.LOW_AT_LEAST_S))


def _medians(windows: Percents, chosen: Indices) -> Percents:
    """Return the median of some windows, so many at a time that their copy takes little memory."""
    few = max(WINDOWS_OF // windows.shape[1], 1)
    each = [medians_of(windows[chosen[at : at + few]]) for at in range(0, len(chosen), few)]
    return np.concatenate(each)


def _marked_before(marked: Bools, at: Indices) -> Indices:
    """Return how many of the marked readings lie before each of some, which are in order and differ."""
    if not len(at):
        return at
    between = np.add.reduceat(marked, at, dtype=np.intp)[:-1]
    before: Indices = np.cumsum(np.concatenate([[np.count_nonzero(marked[: at[0]])], between]))
    return before


def _median(values: Percents) -> float:
    """Return the median of a few known readings, as np.median has it, which takes twenty times as long for a few."""
    half, ordered = len(values) // 2, np.sort(values)
    return float(ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2)


def _truly_low(series: GpuSeries, low: Bools, stretch: tuple[int, int]) -> Pairs:
    """Return the stretch if strays are the exception in it; else its runs without strays."""
    first, last = stretch
    part = low[first:last]
    if _few_strays(series, part, first, last):
        return [stretch]
    return [(first + a, first + b) for a, b in low_stretches(_part(series, first, last), part, np.ones_like(part), 0.0)]


def _few_strays(series: GpuSeries, low: Bools, first: int, last: int) -> bool:
    hold = series.weight_s[first:last]
    return float(hold[~low].sum()) <= th.STRAY_SHARE * float(hold.sum())


def _counts(series: GpuSeries, pair: tuple[int, int], at_least_s: float) -> bool:
    """Tell whether a stretch is long enough: its edges are known to half an interval in all."""
    first, last = pair
    length = series.t_s[last - 1] + series.weight_s[last - 1] - series.t_s[first]
    enough = last - first >= th.LOW_READINGS
    return bool(enough and length >= at_least_s - READING_SLACK * series.interval_s)


def _interval(series: GpuSeries, first: int, last: int) -> Interval:
    start, end = float(series.t_s[first]), float(series.t_s[last - 1] + series.weight_s[last - 1])
    return Interval(series.gpu, start, end, series.mean_util_pct(start, end))


class _Search:
    """The scan for drops of one series: finds each start, follows it to its end, and keeps it out of later levels.

    No level is above 100 %: what is not under the line of that level is in no drop. So a drop lies in one of the low
    stretches by that line, and of these only the few that are long enough are looked at. Levels are worked out for all
    their readings at once, and anew only where a drop disturbs them: a report of a day of 8 GPUs at 45 % takes 5 s so,
    and 54 s where each level is worked out by itself.
    """

    def __init__(self, series: GpuSeries, usable: Bools, trains: Bools, share: float, at_least_s: float) -> None:
        self.series, self.share, self.at_least_s = series, share, at_least_s
        self.usable = usable
        self.window = max(round(th.LEVEL_OVER_S / series.interval_s), th.LOW_READINGS)
        self.at_least = max(round(LEVEL_AT_LEAST_S / series.interval_s), 1)
        # readings that the level is made of: of training (without enough of it, of any work), and in no drop
        self.kept = trains.copy() if trains.sum() >= self.at_least else usable.copy()
        self.trained_s = RunningSeconds(series.weight_s, trains)
        self.sustained_s = max(th.SUSTAINED_AFTER_S, th.SUSTAINED_SHARE * self.trained_s.total)
        self.low = stretch_bounds(series, usable & (series.util_pct < share * 100), usable, STRAY_S)
        self.behind = 0  # the end of the last dip that was looked at
        self.region = 0, 0  # the stretch that is looked at
        self._strays_over: dict[float, BlockSums] = {}  # seconds over a line
        # by line the stretch that was looked at last, and the seconds of strays that were too many in it
        self._many: dict[float, tuple[int, int, float]] = {}
        self._ends_of: dict[tuple[float, float], Indices] = {}  # of the low stretches in it, by line and strays borne

    def drops(self) -> Iterator[Drop]:
        """Yield the drops in order."""
        regions = self._regions()
        undisturbed = self._candidates(regions)
        disturbed_until = 0
        for at, last in regions:
            self.region = at, last
            self._ends_of.clear()
            dips = self._dips(*undisturbed)
            while (found := self._next_start(at, last, dips, disturbed_until)) is not None:
                drop, at, disturbed = self._follow(*found)  # noqa: PLW2901 - the search goes on from there
                self.behind, disturbed_until = at, max(disturbed_until, disturbed)
                if drop is not None:
                    yield drop

    def _regions(self) -> Pairs:
        """Return [first, last) of the stretches in which drops may lie: long ones, and what touches them."""
        firsts, lasts = self.low
        if not len(firsts):
            return []
        long = self.series.ends_of(lasts - 1) - self.series.t_s[firsts] >= self._least_s
        begins = np.concatenate([[True], firsts[1:] > lasts[:-1]])
        group = np.cumsum(begins) - 1
        ends = np.append(begins[1:], True)
        holds = np.bincount(group, long) > 0
        return list(zip(firsts[begins][holds].tolist(), lasts[ends][holds].tolist(), strict=True))

    @property
    def _least_s(self) -> float:
        """Return how long readings must be low: the edges of a drop are known to half an interval in all."""
        return self.at_least_s - READING_SLACK * self.series.interval_s

    def _follow(self, at: int, start: int, before: float) -> tuple[Drop | None, int, int]:
        """Return the drop that begins at `start` (None: none), where to go on, and until where it disturbs levels.

        `before` is the level there (%).
        """
        line, end = self.share * before, start
        for stray_s in (STRAY_S, 0.0):  # strays may have joined too much: what holds without them?
            end = self._end(start, line, stray_s)
            if not _counts(self.series, (at, end), self.at_least_s):  # nor from where it may have begun
                continue
            begin, level = self._reach_back(at, start, before, stray_s)
            drop = self._drop(begin, end, level)
            if drop is not None:
                new_state = self._exclude(begin, end)
                return drop, min(end, new_state), self._settled(min(end, new_state))
        return None, end, 0

    def _candidates(self, regions: Pairs) -> tuple[Indices, Floats]:
        """Return the readings in some stretches that are under their line, and their levels.

        They are what they are where no drop lies within its window.
        """
        if not regions:
            return np.empty(0, dtype=np.intp), np.empty(0)
        every = np.concatenate([np.arange(*region) for region in regions])
        every = every[self.usable[every] & (self.series.util_pct[every] < self.share * 100)]
        levels = self._undisturbed_levels(every)
        under = (levels >= LOW_PCT) & (self.series.util_pct[every] < self.share * levels)
        return every[under], levels[under]

    def _undisturbed_levels(self, at: Indices) -> Floats:
        """Return the level before some readings as it is where no drop lies within its window, NaN where unknown."""
        values = self.series.util_pct[self.kept]
        before = _marked_before(self.kept, at)
        whole: Bools = before >= self.window
        level = np.full(len(at), np.nan)
        if 0 < whole.sum() * self.window <= FEW_TIMES * len(values):
            level[whole] = _medians(sliding_window_view(values, self.window), before[whole] - self.window)
            values, rest = values[: self.window], ~whole & (before > 0)
        else:
            rest = before > 0
        if rest.sum() <= FEW_LEVELS:
            level[rest] = [
                _median(values[max(count - self.window, 0) : count]) if count >= self.at_least else np.nan
                for count in before[rest].tolist()
            ]
        else:
            medians = pd.Series(values).rolling(self.window, min_periods=self.at_least).median().to_numpy()
            level[rest] = medians[before[rest] - 1]
        return level

    def _dips(self, rows: Indices, levels: Floats) -> Dips:
        """Return the readings under their line in the stretch that is looked at, counted from its first."""
        first, last = self.region
        mine = slice(*np.searchsorted(rows, self.region).tolist())
        rows, levels, usable = rows[mine] - first, levels[mine], self.usable[first:last]
        found = ends_of_dips(_part(self.series, first, last), usable, rows, self.share * levels, self._least_s)
        return Dips(rows.tolist(), levels.tolist(), *(each.tolist() for each in found))

    def _next_start(self, at: int, last: int, dips: Dips, disturbed_until: int) -> tuple[int, int, float] | None:
        """Return from where on was looked, the next reading under its line, and its level.

        They are as precomputed, but where a drop disturbs them. Dips that are known to be no drops are passed over.
        """
        if at < disturbed_until:
            unsettled = slice(at, min(disturbed_until, last))
            low = self.usable[unsettled] & (self.series.util_pct[unsettled] < self.share * 100)
            for i in (at + np.flatnonzero(low)).tolist():
                if self.series.util_pct[i] < self.share * (level := self._level(i)):
                    return at, int(i), level
        first = self.region[0]
        found = bisect_left(dips.rows, max(at, disturbed_until) - first)
        while found < len(dips.rows) and at - first >= dips.none_from[found]:
            at = self.behind = first + dips.ends[found]
            found = bisect_left(dips.rows, dips.ends[found], found)
        return (at, first + dips.rows[found], dips.levels[found]) if found < len(dips.rows) else None

    def _level(self, i: int) -> float:
        """Return the median of the last `window` of kept readings before `i`; -1 where it cannot be judged."""
        for reach in (8 * self.window, i):  # nearly always the nearby past holds enough
            start = max(i - reach, 0)
            recent = start + np.flatnonzero(self.kept[start:i])[-self.window :]
            if len(recent) == self.window or start == 0:
                break
        values = self.series.util_pct[recent]
        level = _median(values) if len(values) >= self.at_least else -1.0
        return level if level >= LOW_PCT else -1.0

    def _reach_back(self, at: int, start: int, level: float, stray_s: float) -> tuple[int, float]:
        """Return where the low stretch began that could be judged from `start` on only, and the level before that.

        Early in a run the level's first LEVEL_AT_LEAST_S may hold the beginning of the drop itself. Where that is more
        than half of it, they tell of no level before: the first batches, which are ready, are done in seconds.
        """
        begin = self._begin(at, start, self.share * level, stray_s)
        if begin == start:
            return start, level
        since = self._since(at)
        before = self.series.util_pct[since:begin][self.kept[since:begin]][-self.window :]
        is_level = len(before) >= max(self.at_least / 2 if since == 0 else 1, 1)
        return (begin, max(_median(before), level)) if is_level else (start, level)

    def _begin(self, at: int, start: int, line: float, stray_s: float) -> int:
        """Return the first reading from `at` on of the stretch under a line that holds `start` (see `stretch_bounds`).

        It is a few readings back, nearly always: found by steps, for arrays cost more than that.
        """
        series, stray_s = self.series, longest_stray_s(self.series, stray_s)
        begin, i = start, start
        while i > at and not series.is_after_gap(i) and self.usable[i - 1]:
            i -= 1
            if series.util_pct[i] < line:
                if i < begin - 1 and series.t_s[begin] - (series.t_s[i] + series.weight_s[i]) >= stray_s:
                    break
                begin = i
            elif series.t_s[begin] - series.t_s[i] >= stray_s:  # what lies before it lies too far back
                break
        return begin

    def _since(self, at: int) -> int:
        """Return the end of the last dip before `at`, however short: beyond it lies another level."""
        if at == self.behind:
            return at
        upto = int(np.searchsorted(self.low[0], at))
        for first, last in zip(self.low[0][:upto][::-1].tolist(), self.low[1][:upto][::-1].tolist(), strict=True):
            end = self._dip_end(first, last) if last > self.behind else self.behind
            if end is not None:
                return end
        return self.behind

    def _dip_end(self, first: int, last: int) -> int | None:
        """Return the end of the last dip under its line within a low stretch, None without one."""
        end = None
        for i in range(first, last):
            line = self.share * self._level(i) if end is None or i >= end else 0.0
            if self.usable[i] and self.series.util_pct[i] < line:
                end = int(self._ends((i, last), line, 0.0)[0])
        return end

    def _end(self, start: int, line: float, stray_s: float) -> int:
        """Return the index after the last reading of the low stretch that `start` lies in."""
        if (line, stray_s) not in self._ends_of:
            self._ends_of[line, stray_s] = self._ends(self.region, line, stray_s)
        ends = self._ends_of[line, stray_s]
        return int(ends[np.searchsorted(ends, start, side="right")])

    def _ends(self, region: tuple[int, int], line: float, stray_s: float) -> Indices:
        """Return the ends of the stretches under a line within a region."""
        part, usable = _part(self.series, *region), self.usable[slice(*region)]
        return region[0] + stretch_bounds(part, usable & (part.util_pct < line), usable, stray_s)[1]

    def _drop(self, start: int, end: int, level: float) -> Drop | None:
        if not _counts(self.series, (start, end), self.at_least_s):
            return None
        if not self._has_few_strays(start, end, self.share * level):
            return None
        low = _interval(self.series, start, end)
        if low.mean_pct >= self.share * level:
            return None
        sustained = self.trained_s.before(end) - self.trained_s.before(start) > self.sustained_s
        return Drop(self.series.gpu, low.start_t_s, low.end_t_s, level, low.mean_pct, sustained)

    def _has_few_strays(self, start: int, end: int, line: float) -> bool:
        """Tell whether readings over a line are the exception in a stretch.

        Of a GPU that is starved for hours each dip begins a stretch of hours: these are added up by blocks, else a
        report of 8 GPUs over 10 hours took more than ten minutes.
        """
        if end - start <= BLOCK:
            return _few_strays(self.series, self.series.util_pct[start:end] < line, start, end)
        if line not in self._strays_over:
            self._strays_over[line] = BlockSums(len(self.series.t_s), partial(self._stray_s, line))
        if self._has_still_many(start, end, line):
            return False
        over_s, whole_s = (of.between(start, end) for of in (self._strays_over[line], self._seconds))
        self._many[line] = (start, end, over_s - th.STRAY_SHARE * whole_s)
        return over_s <= th.STRAY_SHARE * whole_s

    def _has_still_many(self, start: int, end: int, line: float) -> bool:
        """Tell whether a stretch had so many strays, when it began earlier, that the rest of it has too many as well.

        All that lies between may have been strays, and the next dip mostly ends where the last one did.
        """
        before, until, too_many_s = self._many.get(line, (0, 0, 0.0))
        return until == end and before <= start and too_many_s > self.series.t_s[start] - self.series.t_s[before]

    def _stray_s(self, line: float, first: int, end: int) -> Floats:
        return np.where(self.series.util_pct[first:end] < line, 0.0, self.series.weight_s[first:end])

    @cached_property
    def _seconds(self) -> BlockSums:
        return BlockSums(len(self.series.t_s), lambda first, end: self.series.weight_s[first:end])

    def _exclude(self, start: int, end: int) -> int:
        """Keep a drop's first `sustained_s` out of the level; return where the level starts anew if it goes on."""
        new_state = max(self.trained_s.first_at(self.trained_s.before(start) + self.sustained_s), start + 1)
        self.kept[start : min(end, new_state)] = False
        if end > new_state:
            self.kept[:new_state] = False
        return new_state

    def _settled(self, after: int) -> int:
        """Return from where on a whole window of readings lies behind `after`: levels are as precomputed again."""
        for reach in (8 * self.window, len(self.kept)):
            kept = np.flatnonzero(self.kept[after : after + reach])
            if len(kept) > self.window:
                return after + int(kept[self.window])
        return len(self.kept)


def _part(series: GpuSeries, start: int, upto: int) -> GpuSeries:
    part = slice(start, upto)
    return dataclasses.replace(
        series, t_s=series.t_s[part], util_pct=series.util_pct[part], weight_s=series.weight_s[part]
    )

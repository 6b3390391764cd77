"""The search for drops as it is defined, reading by reading: slow, and what the real one is held against."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd

from gpu_report.analyse.signals.gpu.utilisation_drops import Drop, _counts, _few_strays, _interval, _part
from gpu_report.analyse.signals.thresholds import LEVEL_OVER_S, SUSTAINED_AFTER_S, SUSTAINED_SHARE
from gpu_report.analyse.timeline.thresholds import LEVEL_AT_LEAST_S, LOW_PCT
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats, GpuSeries
from gpu_report.analyse.timeseries.low_stretches import low_stretches
from gpu_report.analyse.timeseries.thresholds import READING_SLACK, STRAY_S
from gpu_report.model import Options


def find_drops_plainly(series: GpuSeries, usable: Bools, options: Options) -> tuple[Drop, ...]:
    """Return the drops of one GPU."""
    search = _Search(series, usable.copy(), options.line_share, options.drop_seconds)
    return tuple(search.drops())


class _Search:
    """The scan for drops of one series: finds each start, follows it to its end, and keeps it out of later levels."""

    def __init__(self, series: GpuSeries, kept: Bools, share: float, at_least_s: float) -> None:
        self.series, self.share, self.at_least_s = series, share, at_least_s
        self.usable = kept.copy()
        self.worked_s = np.concatenate([[0.0], np.cumsum(np.where(kept, series.weight_s, 0.0))])
        self.sustained_s = max(SUSTAINED_AFTER_S, SUSTAINED_SHARE * float(self.worked_s[-1]))
        self.kept = kept  # readings that the level is made of: usable and in no drop
        self.window = max(round(LEVEL_OVER_S / series.interval_s), 1)
        self.at_least = max(round(LEVEL_AT_LEAST_S / series.interval_s), 1)

    def drops(self) -> Iterator[Drop]:
        """Yield the drops in order."""
        undisturbed = self._candidates(self._undisturbed_levels())
        at, disturbed_until = 0, 0
        while (start := self._next_start(at, undisturbed, disturbed_until)) is not None:
            drop, at, disturbed = self._follow(at, start)
            disturbed_until = max(disturbed_until, disturbed)
            if drop is not None:
                yield drop

    def _follow(self, at: int, start: int) -> tuple[Drop | None, int, int]:
        """Return the drop that begins at `start` (None: none), where to go on, and until where it disturbs levels."""
        before = self._level(start)
        line = self.share * before
        end = self._end(start, line, STRAY_S)
        begin, level = self._reach_back(at, start, before, STRAY_S)
        drop = self._drop(begin, end, level)
        if drop is None:  # strays may have joined too much: what holds without them?
            end = self._end(start, line, 0.0)
            begin, level = self._reach_back(at, start, before, 0.0)
            drop = self._drop(begin, end, level)
        if drop is None:
            return None, end, 0
        new_state = self._exclude(begin, end)
        return drop, min(end, new_state), self._settled(min(end, new_state))

    def _undisturbed_levels(self) -> Floats:
        """Return the level before every reading as it is where no drop lies within its window, NaN where unknown."""
        values = pd.Series(self.series.util_pct[self.kept])
        medians = values.rolling(self.window, min_periods=self.at_least).median()
        level = np.full(len(self.kept), np.nan)
        before: npt.NDArray[np.intp] = np.cumsum(self.kept) - self.kept  # how many kept readings lie before each
        has = before > 0
        level[has] = medians.to_numpy()[before[has] - 1]
        return level

    def _candidates(self, levels: Floats) -> npt.NDArray[np.intp]:
        low = self.usable & (levels >= LOW_PCT) & (self.series.util_pct < self.share * levels)
        return np.flatnonzero(low)

    def _next_start(self, at: int, undisturbed: npt.NDArray[np.intp], disturbed_until: int) -> int | None:
        """Return the next reading under its line: level by level where a drop disturbs it, else as precomputed."""
        low = self.usable[at:disturbed_until] & (self.series.util_pct[at:disturbed_until] < self.share * 100)
        for i in (at + np.flatnonzero(low)).tolist():
            if self.series.util_pct[i] < self.share * self._level(i):
                return int(i)
        found = int(np.searchsorted(undisturbed, max(at, disturbed_until)))
        return int(undisturbed[found]) if found < len(undisturbed) else None

    def _level(self, i: int) -> float:
        """Return the median of the last LEVEL_OVER_S of kept readings before `i`; -1 where it cannot be judged."""
        for reach in (8 * self.window, i):  # nearly always the nearby past holds enough
            start = max(i - reach, 0)
            recent = start + np.flatnonzero(self.kept[start:i])[-self.window :]
            if len(recent) == self.window or start == 0:
                break
        values = self.series.util_pct[recent]
        level = float(np.median(values)) if len(values) >= self.at_least else -1.0
        return level if level >= LOW_PCT else -1.0

    def _reach_back(self, at: int, start: int, level: float, stray_s: float) -> tuple[int, float]:
        """Return where the low stretch began that could be judged from `start` on only, and the level before that.

        Early in a run less than half of the level's first LEVEL_AT_LEAST_S may be of the drop itself.
        """
        begin = self._begin(at, start, self.share * level, stray_s)
        before = self.series.util_pct[at:begin][self.kept[at:begin]][-self.window :]
        if begin == start or len(before) < max(self.at_least / 2 if at == 0 else 1, 1):
            return start, level
        return begin, max(float(np.median(before)), level)

    def _begin(self, at: int, start: int, line: float, stray_s: float) -> int:
        """Return the first reading of the low stretch that `start` lies in, no earlier than `at`."""
        stray_s = max(stray_s, (1 + READING_SLACK) * self.series.interval_s) if stray_s else 0.0
        t_s, ends_s, begin = self.series.t_s, self.series.ends_of(slice(None)), start
        for i in range(start - 1, at - 1, -1):
            if not self.usable[i] or t_s[i + 1] - ends_s[i] > 1e-6:
                break
            if self.series.util_pct[i] < line:
                if begin > i + 1 and t_s[begin] - ends_s[i] >= stray_s:
                    break
                begin = i
        return begin

    def _end(self, start: int, line: float, stray_s: float) -> int:
        """Return the index after the last reading of the low stretch that begins at `start`."""
        reach = 4 * STRAY_S + 4 * self.series.interval_s
        while True:
            upto = int(np.searchsorted(self.series.t_s, self.series.t_s[start] + reach, side="right"))
            part = _part(self.series, start, upto)
            usable = self.usable[start:upto]
            stop = start + low_stretches(part, usable & (part.util_pct < line), usable, stray_s)[0][1]
            beyond = self.series.t_s[upto - 1] - self.series.t_s[stop - 1]
            if upto == len(self.series.t_s) or beyond > 2 * (STRAY_S + self.series.interval_s):
                return stop
            reach *= 4  # most low stretches are short; a long one is read a few times over at most

    def _drop(self, start: int, end: int, level: float) -> Drop | None:
        low = _interval(self.series, start, end)
        under = self.series.util_pct[start:end] < self.share * level
        busy = not _few_strays(self.series, under, start, end) or low.mean_pct >= self.share * level
        if busy or not _counts(self.series, (start, end), self.at_least_s):
            return None
        sustained = bool(self.worked_s[end] - self.worked_s[start] > self.sustained_s)
        return Drop(self.series.gpu, low.start_t_s, low.end_t_s, level, low.mean_pct, sustained)

    def _exclude(self, start: int, end: int) -> int:
        """Keep a drop's first `sustained_s` out of the level; return where the level starts anew if it goes on."""
        new_state = max(int(np.searchsorted(self.worked_s, self.worked_s[start] + self.sustained_s)), start + 1)
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

"""Where each epoch's validation began and its checkpoint ended, as the GPU's own readings tell around each row.

A row of results.csv appears between the two, to the millisecond. How long they took is fitted: training is work,
validation and checkpoint are rest, and the lengths that contradict the readings least, over an epoch and its
neighbours, are taken. Neighbours are what makes it finer than one reading a second: rows fall anywhere between
ticks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpu_report.analyse.timeline import thresholds as th
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats, GpuSeries
from gpu_report.model import WELL_COVERED, EpochRow

# Of the median epoch: lengths up to half of it are tried, and nearly all of it where those come out as long as can be.
PAUSE_SHARES = (0.5, 0.98)
AT_THE_MOST = 0.9  # of the longest that was tried
# Readings in the median epoch: with fewer each part has less than one, and which of them it had is chance.
EPOCH_READINGS = 3
# A first validation so many readings long is fitted by itself: a shorter one is all start of its loader.
FIRST_READINGS = 10
PAUSE_STEP_S = 0.1  # lengths to try: half of the driver's sampling period of 0.2 s ...
PAUSE_STEP_SHARE = 0.03  # ... and no finer than this share of the length itself
# A length differs from its siblings' only where readings insist: for more than this much of a reading (of those that
# are clearly work or clearly rest), and this share of a second for each second of difference.
PAUSE_READINGS = 1.0
PAUSE_PRIOR = 0.3
PAUSE_DRIFT = 0.15  # price, in contradicted seconds a row, of a second between its neighbours' length and that of all
PAUSE_OUTVOTED_S = 1.0  # the most contradicted seconds with which one row may vote on the length it shares with others
PAUSE_ROWS_AT_ONCE = 2000  # a table of lengths by rows: 3 MB at a time, however long the run
READING_TRAILS_S = 0.2  # a reading is of the driver's last sampling period (0.2 s on H200): half of it ago, on average
POWER_MEAN_S = 0.9  # power is the mean of the last second, and ticks are a little early or late
POWER_TRAILS_S = 0.6  # half of that second, and the board follows a little later
VALIDATION_POWER = 0.45  # of the power of training, above the least: 0.1 to 0.45 on three labelled runs
IDLE_POWER_SHARE = 0.5  # the least power must lie this far below that of work to tell the two apart
FINE_S = 0.5  # readings this close or closer are the driver's own
# Traffic to device memory in training, in % of its time: 20 to 56 on the labelled H200 runs, 0 to 3 in validation.
TRAFFIC_PCT = 10.0
# The first batch of a validation takes this much more memory than training had: 12 to 23 % on four labelled runs.
MEMORY_STEP_SHARE = 0.05
# ... and is there this long after the validation began, at most: 2.2 to 2.9 s on three runs, 8.3 with a stalled loader.
FIRST_BATCH_S = 6.0
# Power this far over that of the training, for this long, is of another process beside it: 1.5 in `faulted`, where
# training itself never exceeds 1.15 for longer than two readings.
OTHER_PROCESS_POWER = 1.25
OTHER_PROCESS_POWER_S = 5.0
AROUND_ROW_S = 1.0  # on either side of a row lie validation and checkpoint


@dataclass(frozen=True)
class Pause:
    """The seconds before and after a row in which no training took place; NaN where nothing tells."""

    validation_s: float
    checkpoint_s: float


@dataclass(frozen=True, eq=False)
class _Costs:
    """Running integrals of what calling the time up to `t_s` work, or rest, contradicts the readings."""

    t_s: Floats
    work: Floats
    paused: Floats

    def before(self, at: Floats, lengths: Floats) -> Floats:
        """Return, for each moment and length, the cost of rest that long before the moment and work before that."""
        begin = at[:, None] - lengths
        return self._paused(begin, at[:, None]) + self._work(at[:, None] - lengths[-1], begin)

    def after(self, at: Floats, lengths: Floats) -> Floats:
        """Return, for each moment and length, the cost of rest that long after the moment and work after that."""
        end = at[:, None] + lengths
        return self._paused(at[:, None], end) + self._work(end, at[:, None] + lengths[-1])

    def _work(self, start: Floats, end: Floats) -> Floats:
        cost: Floats = np.interp(end, self.t_s, self.work) - np.interp(start, self.t_s, self.work)
        return cost

    def _paused(self, start: Floats, end: Floats) -> Floats:
        cost: Floats = np.interp(end, self.t_s, self.paused) - np.interp(start, self.t_s, self.paused)
        return cost


def fit_epoch_ends(
    rows: Sequence[EpochRow], firsts: Sequence[bool], goes_on: Sequence[bool], series: GpuSeries, usable: Bools
) -> list[Pause]:
    """Return the rest around each row of one YOLO run, in order of time, from one GPU's readings.

    `goes_on` says of which rows training follows upon the checkpoint at once: not of the last, and not where the
    mosaic closes and the loader is made anew.

    The first validation of a process starts its loader and warms kernels up: it tells nothing of the others. Where
    utilisation is too low for a level (docs/findings.md) rest looks like work:
    then only its memory shows it.
    """
    if not rows:
        return []
    before, after = _from_work(rows, np.array(firsts), np.array(goes_on), series, usable)
    for number, (row, first) in enumerate(zip(rows, firsts, strict=True)):
        if first and (begun := _first_validation(series, row)) is not None:
            before[number] = row.row_t_s - begun
    return [Pause(*pair) for pair in zip(before.tolist(), after.tolist(), strict=True)]


def _from_work(
    rows: Sequence[EpochRow], firsts: Bools, goes_on: Bools, series: GpuSeries, usable: Bools
) -> tuple[Floats, Floats]:
    if not _works(rows, series, usable):
        return np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    at = np.array([row.row_t_s for row in rows])
    starts = np.array([row.start_t_s for row in rows])
    epoch_s = float(np.median(at - starts))
    if epoch_s < EPOCH_READINGS * float(np.median(series.sample_weight_s)):
        return np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    in_validation, in_checkpoint = _costs(series, usable)
    for share in PAUSE_SHARES:
        lengths = _lengths(epoch_s * share)
        before = _fitted(in_validation, at, lengths, series.interval_s, ~firsts, ahead=False)
        if float(np.median(before)) < AT_THE_MOST * lengths[-1]:
            break
    after = _fitted(in_checkpoint, at, _lengths(epoch_s * PAUSE_SHARES[0]), series.interval_s, goes_on, ahead=True)
    foreign = _foreign(series, usable)
    after = _saved_beside_others(at, after, foreign)
    before = _validated_beside_others(rows, before, after, foreign)
    return np.where(before > 0, before, np.nan), np.where(after > 0, after, np.nan)


@dataclass(frozen=True)
class _Foreign:
    """A stretch in which another process worked on the GPU, too, and whether the GPU rested right after it."""

    start_s: float
    end_s: float
    pause_follows: bool


def _foreign(series: GpuSeries, usable: Bools) -> list[_Foreign]:
    """Return when the GPU drew more power than this training ever does for long: another process worked on it, too."""
    t_s = series.samples["t_s"].to_numpy(dtype=float)
    power = series.samples["power_w"].to_numpy(dtype=float)
    known = power[np.isfinite(power) & _working(series, t_s, usable)]
    if not len(known):
        return []
    level, least = float(np.median(known)), float(np.nanmin(power))
    above = np.concatenate([[False], power >= OTHER_PROCESS_POWER * level, [False]])
    edges = np.flatnonzero(np.diff(above.astype(np.int8)))
    ends = t_s + series.sample_weight_s
    settled = np.searchsorted(t_s, t_s + POWER_MEAN_S)  # the first reading that has nothing of that moment in it
    rests = np.append(power < (least + level) / 2, False)[settled]
    spans = [
        _Foreign(float(t_s[a]), float(ends[b - 1]), bool(rests[b - 1]))
        for a, b in zip(edges[::2], edges[1::2], strict=True)
    ]
    return [span for span in spans if span.end_s - span.start_s >= OTHER_PROCESS_POWER_S]


def _saved_beside_others(at: Floats, after: Floats, foreign: Sequence[_Foreign]) -> Floats:
    """Return the checkpoints, those in which another process kept the GPU at work corrected.

    If the GPU rests once that one is gone, training has not resumed before.
    """
    for span in foreign:
        covered = (at >= span.start_s) & (at + after < span.end_s) & (at < span.end_s)
        if span.pause_follows and covered.any():
            last = int(np.flatnonzero(covered)[-1])  # training resumed after the rows before it
            after[last] = span.end_s - at[last]
    return after


def _validated_beside_others(
    rows: Sequence[EpochRow], before: Floats, after: Floats, foreign: Sequence[_Foreign]
) -> Floats:
    """Return the validations, those that began while another process kept the GPU at work corrected.

    There readings tell nothing: training is taken to have lasted as long as in the other epochs.
    """
    ends = np.array([row.row_t_s for row in rows])
    begins = np.array([row.start_t_s for row in rows])
    follows = np.concatenate([[False], begins[1:] == ends[:-1]])
    begins = begins + np.where(follows, np.concatenate([[0.0], after[:-1]]), 0.0)
    typical = float(np.median(ends - before - begins))
    for span in foreign:
        for number in np.flatnonzero((ends - before > span.start_s) & (ends - before <= span.end_s)).tolist():
            begun = max(span.start_s, begins[number] + typical)
            before[number] = max(before[number], ends[number] - begun)
    return before


def _working(series: GpuSeries, t_s: Floats, usable: Bools) -> Bools:
    """Return at which of its ticks a GPU worked, by the reading of utilisation at or next after it."""
    nearest = np.clip(np.searchsorted(series.t_s, t_s), 0, len(series.t_s) - 1)
    working: Bools = usable[nearest] & (series.util_pct[nearest] >= th.LOW_PCT)
    return working


def _works(rows: Sequence[EpochRow], series: GpuSeries, usable: Bools) -> bool:
    """Tell whether a GPU is busy most of the time between the rows; the first epoch, which waits, is no measure."""
    between = series.between(rows[0].row_t_s, rows[-1].row_t_s)
    judged = series.util_pct[between][usable[between]]
    judged = judged if len(judged) else series.util_pct[usable]
    return bool(len(judged)) and float(np.median(judged)) >= th.LOW_PCT


def _lengths(longest_s: float) -> Floats:
    """Return the lengths to try, in seconds: fine where they are short, as fine as they can matter where long."""
    lengths = [0.0]
    while lengths[-1] < max(longest_s, PAUSE_STEP_S):
        lengths.append(lengths[-1] + max(PAUSE_STEP_S, PAUSE_STEP_SHARE * lengths[-1]))
    return np.array(lengths)


def _costs(series: GpuSeries, usable: Bools) -> tuple[list[_Costs], list[_Costs]]:
    """Return the costs of calling time work or rest, in a validation and in a checkpoint, by each signal that tells.

    Utilisation says little of a validation: its bursts read as work, and so does the waiting of other ranks for it.
    Power tells. Of a checkpoint the driver's own fine readings tell most; of one reading a second, the traffic to
    device memory and power together.
    """
    t_s = series.samples["t_s"].to_numpy(dtype=float)
    working, fine = _working(series, t_s, usable), series.interval_s < FINE_S
    validating, saving = (_power(series, t_s, working, share) for share in (VALIDATION_POWER, 0.0))
    util_pct = series.util_pct.astype(float)
    util = _cost(series.t_s - READING_TRAILS_S, util_pct, _level(util_pct[usable]), 0.0)
    if fine or saving is None:
        return [validating or util], [util]
    traffic = _traffic(series, t_s, working)
    return [validating or util], [saving, *([traffic] if traffic else [])]


def _traffic(series: GpuSeries, t_s: Floats, working: Bools) -> _Costs | None:
    """Return costs by the traffic to device memory: a training has it, the small kernels of a validation have not."""
    traffic = series.samples["memory_util_pct"].to_numpy(dtype=float)
    known = np.isfinite(traffic)
    level = _level(traffic[known & working])
    if known.mean() <= WELL_COVERED or level < TRAFFIC_PCT:
        return None
    return _cost(t_s[known] - READING_TRAILS_S, traffic[known], level, 0.0)


def _power(series: GpuSeries, t_s: Floats, working: Bools, idle_power: float) -> _Costs | None:
    """Return costs by power, which a driver gives as the mean of the last second: no burst escapes or fools it."""
    power = series.samples["power_w"].to_numpy(dtype=float)
    known = np.isfinite(power)
    level = _level(power[known & working])
    least = float(power[known].min()) if known.any() else 0.0
    if known.mean() <= WELL_COVERED or level <= 0 or least > IDLE_POWER_SHARE * level:
        return None
    return _cost(t_s[known] - POWER_TRAILS_S, power[known], level, least + idle_power * (level - least))


def _cost(t_s: Floats, values: Floats, level: float, least: float) -> _Costs:
    """Return what it costs to call time work where `values` are near `least`, or rest where they are near `level`."""
    signal = np.clip((values - least) / (level - least), 0.0, 1.0)
    begins = np.concatenate([[t_s[0]], (t_s[1:] + t_s[:-1]) / 2, [t_s[-1]]])
    hold = np.diff(begins)
    return _Costs(
        begins,
        np.concatenate([[0.0], np.cumsum((1 - signal) ** 2 * hold)]),
        np.concatenate([[0.0], np.cumsum(signal**2 * hold)]),
    )


def _level(values: Floats) -> float:
    """Return what a busy GPU reads: the median of what is not under half of the highest tenth; 0 without any."""
    if not len(values):
        return 0.0
    return float(np.median(values[values >= np.percentile(values, 90) / 2]))


def _fitted(  # noqa: PLR0913 - what is fitted, and which rows tell
    costs: Sequence[_Costs], at: Floats, lengths: Floats, interval_s: float, decides: Bools, *, ahead: bool
) -> Floats:
    """Return the length that fits best at each row: its own where its readings insist, else its neighbours'.

    Rows that do not tell of others have their neighbours' length, too. One longer than its siblings by
    SIBLING_FACTOR has a stall beside it, which is no part of it as far as is known.
    """
    found = np.empty(len(at))
    for begin in range(0, len(at), PAUSE_ROWS_AT_ONCE):
        chunk = slice(begin, begin + PAUSE_ROWS_AT_ONCE)
        each = [one.after(at[chunk], lengths) if ahead else one.before(at[chunk], lengths) for one in costs]
        cost = np.mean(each, axis=0)
        reported = decides[chunk] if decides[chunk].any() else ~decides[chunk]
        shared = _shared(cost, reported, lengths)[:, None]
        apart = np.abs(lengths - shared)
        price = PAUSE_PRIOR * apart + PAUSE_READINGS * np.minimum(apart, interval_s)
        likely = (lengths <= th.SIBLING_FACTOR * shared + interval_s) & (lengths >= shared / th.SIBLING_FACTOR)
        own = np.where(likely, cost + price, np.inf)
        alone = decides[chunk] | (shared[:, 0] >= FIRST_READINGS * interval_s)
        found[chunk] = np.where(alone, lengths[np.argmin(own, axis=1)], shared[:, 0])
    return found


def _shared(cost: Floats, reported: Bools, lengths: Floats) -> Floats:
    """Return, for each row, the length that fits it and SIBLINGS on either side best together.

    Epochs may fall in step with the ticks for a while, which then tell little: to drift from the length that fits all
    rows has its price. No row has more weight than PAUSE_OUTVOTED_S: one in which another process worked would outvote
    all others.
    """
    above = np.minimum(cost - cost.min(axis=1, keepdims=True), PAUSE_OUTVOTED_S)
    total = np.concatenate([np.zeros((1, cost.shape[1])), np.cumsum(np.where(reported[:, None], above, 0.0), axis=0)])
    rows = np.arange(len(cost))
    first, last = np.clip(rows - th.SIBLINGS, 0, None), np.clip(rows + th.SIBLINGS + 1, None, len(cost))
    of_all = lengths[np.argmin(total[-1])]
    drift = PAUSE_DRIFT * (last - first)[:, None] * np.abs(lengths - of_all)
    shared: Floats = lengths[np.argmin(total[last] - total[first] + drift, axis=1)]
    return shared


def _first_validation(series: GpuSeries, row: EpochRow) -> float | None:
    """Return when the first validation of a process began, None where its memory does not tell.

    Its first batch takes memory that training did not have. Before it lies a stretch without work, in which the
    training's last batch and then the validation's loader have their turn: half of it is given to either.
    """
    rows = series.between_rows(row.start_t_s, row.row_t_s)
    memory = series.samples["memory_used_mib"].to_numpy(dtype=float)[rows]
    t_s = series.samples["t_s"].to_numpy(dtype=float)[rows]
    grown = np.flatnonzero(np.diff(memory) >= MEMORY_STEP_SHARE * memory[:-1])
    part = series.between(row.start_t_s, row.row_t_s)
    working = series.t_s[part][series.util_pct[part] >= th.LOW_PCT]
    if not len(grown) or not (working < t_s[grown[-1]]).any():
        return None
    step = (t_s[grown[-1]] + t_s[grown[-1] + 1]) / 2
    worked = working[working < t_s[grown[-1]]][-1]
    return float(max((worked + step) / 2, step - FIRST_BATCH_S))


def most_idle_gpu(rows: Sequence[EpochRow], all_series: Sequence[GpuSeries], usable: Sequence[Bools]) -> int | None:
    """Return which GPU works least around the rows (validation runs on one rank), None where none was usable."""
    means: dict[int, float] = {}
    if not rows:
        return None
    for number, (series, use) in enumerate(zip(all_series, usable, strict=True)):
        if use.any():
            near = (series.between(row.row_t_s - AROUND_ROW_S, row.row_t_s + AROUND_ROW_S) for row in rows)
            values = np.concatenate([series.util_pct[part] for part in near])
            means[number] = float(values.mean()) if len(values) else np.inf
    return min(means, key=lambda number: means[number], default=None)

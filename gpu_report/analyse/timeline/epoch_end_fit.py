"""Where each epoch's validation began and its checkpoint ended, as the GPU's own readings tell around each row.

A row of results.csv appears between the two, to the millisecond. How long they took is fitted: training reads one
level, validation and checkpoint another (epoch_levels.py), and the lengths that contradict the readings least, over
an epoch and its neighbours, are taken. Neighbours are what makes it finer than one reading a second: rows fall
anywhere between ticks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpu_report.analyse.timeline import thresholds as th
from gpu_report.analyse.timeline.epoch_levels import (
    BLURRED_S,
    CHECKPOINT_AT_MOST,
    TRAIN_AT_LEAST,
    EpochLevels,
    GpuSignal,
    Levels,
    find_levels,
    signals_of,
)
from gpu_report.analyse.timeline.shared_epoch_ends import checkpoints_beside, other_work, validations_beside
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats, GpuSeries
from gpu_report.model import EpochRow

# A length of so many readings is fitted by itself, also the first one: a shorter first is all start of its loader.
LONG_READINGS = 4
PAUSE_STEP_S = 0.1  # lengths to try: half of the driver's sampling period of 0.2 s ...
PAUSE_STEP_SHARE = 0.03  # ... and no finer than this share of the length itself
# ... until the best is known, which is then tried this finely about it: to a thousandth of its length.
FINER = 1 + PAUSE_STEP_SHARE * np.linspace(-1, 1, 61)
# A length differs from its siblings' only where readings insist: for more than this much of a reading (of those that
# are clearly work or clearly rest), and this share of a second for each second of difference.
PAUSE_READINGS = 1.0
PAUSE_PRIOR = 0.3
PAUSE_DRIFT = 0.15  # price, in contradicted seconds a row, of a second between its neighbours' length and that of all
PAUSE_OUTVOTED_S = 1.0  # the most contradicted seconds with which one row may vote on the length it shares with others
PAUSE_ROWS_AT_ONCE = 2000  # a table of lengths by rows: 3 MB at a time, however long the run
GPUS_ENOUGH = 4  # of a training, whose readings are looked at: more tell nothing else
FINE_S = 0.5  # readings this close or closer are the driver's own: of a checkpoint they tell most
SHORT_READINGS = 3.0  # a validation of so many readings of power or fewer has none that is of it alone
# Of the power of training, above the least, what a validation takes that is over before power is read: 0.1 to 0.45 on
# three labelled runs.
VALIDATION_POWER = 0.45
# Readings this much further from training than validation reads, in what the two are apart, are of a stall: 4 standard
# deviations at least.
NEITHER_FROM, NOISE = 0.5, 4.0
LEAST_TRAINED = 0.4  # of what other epochs train: a faster one without mosaic has 0.6 ...
# ... and beside a validation of SIBLING_FACTOR times the others no less than they have: its begin is of training that
# reads like a validation, for it waits for something.
LEAST_BESIDE_LONG = 0.9
FEWEST_ALIKE = 3  # epochs, for two to outvote one
ROWS_TELL = 3  # with fewer epochs, a stall in one of them is what differs
SEPARATION_AT_MOST = 10.0  # standard deviations: a signal this clear is no less sure than one that is clearer
# Training and validation less than this far apart, in standard deviations of a reading, are not told apart.
SEPARATION = 2.0
# ... nor are checkpoint and training: one that is starved goes idle for moments, too.
CHECKPOINT_SEPARATION = 3.0
# A level of validation explains something where readings vary so many times less around the two than around one.
CLEARER = 1.5
# The first batch of a validation takes this much more memory than training had: 12 to 23 % on four labelled runs.
MEMORY_STEP_SHARE = 0.05
# ... and is there this long after the validation began, at most: 2.2 to 2.9 s on three runs, 8.3 with a stalled loader.
FIRST_BATCH_S = 6.0
HOLE_READINGS = 2.0  # from a row to the nearest reading: one may be missed, and then there are none
AROUND_ROW_S = 1.0  # on either side of a row lie validation and checkpoint


@dataclass(frozen=True)
class Pause:
    """The seconds before and after a row in which no training took place; NaN where nothing tells."""

    validation_s: float
    checkpoint_s: float


@dataclass(frozen=True)
class EpochFit:
    """The pauses of one YOLO run, to how many seconds their edges are known, and whether readings are `too_coarse`.

    Too coarse: they cannot tell training from validation, though these differ.
    """

    pauses: tuple[Pause, ...]
    uncertainty_s: float
    too_coarse: bool


@dataclass(frozen=True, eq=False)
class _Costs:
    """Running integrals of what calling the time up to `t_s` work, or rest, contradicts the readings.

    `weight` is how much the readings have to say: how far training and validation lie apart in them.
    """

    t_s: Floats
    work: Floats
    paused: Floats
    weight: float
    interval_s: float

    def before(self, at: Floats, lengths: Floats, since: Floats) -> Floats:
        """Return, for each moment and length, the cost of rest that long before it and work before that, `since` when.

        A rest that would have begun before `since` costs what it lasts all the same.
        """
        begin = np.maximum(at[:, None] - lengths, since[:, None])
        beyond: Floats = np.maximum(since[:, None] - (at[:, None] - lengths), 0.0)
        return self._paused(begin, at[:, None]) + self._work(since[:, None], begin) + beyond

    def after(self, at: Floats, lengths: Floats, until: Floats) -> Floats:
        """Return, for each moment and length, the cost of rest that long after it and work after that, `until` when."""
        end = np.minimum(at[:, None] + lengths, until[:, None])
        beyond: Floats = np.maximum(at[:, None] + lengths - until[:, None], 0.0)
        return self._paused(at[:, None], end) + self._work(end, until[:, None]) + beyond

    def _work(self, start: Floats, end: Floats) -> Floats:
        cost: Floats = np.interp(end, self.t_s, self.work) - np.interp(start, self.t_s, self.work)
        return cost

    def _paused(self, start: Floats, end: Floats) -> Floats:
        cost: Floats = np.interp(end, self.t_s, self.paused) - np.interp(start, self.t_s, self.paused)
        return cost


def fit_epoch_ends(
    rows: Sequence[EpochRow],
    firsts: Sequence[bool],
    goes_on: Sequence[bool],
    all_series: Sequence[GpuSeries],
    usable: Sequence[Bools],
) -> EpochFit:
    """Return the pause around each row of one YOLO run, in order of time, from the readings of its GPUs.

    `goes_on` says of which rows training follows upon the checkpoint at once: not of the last, and not where the
    mosaic closes and the loader is made anew.

    The first validation of a process starts its loader and warms kernels up: it tells nothing of the others. Where
    nothing tells training from validation, only its memory shows it.
    """
    gpu = _most_idle_gpu(rows, all_series, usable)
    if gpu is None:
        return unknown_epoch_ends(len(rows), too_coarse=False)
    series = all_series[gpu]
    others = [each for each, use in zip(all_series, usable, strict=True) if each is not series and use.any()]
    at, starts = (np.array([getattr(row, name) for row in rows]) for name in ("row_t_s", "start_t_s"))
    fit = _LevelFit.of(at, starts, np.array(firsts), [series, *others][:GPUS_ENOUGH])
    before = fit.validations(at, starts, ~np.array(firsts), series.interval_s)
    after = fit.checkpoints(at, np.array(goes_on), series.interval_s)
    if sum(~np.array(firsts)) < ROWS_TELL and not _agree(before):
        before = np.full(len(rows), np.nan)
    others_worked = other_work(series, usable[gpu])
    after = checkpoints_beside(at, after, others_worked)
    before = validations_beside(rows, before, after, others_worked)
    seen = _are_seen(at, series)
    before, after = (np.where((lengths > 0) & seen, lengths, np.nan) for lengths in (before, after))
    for number, (row, first) in enumerate(zip(rows, firsts, strict=True)):
        if first and (begun := _first_validation(series, row)) is not None:
            before[number] = row.row_t_s - begun
    is_all = _leave_no_training(at - starts, before)
    before = np.full(len(rows), np.nan) if is_all else _with_training(at - starts, before)
    pauses = (Pause(*pair) for pair in zip(before.tolist(), after.tolist(), strict=True))
    return EpochFit(tuple(pauses), fit.uncertainty_s, fit.too_coarse or is_all)


def _are_seen(at: Floats, series: GpuSeries) -> Bools:
    """Tell of each row whether there are readings around it: a hole in them tells nothing of what it takes."""
    reach_s = max(AROUND_ROW_S, HOLE_READINGS * series.interval_s)
    near = [series.between(t_s - reach_s, t_s + reach_s) for t_s in at.tolist()]
    return np.array([len(series.t_s[part]) > 0 for part in near], dtype=bool)


def _leave_no_training(epochs_s: Floats, validations: Floats) -> bool:
    """Tell whether validations take more of an epoch than any training leaves them: training itself reads like one."""
    known = np.isfinite(validations) & (epochs_s > 0)  # two rows of one moment are broken
    shares = (epochs_s - validations)[known] / epochs_s[known]
    return int(known.sum()) >= FEWEST_ALIKE and float(np.median(shares)) < TRAIN_AT_LEAST


def unknown_epoch_ends(rows: int, *, too_coarse: bool) -> EpochFit:
    """Return the fit of epochs of which no reading shows where they end."""
    return EpochFit((Pause(math.nan, math.nan),) * rows, 0.0, too_coarse)


def _with_training(epochs_s: Floats, validations: Floats) -> Floats:
    """Return validations of which none leaves its epoch far less training than the others have: that one is slow.

    Of fewer, one that leaves next to none is not known. Each epoch trains the same batches; without mosaics, or without
    a cold start, it is hardly twice as fast.
    """
    trained_s = epochs_s - validations
    if np.isfinite(trained_s).sum() < FEWEST_ALIKE:
        return np.where(trained_s < TRAIN_AT_LEAST * epochs_s, np.nan, validations)
    is_long = validations > th.SIBLING_FACTOR * float(np.nanmedian(validations))
    short = trained_s < np.where(is_long, LEAST_BESIDE_LONG, LEAST_TRAINED) * float(np.nanmedian(trained_s))
    return np.where(short, np.minimum(validations, np.nanmedian(validations[~short])), validations)


def _agree(validations: Floats) -> bool:
    """Tell whether the few validations of a run are about as long: else one is a stall. A first one takes longer."""
    most = th.SIBLING_FACTOR * float(np.min(validations)) + th.FIRST_EPOCH_END_EXTRA_S
    return bool(np.max(validations) <= most)


@dataclass(frozen=True, eq=False)
class _LevelFit:
    """What the readings of a YOLO run tell its validations and checkpoints by; nothing where they do not.

    `epoch_s` is the median length of an epoch. For `uncertainty_s` and `too_coarse` see `EpochFit`.
    """

    epoch_s: float
    in_validation: Sequence[_Costs]
    in_checkpoint: Sequence[_Costs]
    uncertainty_s: float
    too_coarse: bool

    @classmethod
    def of(cls, at: Floats, starts: Floats, firsts: Bools, all_series: Sequence[GpuSeries]) -> _LevelFit:
        epoch_s = float(np.median(at - starts))
        signals = [signal for each in all_series for signal in signals_of(each) if signal.sees(epoch_s)]
        if not signals:
            return cls(epoch_s, (), (), 0.0, too_coarse=True)
        representative = ~firsts if not firsts.all() else firsts
        found = find_levels(starts[representative], at[representative], signals, _lengths(epoch_s))
        pairs = [_with_short(*pair, found.validation_s) for pair in zip(signals, found.levels, strict=True)]
        apart = [(signal, levels) for signal, levels in pairs if levels.separation >= SEPARATION]
        is_short = found.validation_s <= SHORT_READINGS * max(each.interval_s for each in signals)
        unclear = bool(apart) and (found.at_most or (found.clearer < CLEARER and not is_short))
        neither = math.inf if is_short else NEITHER_FROM
        validating = (
            []
            if unclear
            else [
                replace(
                    _cost(signal, levels, neither_from=max(neither, NOISE / levels.separation)),
                    weight=_weight(signal, levels, at[representative], found.validation_s),
                )
                for signal, levels in apart
            ]
        )
        # theory of change points: their place is known to the square of spread over step, in readings (Hinkley 1970)
        known_to_s = [BLURRED_S + signal.interval_s * (0.5 + levels.separation**-2) for signal, levels in apart]
        saving = _saving(signals, found)
        too_coarse = unclear and sum(representative) >= ROWS_TELL
        return cls(epoch_s, validating, saving, min(known_to_s, default=0.0), too_coarse)

    def validations(self, at: Floats, starts: Floats, decides: Bools, interval_s: float) -> Floats:
        """Return the seconds of validation before each row, NaN where readings do not tell."""
        if not self.in_validation:
            return np.full(len(at), np.nan)
        lengths = _lengths(float(np.max(at - starts)))
        return _fitted(_RowSide(self.in_validation, at, starts, lengths, interval_s, ahead=False), decides)

    def checkpoints(self, at: Floats, decides: Bools, interval_s: float) -> Floats:
        """Return the seconds of checkpoint after each row, NaN where readings do not tell."""
        if not self.in_checkpoint:
            return np.full(len(at), np.nan)
        lengths = _lengths(CHECKPOINT_AT_MOST * self.epoch_s)
        until = np.minimum(at + lengths[-1], np.append(at[1:], np.inf))
        return _fitted(_RowSide(self.in_checkpoint, at, until, lengths, interval_s, ahead=True), decides)


def _saving(signals: Sequence[GpuSignal], found: EpochLevels) -> list[_Costs]:
    """Return the costs that tell checkpoints: utilisation's where it is fine, else power's, of the first GPU."""
    saving = [
        (signal, _cost(signal, replace(levels, validation=signal.least)))
        for signal, levels in zip(signals, found.levels, strict=True)
        if signal.gpu == signals[0].gpu and levels.train - signal.least >= CHECKPOINT_SEPARATION * levels.spread
    ]
    fine = [cost for signal, cost in saving if signal.is_utilisation and signal.interval_s < FINE_S]
    return fine or [cost for signal, cost in saving if not signal.is_utilisation] or [cost for _, cost in saving]


def _with_short(signal: GpuSignal, levels: Levels, validation_s: float) -> tuple[GpuSignal, Levels]:
    """Return a signal with its levels, that of a validation too short to be seen in its readings filled in."""
    if signal.is_utilisation or validation_s > SHORT_READINGS * signal.interval_s or levels.validation > levels.train:
        return signal, levels
    return signal, replace(levels, validation=signal.least + VALIDATION_POWER * (levels.train - signal.least))


def _lengths(longest_s: float) -> Floats:
    """Return the lengths to try, in seconds: fine where they are short, as fine as they can matter where long."""
    lengths = [0.0]
    while lengths[-1] < max(longest_s, PAUSE_STEP_S):
        lengths.append(lengths[-1] + max(PAUSE_STEP_S, PAUSE_STEP_SHARE * lengths[-1]))
    return np.array(lengths)


def _cost(signal: GpuSignal, levels: Levels, *, neither_from: float = math.inf) -> _Costs:
    """Return what it costs to call time training where readings are of the pause, or the other way round.

    Readings beyond those of the pause by `neither_from` times what the two are apart are of neither: a stall.
    """
    part = (signal.values - levels.validation) / (levels.train - levels.validation)
    hold = np.diff(signal.begins_s) * (part >= -neither_from)
    part = np.clip(part, 0.0, 1.0)
    work, paused = (np.concatenate([[0.0], np.cumsum(each**2 * hold)]) for each in (1 - part, part))
    return _Costs(signal.begins_s, work, paused, min(levels.separation, SEPARATION_AT_MOST), signal.interval_s)


def _weight(signal: GpuSignal, levels: Levels, rows_s: Floats, validation_s: float) -> float:
    """Return how much a signal has to say: its separation, of readings far apart by their scatter in validations.

    Utilisation is of a moment, and power of a second: between two batches of a validation it may be 0 or 100 %, which
    the usual epoch, a median over all of them, does not show.
    """
    if signal.interval_s < th.SPARSE_S:
        return min(levels.separation, SEPARATION_AT_MOST)
    t_s = signal.begins_s[:-1]
    ends = np.minimum(np.searchsorted(rows_s, t_s), len(rows_s) - 1)
    inside = (t_s > rows_s[ends] - validation_s) & (t_s + signal.interval_s < rows_s[ends])
    scatter = float(np.std(signal.values[inside])) if inside.any() else 0.0
    return min(abs(levels.train - levels.validation) / max(levels.spread, scatter), SEPARATION_AT_MOST)


@dataclass(frozen=True, eq=False)
class _RowSide:
    """One side of rows `at` some moments, before them or `ahead`: the signals that tell of it, the lengths to try.

    `reach` is how far each epoch goes: to the row before, or `ahead` to the next.
    """

    costs: Sequence[_Costs]
    at: Floats
    reach: Floats
    lengths: Floats
    interval_s: float
    ahead: bool

    @property
    def long_s(self) -> float:
        """Return from how many seconds on a length is long: there are readings enough in it to go by them alone."""
        return LONG_READINGS * max(one.interval_s for one in self.costs)

    def cost(self, chunk: slice, lengths: Floats) -> Floats:
        """Return the contradicted seconds at some of the rows for each length: means over the signals."""
        at, reach = self.at[chunk], self.reach[chunk]
        each = [(one.after if self.ahead else one.before)(at, lengths, reach) for one in self.costs]
        cost: Floats = np.average(each, axis=0, weights=[one.weight for one in self.costs])
        return cost

    def own(self, chunk: slice, lengths: Floats, shared: Floats, cost: Floats | None = None) -> Floats:
        """Return each row's own length, which readings must insist on where it is not its neighbours' (`shared`)."""
        apart = np.abs(lengths - shared)
        price = PAUSE_PRIOR * apart + PAUSE_READINGS * np.minimum(apart, self.interval_s)
        is_long = shared >= self.long_s
        likely = is_long | (
            (lengths <= th.SIBLING_FACTOR * shared + self.interval_s) & (lengths >= shared / th.SIBLING_FACTOR)
        )
        total = np.where(likely, (self.cost(chunk, lengths) if cost is None else cost) + price, np.inf)
        best = np.argmin(total, axis=1)[:, None]
        found: Floats = np.take_along_axis(np.broadcast_to(lengths, total.shape), best, axis=1)
        return found


def _fitted(side: _RowSide, decides: Bools) -> Floats:
    """Return the length that fits best at each row: its own where its readings insist, else its neighbours'.

    Rows that do not tell of others have their neighbours' length, too. A short one that is longer than its siblings by
    SIBLING_FACTOR has a stall beside it, which is no part of it as far as is known.
    """
    found = np.empty(len(side.at))
    for begin in range(0, len(found), PAUSE_ROWS_AT_ONCE):
        chunk = slice(begin, begin + PAUSE_ROWS_AT_ONCE)
        tell, cost = decides[chunk], side.cost(chunk, side.lengths)
        shared = _shared(cost, tell if tell.any() else ~tell, side.lengths)[:, None]
        own = side.own(chunk, side.lengths, shared, cost)
        is_long = shared >= side.long_s
        finer = own * FINER
        own = np.where(is_long, side.own(chunk, finer, finer), own)
        found[chunk] = np.where(tell[:, None] | is_long, own, shared)[:, 0]
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


def _most_idle_gpu(rows: Sequence[EpochRow], all_series: Sequence[GpuSeries], usable: Sequence[Bools]) -> int | None:
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

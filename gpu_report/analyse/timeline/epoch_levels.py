"""What a GPU reads in training and in validation around the rows of results.csv: levels found, not assumed.

A validation may be less busy than training or more, and take a hundredth of an epoch or most of it. All that is
certain is the order: an epoch begins with the checkpoint of the one before, then comes training, then validation, and
then its row. So the usual epoch is taken: at each distance from a row the median over all epochs, which a stall in one
of them does not touch. The lengths are sought at which it differs most between its parts, and least within them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpu_report.analyse.timeseries.gpu_series import Bools, Floats, GpuSeries
from gpu_report.analyse.timeseries.robust_outliers import MAD_TO_SIGMA
from gpu_report.median import median_of
from gpu_report.model import WELL_COVERED

READING_TRAILS_S = 0.2  # a reading is of the driver's last sampling period (0.2 s on H200): half of it ago, on average
POWER_TRAILS_S = 0.6  # power is the mean of the last second: half of that, and the board follows a little later
# Readings in the median epoch: with fewer each part has less than one, and which of them it had is chance.
EPOCH_READINGS = 3
ROWS_ENOUGH = 200  # rows of a long run from which levels are taken, evenly spread: more make them no better
# Of an epoch at least so much is training: a validation of seven times that long is not what anybody sets up.
TRAIN_AT_LEAST = 0.12
CHECKPOINT_AT_MOST = 0.5  # of an epoch
IDLE_SHARE = 0.5  # of the utilisation of the other parts, a checkpoint has less ...
IDLE_PCT = 10.0  # ... and, where it is long enough to be training itself, no more than this
# Training is taken from either end of an epoch, at least half of it, and at most to where so few of the epochs are over
# that the median is of training still.
SHORTER_SHARE = 0.25
BLURRED_S = 0.2  # about a row a reading is of both sides: so far, and by half the distance of two readings
# Training is what keeps a GPU busiest, unless readings contradict: they vary so many times less around other levels.
CONTRADICTED = 2.0
LEAST_SPREAD = 0.01  # of the range of what is read, the least spread that is reckoned with


@dataclass(frozen=True, eq=False)
class GpuSignal:
    """One kind of reading of a GPU, and its running integral; `interval_s` is the distance of two readings.

    Utilisation (`is_utilisation`) is next to nothing in checkpoints; power is not.
    """

    gpu: int
    is_utilisation: bool
    values: Floats
    begins_s: Floats
    integral: Floats
    interval_s: float

    @classmethod
    def of(cls, gpu: int, t_s: Floats, values: Floats, *, is_utilisation: bool = False) -> GpuSignal:
        """Return the signal of readings that each stand for half of the way to the ones beside it."""
        begins = np.concatenate([[t_s[0]], (t_s[1:] + t_s[:-1]) / 2, [t_s[-1]]])
        integral = np.concatenate([[0.0], np.cumsum(values * np.diff(begins))])
        interval_s = median_of(np.diff(t_s)) if len(t_s) > 1 else 0.0
        return cls(gpu, is_utilisation, values, begins, integral, interval_s or math.inf)

    @property
    def least(self) -> float:
        """Return what is read while the GPU is idle."""
        return float(self.values.min())

    def sees(self, epoch_s: float) -> bool:
        """Tell whether its readings are close enough to see the parts of an epoch."""
        return self.interval_s * EPOCH_READINGS <= epoch_s

    def means(self, edges_s: Floats) -> Floats:
        """Return the means between edges, which run up or down along the last axis."""
        sums = np.interp(edges_s, self.begins_s, self.integral)
        means: Floats = np.diff(sums, axis=-1) / np.diff(edges_s, axis=-1)
        return means


def signals_of(series: GpuSeries) -> list[GpuSignal]:
    """Return the readings of a GPU that may tell its training from validation: utilisation, power, memory traffic.

    Readings trail what they are of.
    """
    samples, t_s = series.samples, series.samples["t_s"].to_numpy(dtype=float)
    util_pct = series.util_pct.astype(float)
    found = (
        [GpuSignal.of(series.gpu, series.t_s - READING_TRAILS_S, util_pct, is_utilisation=True)]
        if len(util_pct)
        else []
    )
    for name, trails_s in (("power_w", POWER_TRAILS_S), ("memory_util_pct", READING_TRAILS_S)):
        values = samples[name].to_numpy(dtype=float)
        known = np.isfinite(values)
        if known.mean() > WELL_COVERED and np.ptp(values[known]) > 0:
            found.append(GpuSignal.of(series.gpu, t_s[known] - trails_s, values[known]))
    return found


@dataclass(frozen=True)
class Levels:
    """What a signal reads in training and validation, NaN in a part that is not there, and its spread."""

    train: float
    validation: float
    spread: float

    @property
    def separation(self) -> float:
        """Return how far training and validation are apart, in standard deviations of a reading; 0 if unknown."""
        apart = abs(self.train - self.validation) / self.spread
        return float(apart) if np.isfinite(apart) else 0.0


@dataclass(frozen=True)
class EpochLevels:
    """The lengths (s) that fit the usual epoch best, and the levels of each signal.

    `clearer` is how many times less readings vary around these levels than around one, in all of the epoch, or in the
    validation and as much training before it: of a long epoch all else is training, however clear its validation.
    A validation `at_most` is as long as any that is tried: how long it is, readings do not tell.
    """

    checkpoint_s: float
    validation_s: float
    levels: tuple[Levels, ...]
    clearer: float
    at_most: bool


def find_levels(starts_s: Floats, rows_s: Floats, signals: Sequence[GpuSignal], lengths: Floats) -> EpochLevels:
    """Return what fits epochs best that begin at `starts_s` (the row before) and end with their rows."""
    some = np.unique(np.linspace(0, len(rows_s) - 1, min(len(rows_s), ROWS_ENOUGH)).round().astype(int))
    epoch_s = float(np.median((rows_s - starts_s)[some]))
    edges = np.append(lengths[lengths < epoch_s], epoch_s)
    lengths = lengths[lengths <= (1 - TRAIN_AT_LEAST) * epoch_s]
    tables = [_Usual.of(signal, starts_s[some], rows_s[some], edges, len(lengths)) for signal in signals]
    readings = sum(table.readings for table in tables)
    cost = np.where(
        _allowed(signals, tables, lengths, epoch_s), np.sum([table.cost() for table in tables], axis=0), np.inf
    )
    usual = np.where(_by_power(signals, tables).is_usual(), cost, np.inf)
    saved, validated = _best(cost)
    contradicted = (usual.min() - cost.min()) / readings > math.log(CONTRADICTED) / 2
    if not contradicted or _is_at_most(lengths, saved, validated, epoch_s):
        saved, validated = _best(usual)
    in_all = 2 * float(usual[:, 0].min() - cost[saved, validated])
    near = sum(table.readings * table.log_clearer(saved, validated) for table in tables)
    return EpochLevels(
        float(lengths[saved]),
        float(lengths[validated]),
        tuple(table.levels(saved, validated) for table in tables),
        math.exp(max(in_all, near) / readings),
        at_most=_is_at_most(lengths, saved, validated, epoch_s),
    )


def _best(cost: Floats) -> tuple[int, int]:
    saved, validated = np.unravel_index(int(np.argmin(cost)), cost.shape)
    return int(saved), int(validated)


def _is_at_most(lengths: Floats, saved: int, validated: int, epoch_s: float) -> bool:
    """Tell whether no longer validation could have been tried: training is what may be left of an epoch at least."""
    longer_s = 2 * lengths[validated] - lengths[validated - 1] if validated else 0.0
    return bool(lengths[saved] + longer_s > (1 - TRAIN_AT_LEAST) * epoch_s)


def _allowed(signals: Sequence[GpuSignal], tables: Sequence[_Usual], lengths: Floats, epoch_s: float) -> Bools:
    """Return which lengths of checkpoint (rows) and validation (columns) are tried: none is always one of them."""
    allowed = lengths[:, None] + lengths <= (1 - TRAIN_AT_LEAST) * epoch_s
    allowed &= (lengths <= CHECKPOINT_AT_MOST * epoch_s)[:, None]
    for signal, table in zip(signals, tables, strict=True):
        if signal.is_utilisation:
            allowed &= table.is_idle(too_short_to_train=lengths <= TRAIN_AT_LEAST * epoch_s)
    allowed[0, 0] = True
    return allowed


def _by_power(signals: Sequence[GpuSignal], tables: Sequence[_Usual]) -> _Usual:
    """Return what the first GPU's power says of the usual epoch, else what its utilisation does."""
    mine = [table for signal, table in zip(signals, tables, strict=True) if signal.gpu == signals[0].gpu]
    return mine[1] if len(mine) > 1 else mine[0]


@dataclass(frozen=True, eq=False)
class _Usual:
    """Sums over the usual epoch, by the lengths of checkpoint (rows) and validation (columns) that are tried.

    Each is of seconds, readings times seconds, and squares times seconds. `spread` is that of a reading between epochs
    and from one to the next, `readings` how many there are. `before` has the sums up to each of `edges_s` before a row.
    """

    edges_s: Floats
    before: Floats
    saved: Floats
    validated: Floats
    trained: Floats
    spread: float
    readings: float

    @classmethod
    def of(cls, signal: GpuSignal, starts_s: Floats, rows_s: Floats, edges: Floats, tried: int) -> _Usual:
        """Return the sums up to the first edges, `tried` of them; the last edge is the end of the usual epoch."""
        epoch_s = float(edges[-1])
        after, before = starts_s[:, None] + edges, rows_s[:, None] - edges
        inside = after[:, 1:] <= rows_s[:, None] + 1e-6, before[:, 1:] >= starts_s[:, None] - 1e-6
        pairs = [_median(signal.means(at), known) for at, known in zip((after, before), inside, strict=True)]
        profiles, spreads = zip(*pairs, strict=True)
        width = np.diff(np.maximum(edges, BLURRED_S + signal.interval_s / 2))
        sums = [_running(profile, width) for profile in profiles]
        saved, validated = (one[:, :tried] for one in sums)
        saving_s, validating_s = edges[:tried, None], edges[None, :tried]
        half_s = np.maximum(epoch_s - saving_s - validating_s, 0.0) / 2
        whole_s = edges[np.searchsorted(edges, np.quantile(rows_s - starts_s, SHORTER_SHARE)) - 1]
        trained = (
            _at(edges, sums[0], np.maximum(saving_s + half_s, whole_s - validating_s))
            - saved[:, :, None]
            + _at(edges, sums[1], np.maximum(validating_s + half_s, whole_s - saving_s))
            - validated[:, None, :]
        )
        varies = np.concatenate([*spreads, *(np.abs(np.diff(profile)) for profile in profiles)])
        spread = max(float(np.median(varies)), LEAST_SPREAD * float(np.ptp(profiles)), 1e-9)
        return cls(edges, sums[1], saved, validated, trained, spread, 2 * epoch_s / signal.interval_s)

    def cost(self) -> Floats:
        """Return minus the log likelihood of normal readings around a level in each part."""
        left = _within(self.saved)[:, None] + _within(self.validated)[None, :] + _within(self.trained)
        total = self.saved[0][:, None] + self.validated[0][None, :] + self.trained[0]
        variance = np.maximum(left / np.maximum(total, 1e-9), (LEAST_SPREAD * self.spread) ** 2)
        cost: Floats = self.readings / 2 * np.log(variance)
        return cost

    def log_clearer(self, saved: int, validated: int) -> float:
        """Return the logarithm of `clearer`, by this signal alone."""
        validated_s = self.edges_s[validated]
        trained_s = min(validated_s, self.edges_s[-1] - self.edges_s[saved] - validated_s)
        both, validation = _at(self.edges_s, self.before, validated_s + trained_s), self.validated[:, validated]
        least = both[0] * (LEAST_SPREAD * self.spread) ** 2
        around_two = _within(validation) + _within(both - validation)
        if not least > 0:  # nothing of either is known
            return 0.0
        return math.log(float(np.fmax(_within(both), least) / np.fmax(around_two, least)))

    def is_idle(self, too_short_to_train: Bools) -> Bools:
        """Return for which lengths the GPU is idle in the checkpoint, or there is none to be seen."""
        saved, trained, validated = (_mean(part) for part in (self.saved, self.trained, self.validated))
        most = IDLE_SHARE * np.fmin(trained, validated[None, :])
        most = np.where(too_short_to_train[:, None], most, np.minimum(most, IDLE_PCT))
        found: Bools = (saved[:, None] <= most) | (self.saved[0] <= 0)[:, None]
        return found

    def is_usual(self) -> Bools:
        """Return for which lengths the validation is less busy than training, or there is none to be seen."""
        trained, validated = _mean(self.trained), _mean(self.validated)
        found: Bools = ~(validated[None, :] >= trained)
        return found

    def levels(self, saved: int, validated: int) -> Levels:
        parts = self.trained[:, saved, validated], self.validated[:, validated]
        train, validation = (float(_mean(part)) for part in parts)
        return Levels(train, validation, self.spread)


def _median(values: Floats, known: Bools) -> tuple[Floats, Floats]:
    """Return the median at each distance over the epochs that are so long, and the spread around it."""
    some = np.where(known, values, np.nan)
    enough: Bools = np.atleast_1d(known.any(axis=0))
    middle = _middle(some[:, enough])
    spread = MAD_TO_SIGMA * _middle(np.abs(some[:, enough] - middle))
    return np.interp(np.arange(len(enough)), np.flatnonzero(enough), middle), spread


def _middle(values: Floats) -> Floats:
    """Return the median of what is known in each column, in which something is: np.nanmedian takes far longer."""
    ordered, count = np.sort(values, axis=0), np.count_nonzero(~np.isnan(values), axis=0)
    each = np.arange(values.shape[1])
    middle: Floats = (ordered[(count - 1) // 2, each] + ordered[count // 2, each]) / 2
    return middle


def _running(profile: Floats, width: Floats) -> Floats:
    parts = np.stack([width, profile * width, profile**2 * width])
    return np.concatenate([np.zeros((3, 1)), np.cumsum(parts, axis=1)], axis=1)


def _at(edges: Floats, sums: Floats, at: Floats) -> Floats:
    return np.stack([np.interp(at, edges, one) for one in sums])


def _mean(sums: Floats) -> Floats:
    """Return means, NaN of nothing."""
    mean: Floats = np.divide(sums[1], sums[0], out=np.full_like(sums[1], np.nan), where=sums[0] > 1e-9)
    return mean


def _within(sums: Floats) -> Floats:
    """Return sums of squares around the mean, 0 of nothing."""
    seconds, integral, square = sums
    mean = np.divide(integral, seconds, out=np.zeros_like(integral), where=seconds > 1e-9)
    left: Floats = np.maximum(square - mean * integral, 0.0)
    return left

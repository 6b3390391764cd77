"""Drops as each training has them, where no epochs are known: of logs without a run folder."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpu_report.analyse.context import USED_PCT, Context
from gpu_report.analyse.signals.gpu.utilisation_drops import Drop, find_drops
from gpu_report.analyse.timeline.thresholds import FINAL_EVALUATION_S
from gpu_report.analyse.timeline.trainings import later_starts
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats, GpuSeries
from gpu_report.analyse.timeseries.intervals import IntervalIndex

IN_STEP = 0.9  # mean resultant length (0 to 1) of their moments in a period: all within a seventh of it, about
BESIDE = 1 / 7  # of a period, away from the others: it is none of them
SHORTER = 0.5  # of a drop's least length: validations of one training vary by less than a factor of two
FEW, FEW_IN_STEP = 8, 0.98  # of fewer, some period suits most: all must be within a thirtieth, as ends of epochs are
FEW_ALIKE = 1.5  # times the shortest, the longest of few at most
EDGES = 2  # of a drop: each is known to a reading
WITH_FINAL = 2  # validations, one after the other: the last epoch's and the final evaluation
PERIODS_LEAST = 3  # with a drop, and ...
PERIODS_SHARE = 0.6  # ... of all between the first and the last: twice the true period, or half of it, has fewer
LONGEST_TIMES = 3.0  # of a drop: where less is worked between two, there is little but drops
DIPS = 0.8  # of the level: a turn without a drop, in which utilisation fell so far, has a validation all the same
PERIODS_STEP = 5e-4  # from one to the next that is tried: 200 of them drift by a tenth of one
CLEARLY_TIMES = 2.0  # USED_PCT: a GPU that works so much in most drops, and not in one, did nothing in that
FINAL_SHARE = 0.005  # of the run: a final evaluation may be so long, as what takes less of a run is but a note
# Of the run, but no more than (s): the last validation and the final evaluation seldom take more. Few epochs have as
# large a part of them, and 80,000 images (Objects365) take 20 minutes.
NEAR_END_SHARE, LONGEST_END_S = 0.1, 1800.0
ODD_TIMES = 2.0  # the median length: validations of one training vary less, but for some that shrink as it learns
ODD_SHARE = 0.2  # of all drops: with more that are odd, the others are too easily found to be in step


def periodic_drops(context: Context) -> frozenset[Drop]:
    """Return the drops that come in step and in which the GPU worked; none where epochs are known.

    Their moments count the time outside drops: an epoch trains as many batches, however long something held one up.
    Validations that take about as long as a drop must are drops only in part. So what is in step with shorter falls is
    looked for, too.
    """
    if context.epoch_ends.all or context.rank_groups:
        return frozenset()
    found: set[Drop] = set()
    for gpu in {drop.gpu for drop in context.drops}:
        mine = [each for each in context.drops if each.gpu == gpu and not _leaves_gpu(context, each)]
        regular = _regular_of(mine, _Level(context.series_of(gpu)))
        found.update(regular, _among_shorter(context, gpu, mine) if len(regular) < len(mine) else ())
    return frozenset(found)


def _among_shorter(context: Context, gpu: int, drops: Sequence[Drop]) -> list[Drop]:
    """Return the drops that are in step with falls that are too short to be one; none far longer than these."""
    falls = context.cached(_shorter_falls, gpu)
    regular = _regular_of(falls, _Level(context.series_of(gpu))) if len(falls) > len(drops) else ()
    if not regular:
        return []
    longest_s = FEW_ALIKE * float(np.median([fall.duration_s for fall in regular]))
    near = IntervalIndex(list(regular), lambda fall: fall.span)
    return [drop for drop in drops if drop.duration_s <= longest_s and any(True for _ in near(*drop.span))]


def _shorter_falls(context: Context, gpu: int) -> tuple[Drop, ...]:
    """Return what falls as drops do, for SHORTER of the time or more that makes one."""
    at = next(n for n, series in enumerate(context.series) if series.gpu == gpu)
    options = replace(context.options, drop_seconds=SHORTER * context.options.drop_seconds)
    begun_s = later_starts(context.trainings, gpu)
    return tuple(find_drops(context.series[at], context.usable[at], context.trains[at], options, begun_s))


def ends_a_training(context: Context, drop: Drop) -> bool:
    """Tell whether the GPU worked in a drop after which no training came: as in a validation and the final evaluation.

    All that came after the training counts, until the process left the GPU or the log ended.
    """
    if context.epoch_ends.all or context.rank_groups or drop.mean_pct < USED_PCT:
        return False
    left_s = _left_s(context, drop)
    rest_pct = context.series_of(drop.gpu).mean_util_pct(drop.end_t_s, left_s)
    goes_on = bool(rest_pct > DIPS * drop.level_pct)  # NaN: nothing was read after it
    return not goes_on and left_s - drop.start_t_s <= _longest_end_s(context, drop.gpu)


def _longest_end_s(context: Context, gpu: int) -> float:
    """Return how long what comes after the training may take: by the validations that were seen, else much more."""
    validations_s = [each.duration_s for each in context.cached(periodic_drops) if each.gpu == gpu]
    if validations_s:
        seen_s = WITH_FINAL * FEW_ALIKE * float(np.median(validations_s))
    else:
        seen_s = min(NEAR_END_SHARE * context.run.duration_s, LONGEST_END_S)
    return max(FINAL_EVALUATION_S, FINAL_SHARE * context.run.duration_s, seen_s)


def _left_s(context: Context, drop: Drop) -> float:
    """Return when the process left the GPU in a drop or after it, else when the recording ended."""
    left = (max(start, drop.end_t_s) for start, end in context.activity.idle if end > drop.end_t_s)
    return min(left, default=context.run.duration_s)


def _leaves_gpu(context: Context, drop: Drop) -> bool:
    left = any(start <= drop.end_t_s < end for start, end in context.activity.idle)
    ended = drop.end_t_s >= context.run.duration_s - EDGES * context.series_of(drop.gpu).interval_s
    return (left or ended) and drop.mean_pct >= USED_PCT


@dataclass(frozen=True)
class _Level:
    """A GPU's utilisation over time, for a look at moments in which no drop was found."""

    series: GpuSeries

    def dips(self, at_s: Floats, length_s: float, level_pct: float) -> Bools:
        """Return at which moments utilisation fell to DIPS of a level for a while, or nothing was read."""
        mean_pct = self.series.mean_util_of_each(np.column_stack([at_s, at_s + length_s]))
        fell: Bools = np.isnan(mean_pct) | (mean_pct <= DIPS * level_pct)
        return fell


def _regular_of(drops: Sequence[Drop], level: _Level) -> Sequence[Drop]:
    """Return the drops of one GPU that are in step: of all, else of those that are not odd.

    Of validations at about half of the level only some are drops. The others take their time, too: so what is none
    for certain is left out of the clock then.
    """
    worked = _in_which_it_worked(drops)
    usual_s = float(np.median([each.duration_s for each in worked])) if worked else 0.0
    usual = [each for each in worked if each.duration_s <= ODD_TIMES * usual_s]
    odd = [each for each in drops if each not in usual]
    of_usual = ((usual, drops),) if len(usual) < len(worked) else ()
    for chosen, left_out in ((worked, drops), *of_usual, (usual, odd)):
        few_are_odd = len(drops) - len(chosen) <= max(ODD_SHARE * len(drops), 1)
        least = PERIODS_LEAST if len(chosen) == len(drops) else PERIODS_LEAST + 1
        if few_are_odd and len(chosen) >= least:
            together = _in_step(chosen, _TimeOutsideDrops(left_out), level)
            if together is not None:
                return [each for each, is_there in zip(chosen, together.tolist(), strict=True) if is_there]
    return ()


class _TimeOutsideDrops:
    """Time without that in some drops."""

    def __init__(self, left_out: Sequence[Drop]) -> None:
        in_order = sorted(left_out, key=lambda drop: drop.start_t_s)
        self._starts_s = np.array([each.start_t_s for each in in_order])
        self._before_s = np.concatenate([[0.0], np.cumsum([each.duration_s for each in in_order])])

    def of(self, t_s: Floats) -> Floats:
        """Return what it shows at moments, of which none lies within a drop that is left out."""
        shown: Floats = t_s - self._before_s[np.searchsorted(self._starts_s, t_s)]
        return shown

    def back(self, shown_s: Floats) -> Floats:
        """Return the moments at which it shows so much."""
        t_s: Floats = shown_s + self._before_s[np.searchsorted(self._starts_s - self._before_s[:-1], shown_s)]
        return t_s


def _in_which_it_worked(drops: Sequence[Drop]) -> Sequence[Drop]:
    """Return the drops in which the GPU worked, as in validations. Where most are near that line, chance parts them."""
    percents = [drop.mean_pct for drop in drops]
    if drops and float(np.median(percents)) < CLEARLY_TIMES * USED_PCT:
        mean_pct = float(np.average(percents, weights=[drop.duration_s for drop in drops]))
        return drops if mean_pct >= USED_PCT else ()
    return [drop for drop in drops if drop.mean_pct >= USED_PCT]


def _in_step(drops: Sequence[Drop], clock: _TimeOutsideDrops, level: _Level) -> Bools | None:
    """Return which drops, by the seconds of each, keep to one period; None where most of its turns have none."""
    at_s, seconds = (np.array([of(each) for each in drops]) for of in (_start_s, _length_s))
    at_s, usual_s = clock.of(at_s), float(np.median(seconds))
    first_s, whole_s = float(at_s.min()), float(np.ptp(at_s))
    shortest, longest = LONGEST_TIMES * usual_s, whole_s / (PERIODS_LEAST - 1.5)
    if longest <= shortest:
        return None
    few = len(at_s) < FEW
    if few and seconds.max() > FEW_ALIKE * seconds.min() + EDGES * level.series.interval_s:
        return None
    least = FEW_IN_STEP if few else IN_STEP
    best, beside, weights = least, None, seconds / seconds.sum()
    for period_s in np.exp(np.arange(np.log(shortest), np.log(longest), PERIODS_STEP)).tolist():
        turns = (at_s - first_s) / period_s
        mean = complex(np.exp(2j * np.pi * turns) @ weights)
        if abs(mean) < best:
            if beside is not None and abs(mean) < least:
                break  # the period that suits most was one of those before
            continue
        filled = np.unique(np.round(turns))
        of_all = PERIODS_SHARE * (whole_s / period_s + 1)
        if len(filled) < of_all and len(filled) >= PERIODS_LEAST:
            others = np.setdiff1d(np.arange(np.round(turns.max()) + 1), filled)
            expected_s = clock.back(first_s + (others + np.angle(mean) / (2 * np.pi)) * period_s)
            dips = level.dips(expected_s, usual_s, float(np.median([each.level_pct for each in drops])))
            filled = np.append(filled, others[dips])
        if len(filled) >= max(PERIODS_LEAST, of_all):
            best, away = abs(mean), turns - np.angle(mean) / (2 * np.pi)
            beside = np.abs(away - np.round(away))
    return None if beside is None else np.asarray(beside <= BESIDE)


def _start_s(drop: Drop) -> float:
    return drop.start_t_s


def _length_s(drop: Drop) -> float:
    return drop.duration_s

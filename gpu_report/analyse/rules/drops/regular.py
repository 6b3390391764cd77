"""Drops as each training has them, where no epochs are known: of logs without a run folder."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpu_report.analyse.context import USED_PCT, Context
from gpu_report.analyse.signals.gpu.utilisation_drops import Drop, find_drops
from gpu_report.analyse.timeline.thresholds import FINAL_EVALUATION_S
from gpu_report.analyse.timeline.trainings import later_starts
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats
from gpu_report.analyse.timeseries.intervals import IntervalIndex

IN_STEP = 0.9  # mean resultant length (0 to 1) of their moments in a period: all within a seventh of it, about
BESIDE = 1 / 7  # of a period, away from the others: it is none of them
SHORTER = 0.5  # of a drop's least length: validations of one training vary by less than a factor of two
FEW, FEW_IN_STEP = 8, 0.98  # of fewer, some period suits most: all must be within a thirtieth, as ends of epochs are
FEW_ALIKE = 1.5  # times the shortest, the longest of few at most
PERIODS_LEAST = 3  # with a drop, and ...
PERIODS_SHARE = 0.6  # ... of all between the first and the last: twice the true period, or half of it, has fewer
LONGEST_TIMES = 3.0  # of a drop: where less is worked between two, there is little but drops
PERIODS_STEP = 5e-4  # from one to the next that is tried: 200 of them drift by a tenth of one
CLEARLY_TIMES = 2.0  # USED_PCT: a GPU that works so much in most drops, and not in one, did nothing in that
FINAL_SHARE = 0.005  # of the run: a final evaluation may be so long, as what takes less of a run is but a note
ODD_TIMES = 2.0  # the median length: validations of one training vary less, but for some that shrink as it learns
ODD_SHARE = 0.2  # of all drops: with more that are odd, the others are too easily found to be in step


def regular_drops(context: Context) -> frozenset[Drop]:
    """Return the drops that come in step and in which the GPU worked; none where epochs are known.

    Their moments count the time outside drops: an epoch trains as many batches, however long something held one up.
    Validations that take about as long as a drop must are drops only in part. So what is in step with shorter falls is
    looked for, too.
    """
    if context.epoch_ends.all or context.rank_groups:
        return frozenset()
    found: set[Drop] = set()
    for gpu in {drop.gpu for drop in context.drops}:
        mine = [each for each in context.drops if each.gpu == gpu]
        regular = _regular_of(mine)
        found.update(regular, _among_shorter(context, gpu, mine) if len(regular) < len(mine) else ())
    return frozenset(found)


def _among_shorter(context: Context, gpu: int, drops: Sequence[Drop]) -> list[Drop]:
    """Return the drops that are in step with falls that are too short to be one; none far longer than these."""
    falls = context.cached(_shorter_falls, gpu)
    regular = _regular_of(falls) if len(falls) > len(drops) else ()
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
    """Tell whether the GPU worked in a drop, as in a final evaluation, until the training's process left it."""
    longest_s = max(FINAL_EVALUATION_S, FINAL_SHARE * context.run.duration_s)
    if context.epoch_ends.all or context.rank_groups or drop.duration_s > longest_s:
        return False
    left = any(start <= drop.end_t_s < end for start, end in context.activity.idle)
    return left and drop.mean_pct >= USED_PCT


def _regular_of(drops: Sequence[Drop]) -> Sequence[Drop]:
    """Return the drops of one GPU that are in step: of all, else of those that are not odd."""
    at_s = _worked_before(drops)
    worked = _in_which_it_worked(drops)
    usual_s = float(np.median([each.duration_s for each in worked])) if worked else 0.0
    usual = [each for each in worked if each.duration_s <= ODD_TIMES * usual_s]
    for chosen in (worked, usual):
        few_are_odd = len(drops) - len(chosen) <= max(ODD_SHARE * len(drops), 1)
        least = PERIODS_LEAST if len(chosen) == len(drops) else PERIODS_LEAST + 1
        if few_are_odd and len(chosen) >= least:
            seconds = np.array([each.duration_s for each in chosen])
            together = _in_step(np.array([at_s[each] for each in chosen]), seconds)
            if together is not None:
                return [each for each, is_there in zip(chosen, together.tolist(), strict=True) if is_there]
    return ()


def _worked_before(drops: Sequence[Drop]) -> dict[Drop, float]:
    """Return for each drop when it began (s), without the time in those before it."""
    in_order = sorted(drops, key=lambda drop: drop.start_t_s)
    before_s = np.concatenate([[0.0], np.cumsum([each.duration_s for each in in_order])[:-1]])
    return {each: each.start_t_s - dropped_s for each, dropped_s in zip(in_order, before_s.tolist(), strict=True)}


def _in_which_it_worked(drops: Sequence[Drop]) -> Sequence[Drop]:
    """Return the drops in which the GPU worked, as in validations. Where most are near that line, chance parts them."""
    percents = [drop.mean_pct for drop in drops]
    if drops and float(np.median(percents)) < CLEARLY_TIMES * USED_PCT:
        mean_pct = float(np.average(percents, weights=[drop.duration_s for drop in drops]))
        return drops if mean_pct >= USED_PCT else ()
    return [drop for drop in drops if drop.mean_pct >= USED_PCT]


def _in_step(at_s: Floats, seconds: Floats) -> Bools | None:
    """Return which moments, by the seconds of each, keep to one period; None where most of its turns have none."""
    first_s, whole_s = float(at_s.min()), float(np.ptp(at_s))
    shortest, longest = LONGEST_TIMES * float(np.median(seconds)), whole_s / (PERIODS_LEAST - 1.5)
    if longest <= shortest:
        return None
    few = len(at_s) < FEW
    if few and seconds.max() > FEW_ALIKE * seconds.min():
        return None
    least = FEW_IN_STEP if few else IN_STEP
    best, beside = least, None
    for period_s in np.exp(np.arange(np.log(shortest), np.log(longest), PERIODS_STEP)).tolist():
        turns = (at_s - first_s) / period_s
        mean = np.average(np.exp(2j * np.pi * turns), weights=seconds)
        if abs(mean) < best:
            if beside is not None and abs(mean) < least:
                break  # the period that suits most was one of those before
            continue
        filled = len(np.unique(np.round(turns)))
        if filled >= max(PERIODS_LEAST, PERIODS_SHARE * (whole_s / period_s + 1)):
            best, away = abs(mean), turns - np.angle(mean) / (2 * np.pi)
            beside = np.abs(away - np.round(away))
    return None if beside is None else np.asarray(beside <= BESIDE)

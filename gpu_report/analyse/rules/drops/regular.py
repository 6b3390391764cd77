"""Drops as each training has them, where no epochs are known: of logs without a run folder."""

import numpy as np

from gpu_report.analyse.context import USED_PCT, Context
from gpu_report.analyse.signals.utilisation_drops import Drop
from gpu_report.analyse.timeline.thresholds import FINAL_EVALUATION_S
from gpu_report.analyse.timeseries.gpu_series import Floats

IN_STEP = 0.9  # mean resultant length (0 to 1) of their moments in a period: all within a seventh of it, about
FEW, FEW_IN_STEP = 8, 0.98  # of fewer, some period suits most: all must be within a thirtieth, as ends of epochs are
FEW_ALIKE = 1.5  # times the shortest, the longest of few at most
PERIODS_LEAST = 3  # with a drop, and ...
PERIODS_SHARE = 0.6  # ... of all between the first and the last: twice the true period, or half of it, has fewer
LONGEST_TIMES = 4.0  # of a drop: a shorter period has little but drops
PERIODS_STEP = 5e-4  # from one to the next that is tried: 200 of them drift by a tenth of one


def regular_drops(context: Context) -> frozenset[Drop]:
    """Return all drops, where they come in step and the GPU worked in them; none where epochs are known."""
    drops, known = context.drops, context.epoch_ends.all or context.rank_groups
    if known or len(drops) < PERIODS_LEAST:
        return frozenset()
    middles = np.array([(drop.start_t_s + drop.end_t_s) / 2 for drop in drops])
    seconds = np.array([drop.duration_s for drop in drops])
    worked = np.average([drop.mean_pct for drop in drops], weights=seconds) >= USED_PCT
    return frozenset(drops) if worked and _in_step(middles, seconds) else frozenset()


def ends_a_training(context: Context, drop: Drop) -> bool:
    """Tell whether the GPU worked in a drop, as in a final evaluation, until the training's process left it."""
    if context.epoch_ends.all or context.rank_groups or drop.duration_s > FINAL_EVALUATION_S:
        return False
    left = any(start <= drop.end_t_s < end for start, end in context.activity.idle)
    return left and drop.mean_pct >= USED_PCT


def _in_step(at_s: Floats, seconds: Floats) -> bool:
    """Tell whether moments, by the seconds of each, keep to one period and are there in most of its turns."""
    first_s, whole_s = float(at_s.min()), float(np.ptp(at_s))
    shortest, longest = LONGEST_TIMES * float(np.median(seconds)), whole_s / (PERIODS_LEAST - 1.5)
    if longest <= shortest:
        return False
    few = len(at_s) < FEW
    if few and seconds.max() > FEW_ALIKE * seconds.min():
        return False
    least = FEW_IN_STEP if few else IN_STEP
    for period_s in np.exp(np.arange(np.log(shortest), np.log(longest), PERIODS_STEP)).tolist():
        turns = (at_s - first_s) / period_s
        in_step = abs(np.average(np.exp(2j * np.pi * turns), weights=seconds))
        if in_step < least:
            continue
        filled = len(np.unique(np.round(turns)))
        if filled >= max(PERIODS_LEAST, PERIODS_SHARE * (whole_s / period_s + 1)):
            return True
    return False

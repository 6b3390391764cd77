"""Pauses shorter than a drop, in which a GPU stood still so often that they took a share of training."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from gpu_report.analyse.signals import thresholds as th
from gpu_report.analyse.signals.gpu.utilisation_drops import Drop
from gpu_report.analyse.timeseries.gpu_series import Bools, GpuSeries
from gpu_report.analyse.timeseries.intervals import mask_in_any
from gpu_report.model import Options


def short_pauses(
    series: GpuSeries,
    trains: Bools,
    drops: Sequence[Drop],
    options: Options,
    found_with: Callable[[Options], Sequence[Drop]],
) -> list[Drop]:
    """Return the pauses of one GPU that lie beside its `drops`, none where they took little of training in all.

    `trains` says which readings are of training, `found_with` finds its drops with other options. A short search is
    only worth it where the GPU stood still that much.
    """
    if options.drop_seconds <= th.PAUSE_S:
        return []
    trained_s = float(series.weight_s[trains].sum())
    least_s = max(th.PAUSES_SHARE * trained_s, th.PAUSES_S)
    beside = trains & ~mask_in_any(series.t_s, [drop.span for drop in drops])
    if float(series.weight_s[beside & (series.util_pct < th.STILL_PCT)].sum()) < least_s:
        return []
    shorter = found_with(replace(options, drop_seconds=th.PAUSE_S))
    pauses = [each for each in shorter if each.mean_pct < th.STILL_PCT and not _overlaps(each, drops)]
    return pauses if sum(each.duration_s for each in pauses) >= least_s else []


def _overlaps(pause: Drop, drops: Sequence[Drop]) -> bool:
    starts = np.array([drop.start_t_s for drop in drops])
    ends = np.array([drop.end_t_s for drop in drops])
    return bool(((starts < pause.end_t_s) & (ends > pause.start_t_s)).any())

"""Whether a training of some seconds was long enough: by its steps, and by how alike its readings are."""

from math import sqrt
from statistics import stdev

import numpy as np

from gpu_report.analyse.busy_in_training import Busy
from gpu_report.analyse.causes.data_loading import workers_always_busy
from gpu_report.analyse.context import Context
from gpu_report.analyse.results import thresholds as th
from gpu_report.analyse.timeline.activity import outside
from gpu_report.analyse.timeline.thresholds import LEVEL_AT_LEAST_S
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.analyse.timeseries.intervals import as_array


def is_enough(context: Context, trained: Busy) -> bool:
    """Tell whether there was training enough to say how busy GPUs are in it: in seconds, else in steps and readings.

    Steps are those that callbacks counted, without the first. Where workers never rest, the queue that they filled
    before may hide that they are too slow.
    """
    if trained is None or trained[1] >= LEVEL_AT_LEAST_S:
        return trained is not None
    return context.cached(_agrees_with_itself)


def _agrees_with_itself(context: Context) -> bool:
    """Tell whether each training had steps enough, and utilisation was alike in all of it on each GPU that it used."""
    used = [series for series in context.series if series.gpu in context.activity.used_gpus]
    if not used or not context.trainings or not all(map(_has_steps, context.trainings)):
        return False
    spans = as_array(context.all_train_spans)
    errors = [_error_of_mean(series.util_pct[~outside(series, spans)].astype(float)) for series in used]
    return max(errors) <= th.LEVEL_ERROR_PP and not any(_may_lag(context, each) for each in context.trainings)


def _has_steps(training: Training) -> bool:
    epochs = training.rank_group.main.epochs if training.rank_group else ()
    steps = sum(epoch.batches for epoch in epochs) - 1
    return steps >= max(th.LEVEL_STEPS, th.LEVEL_ROUNDS * (training.workers or 0) / max(training.ranks_here, 1))


def _error_of_mean(util_pct: Floats) -> float:
    """Return the standard error of a mean (percentage points) by the means of LEVEL_BLOCKS blocks of readings."""
    if len(util_pct) < th.LEVEL_BLOCKS:
        return float("inf")
    means = [float(block.mean()) for block in np.array_split(util_pct, th.LEVEL_BLOCKS)]
    return stdev(means) / sqrt(th.LEVEL_BLOCKS)


def _may_lag(context: Context, training: Training) -> bool:
    spans = training.train_spans
    if not spans:
        return True
    return any(workers_always_busy(context.signals.of(gpu, spans[0][0], spans[-1][1])) for gpu in training.gpus)

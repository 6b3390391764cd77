"""Which share of a GPU's work lower clocks took: its own, and those of GPUs that step together with it."""

import numpy as np

from gpu_report.analyse.context import Context
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.gpu_series import Floats, GpuSeries
from gpu_report.analyse.timeseries.intervals import as_array, mask_in_any, rows_before

Lost = dict[str, Floats]


def lost_to_clocks(context: Context, series: GpuSeries) -> Lost:
    """Return by cause which share of each reading's work a clock lacked (0 to 1), where that is no mere note.

    Ranks step together: what one GPU of a training lost, the others waited for, and read as busy meanwhile.
    """
    lost = _of(context, series, series.gpu)
    for training in context.trainings:
        if training.steps_together and series.gpu in training.gpus:
            lost = _with_peers(context, series, training, lost)
    return lost


def _of(context: Context, series: GpuSeries, gpu: int) -> Lost:
    """Return what the clock of a GPU lacked, at the readings of a GPU."""
    mine = [throttle for throttle in context.throttles if throttle.gpu == gpu and throttle.severity != "info"]
    if not mine:
        return {}
    row = rows_before(context.series_of(gpu).samples["t_s"].to_numpy(dtype=float), series.t_s, "right") - 1
    return {throttle.cause: np.where(row >= 0, throttle.lost[row], 0.0) for throttle in mine}


def _with_peers(context: Context, series: GpuSeries, training: Training, own: Lost) -> Lost:
    """Return likewise of the slowest GPU at each reading, within a training whose GPUs step together."""
    each = [own, *(_of(context, series, gpu) for gpu in training.gpus if gpu != series.gpu)]
    if not any(each[1:]):
        return own
    nothing = np.zeros(len(series.t_s))
    totals = np.array([sum(lost.values(), nothing) for lost in each])
    slowest = np.argmax(totals, axis=0)
    there = mask_in_any(series.t_s, as_array(training.train_spans))
    causes = sorted({cause for lost in each for cause in lost})
    at = np.arange(len(series.t_s))
    of_slowest = {cause: np.array([lost.get(cause, nothing) for lost in each])[slowest, at] for cause in causes}
    return {cause: np.where(there, of_slowest[cause], own.get(cause, nothing)) for cause in causes}

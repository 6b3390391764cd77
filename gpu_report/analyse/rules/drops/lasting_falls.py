"""Falls of utilisation that go on, though the level of drops starts anew, and epochs that they made longer.

Less work of the same kind is no fault: mosaic closes, images get smaller. But an epoch trains the same batches, so
where epochs take longer as utilisation falls, something holds the training up.
"""

from dataclasses import replace

import numpy as np

from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.signals.gpu.utilisation_drops import Drop
from gpu_report.analyse.timeseries.gpu_series import Bools, GpuSeries, in_blocks
from gpu_report.analyse.timeseries.intervals import intersect, length_s

APART = 0.5  # of an epoch's training in a fall: where epochs differ by less of it, they tell nothing of its pace


def to_their_ends(context: Context, falls: list[Drop], seconds: float) -> list[Drop]:
    """Return falls up to where means over so many seconds of training are as before, without those that lie in others.

    What lasts for long is a level of its own for drops, and they end there.
    """
    found: list[Drop] = []
    for fall in falls:
        if not found or found[-1].gpu != fall.gpu or found[-1].end_t_s <= fall.start_t_s:
            found.append(to_its_end(context, fall, seconds))
    return found


def to_its_end(context: Context, fall: Drop, seconds: float) -> Drop:
    """Return a fall up to where means over so many seconds of training are as before: to the training's end at most."""
    means, trains = context.cached(_means, fall.gpu, seconds)
    whole = means.weight_s[:] >= seconds / 2  # of seconds beside a validation nothing is a level
    later = np.flatnonzero(trains & whole & (means.t_s >= fall.end_t_s))
    back = means.util_pct[later] >= (fall.level_pct + fall.mean_pct) / 2
    back[:-1] &= back[1:]  # one mean alone is no level
    low = later[: int(np.argmax(back))] if back.any() else later
    end_s = max(fall.end_t_s, *(means.t_s[low[-1:]] + means.weight_s[low[-1:]]).tolist(), 0.0)
    held_s = means.weight_s * (trains & (means.t_s >= fall.start_t_s) & (means.t_s < end_s))
    if end_s == fall.end_t_s or not held_s.any():
        return fall
    return replace(fall, end_t_s=end_s, mean_pct=float(np.average(means.util_pct, weights=held_s)))


def _means(context: Context, gpu: int, seconds: float) -> tuple[GpuSeries, Bools]:
    """Return means of a GPU over so many seconds, and which of them are of training."""
    series = context.series_of(gpu)
    means, (trains,) = in_blocks(series, seconds, context.trains[context.series.index(series)])
    return means, trains


def made_epochs_longer(context: Context, fall: Drop) -> bool:
    """Tell whether epochs took longer by a fall, by half of what it would make of the same batches.

    Each epoch trains as many: what of its time lay in the fall, and what did not, give the pace in either (by least
    squares). One that was cut is left out.
    """
    seconds = []
    for end, parts in zip(context.epoch_ends.all, context.epoch_phases, strict=True):
        trained = [phase.span for phase in parts if phase.name == "train"]
        held_s = length_s(intersect(trained, [fall.span]))
        if trained and not end.partial:
            seconds.append((length_s(trained) - held_s, held_s))
    times = np.array(seconds).reshape(-1, 2)
    shares = times[:, 1] / times.sum(axis=1)
    if not len(shares) or np.ptp(shares) < APART:
        return False
    before, within = np.linalg.lstsq(times, np.ones(len(times)), rcond=None)[0].tolist()
    longer = fall.level_pct / max(fall.mean_pct, 1.0) - 1
    return bool(within > 0 and before / within >= 1 + th.EXPLAINED_SHARE * longer)

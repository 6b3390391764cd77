"""The figures of epochs, at the epoch's number as the step."""

import math
from collections.abc import Iterator, Sequence
from statistics import fmean

from gpu_report.model import EpochSummary
from gpu_report.render.quantity_labels import EPOCH_QUANTITIES, EPOCH_READINGS
from gpu_report.render.tensorboard.parts import MOST_POINTS

Point = tuple[float, int, dict[str, float]]  # seconds of the run, step, value by tag

_NAMES = tuple(each.name for each in (*EPOCH_QUANTITIES, *EPOCH_READINGS))


def epoch_points(epochs: Sequence[EpochSummary]) -> Iterator[Point]:
    """Yield for each epoch its end, its number and its figures, in order of time.

    Of more than MOST_POINTS epochs each point is the mean of some that follow each other, at the last one's number. An
    epoch that was trained again has the figures of its last attempt. Each YOLO run after the first has tags of its own.
    """
    latest = {(each.run, each.epoch): each for each in epochs}
    first = min((run for run, _ in latest), default=1)
    for run in sorted({run for run, _ in latest}):
        group = "epoch" if run == first else f"epoch_run{run}"
        mine = sorted((each for each in latest.values() if each.run == run), key=lambda each: each.epoch)
        size = math.ceil(len(mine) / MOST_POINTS)
        for at in range(0, len(mine), size):
            some = mine[at : at + size]
            yield some[-1].end_t_s, some[-1].epoch, _means(group, some)


def _means(group: str, epochs: Sequence[EpochSummary]) -> dict[str, float]:
    """Return the mean of each figure that is known of some epochs, by its tag."""
    found = {}
    for name in ("duration_s", *_NAMES):
        values = [value for each in epochs if (value := getattr(each, name)) is not None and math.isfinite(value)]
        if values:
            found[f"{group}/{name}"] = fmean(values)
    return found

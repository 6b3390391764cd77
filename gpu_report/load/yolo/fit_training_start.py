"""Where training started, when nothing tells: slide the epochs over the samples until the dips fall on their ends.

At the end of an epoch YOLO validates, writes the row, and saves a checkpoint; the GPU rests for one to a few
seconds. The best start is the one with the greatest contrast between the seconds around the rows and those beside.
Measured on the five labelled H200 runs with one-second readings: error 0.0 to 0.4 s on four; on `starved`, whose
utilisation of 8 % has no dips, 4.8 s, which the stated uncertainty of 6.4 s covers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]

GIVE_TRAIN_START = "import again with --train-start TIME"  # `render` has no such option

GRID_S = 0.1  # resolution of the search; finer than any reading
# The dip around a row: readings trail what they report by up to a sampling period, so it lies later than the row.
DIP_S = (-0.6, 0.9)
AROUND_S = (2.0, 4.5)  # the seconds before and after it that belong to training
# Below this contrast in percentage points the dips are not to be told from noise (starved: 22; the others: 28 to 53).
CLEAR_CONTRAST_PCT = 25.0
RIVAL_DISTANCE_S = 2.5  # a second-best start further away than this is another answer, not the same one
LONGEST_RUN_S = 14 * 86400.0  # beyond it the grid no longer fits into memory next to the samples
MAX_SEARCH = 200_000  # candidate starts: a day at GRID_S would be more precise than a fit can be


@dataclass(frozen=True)
class TrainingStartFit:
    """Where training started (seconds from the run's start), how sure that is, and what to tell the reader."""

    train_start_t_s: float
    uncertainty_s: float
    note: str


def fit_train_start(times: Sequence[float], samples: pd.DataFrame) -> TrainingStartFit | None:
    """Return the start under which the rows at `times` (seconds after it) fit the dips best, None if none does."""
    if samples.empty:
        return None
    end = float(samples["t_s"].max())
    slack = end - times[-1]
    if slack < 0 or end > LONGEST_RUN_S:
        return None
    step = max(GRID_S, slack / MAX_SEARCH)
    starts = np.arange(0.0, slack + step / 2, step)
    scores = [_contrast(starts, np.asarray(times), rows, end) for _, rows in samples.groupby("gpu")]
    best = max(scores, key=lambda score: float(np.nanmax(score)))
    return _judge(starts, best)


def _judge(starts: Floats, contrast: Floats) -> TrainingStartFit:
    top = int(np.nanargmax(contrast))
    far = np.abs(starts - starts[top]) > RIVAL_DISTANCE_S
    rival = float(abs(starts[far][np.nanargmax(contrast[far])] - starts[top])) if far.any() else 0.0
    start = float(starts[top])
    if contrast[top] >= CLEAR_CONTRAST_PCT:
        note = (
            f"epochs were fitted to the dips in utilisation (contrast {contrast[top]:.0f} points, good to about 0.5 s)"
        )
        return TrainingStartFit(start, 0.5, note)
    note = (
        f"epochs were fitted to the samples, which show no clear dips: they may be off by {rival:.0f} s; "
        f"{GIVE_TRAIN_START}"
    )
    return TrainingStartFit(start, max(rival, 0.5), note)


def _contrast(starts: Floats, times: Floats, rows: pd.DataFrame, end: float) -> Floats:
    """Return, for each candidate start, how much lower utilisation is at the rows than beside them, in points."""
    total = _cumulative(rows, end)
    score = np.zeros(len(starts))
    for time in times:
        row = starts + time
        around = _mean(total, row + AROUND_S[0], row + AROUND_S[1]) + _mean(total, row - AROUND_S[1], row - AROUND_S[0])
        score += around / 2 - _mean(total, row + DIP_S[0], row + DIP_S[1])
    return score / len(times)


def _cumulative(rows: pd.DataFrame, end: float) -> Floats:
    """Return the running integral of utilisation on the grid; a reading stands for the time before it."""
    known = rows.dropna(subset="gpu_util_pct")
    grid = np.arange(0.0, end + GRID_S, GRID_S)
    if not len(known):
        return np.zeros(len(grid) + 1)
    at = np.clip(np.searchsorted(known["t_s"].to_numpy(), grid), 0, len(known) - 1)
    return np.concatenate([[0.0], np.cumsum(known["gpu_util_pct"].to_numpy()[at]) * GRID_S])


def _mean(total: Floats, start: Floats, stop: Floats) -> Floats:
    first = np.clip(np.round(start / GRID_S).astype(int), 0, len(total) - 1)
    last = np.clip(np.round(stop / GRID_S).astype(int), 0, len(total) - 1)
    mean: Floats = (total[last] - total[first]) / np.maximum((last - first) * GRID_S, GRID_S)
    return mean

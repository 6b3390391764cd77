"""How far the readings of an imported log are from those of another of the same minutes."""

import numpy as np


def nearest_differences(one, other, name, gpu=0, within_s=1.0):
    """Return the differences of a quantity's readings, each with the one of `other` that is nearest in time."""
    times, values = _readings(one, name, gpu)
    other_times, other_values = _readings(other, name, gpu)
    nearest = np.abs(times[:, None] - other_times[None, :]).argmin(axis=1)
    close = np.abs(times - other_times[nearest]) <= within_s
    return values[close] - other_values[nearest[close]]


def mean_over(run, name, span, gpu=0):
    """Return the mean of a quantity's readings between two moments (wall, s)."""
    times, values = _readings(run, name, gpu)
    return values[(times >= span[0]) & (times <= span[1])].mean()


def span_of(run):
    """When the first and the last row are of (wall, s)."""
    return float(run.rows[0]["wall_s"]), float(run.rows[-1]["wall_s"])


def _readings(run, name, gpu):
    pairs = [(float(row["wall_s"]), float(row[name])) for row in run.rows if row["gpu"] == str(gpu) and row[name]]
    return np.array(pairs).T

"""What comes again after the same time: something by the clock, which has nothing to do with epochs."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from gpu_report.analyse.timeseries import thresholds as th


def period_s(starts_s: Sequence[float]) -> float | None:
    """Return after how long (s, median) something began again, None where it was not as long each time.

    What comes each few minutes may keep to epochs, or to anything.
    """
    apart_s = [later - before for before, later in pairwise(sorted(starts_s))]
    if len(apart_s) < th.RHYTHM_TURNS or median(apart_s) < th.RHYTHM_LEAST_S:
        return None
    middle_s = median(apart_s)
    return middle_s if all(abs(each - middle_s) <= th.RHYTHM_SLACK * middle_s for each in apart_s) else None

"""Values that stand out from the rest, whatever the rest is: by median and median absolute deviation."""

import numpy as np

from gpu_report.analyse.timeseries import thresholds as th
from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.analyse.timeseries.intervals import Indices

MAD_TO_SIGMA = 1.4826  # of normally distributed values: standard deviation over median absolute deviation


def tolerance(values: Floats, at_least: float, share: float) -> tuple[float, float]:
    """Return the median of values, and how far from it none stands out.

    That is the most of `at_least` (in their unit), a share of the median, and OUTLIER_Z robust standard deviations.
    """
    typical = float(np.median(values))
    sigma = MAD_TO_SIGMA * float(np.median(np.abs(values - typical)))
    return typical, max(at_least, share * abs(typical), th.OUTLIER_Z * sigma)


def high_outliers(values: Floats, at_least: float, share: float) -> Indices:
    """Return the places of values far above the rest; of fewer than OUTLIER_SIBLINGS none is."""
    if len(values) < th.OUTLIER_SIBLINGS:
        return np.empty(0, dtype=np.intp)
    typical, far = tolerance(values, at_least, share)
    return np.flatnonzero(values > typical + far)

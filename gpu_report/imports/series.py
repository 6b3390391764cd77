"""From series of readings, one a GPU and quantity, to rows."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from gpu_report.imports.fields import failures
from gpu_report.imports.readings import Device, Floats, Readings
from gpu_report.ordinary_file import MOST_GPUS

Series = tuple[Floats, Floats]  # stamps in seconds and values, of one length


def readings_of(series: Mapping[tuple[int, str], Series], devices: Mapping[int, Device] | None = None) -> Readings:
    """Return the rows of series by GPU and column of samples.csv: one a moment at which any of a GPU's has a reading.

    Of more than MOST_GPUS, which no machine has, those with the lowest numbers are taken.
    """
    gpus = sorted({gpu for gpu, _ in series})[:MOST_GPUS]
    columns = sorted({column for _, column in series})
    moments = {gpu: _moments([stamps for (of, _), (stamps, _) in series.items() if of == gpu]) for gpu in gpus}
    rows = np.concatenate([np.zeros(0, dtype=np.int64), *(np.full(len(moments[gpu]), gpu) for gpu in gpus)])
    quantities = {
        column: np.concatenate([np.zeros(0), *(_placed(moments[gpu], series.get((gpu, column))) for gpu in gpus)])
        for column in columns
    }
    stamp_s = np.concatenate([np.zeros(0), *(moments[gpu] for gpu in gpus)])
    return Readings(stamp_s, rows, quantities, failures(quantities, rows), devices or {})


def host_of(series: Mapping[str, Series]) -> pd.DataFrame | None:
    """Return rows of host.csv from series by its columns, None where there are none."""
    if not series:
        return None
    moments = _moments([stamps for stamps, _ in series.values()])
    return pd.DataFrame({"stamp_s": moments, **{name: _placed(moments, each) for name, each in series.items()}})


def _moments(stamps: list[Floats]) -> Floats:
    together = np.concatenate([np.zeros(0), *stamps])
    return np.unique(together[np.isfinite(together)])


def _placed(moments: Floats, series: Series | None) -> Floats:
    """Return a series' values at moments, NaN where it has none; of two of one moment the later one."""
    placed = np.full(len(moments), np.nan)
    if series is not None and len(moments):
        stamps, values = series
        known = np.isfinite(stamps)
        placed[np.searchsorted(moments, stamps[known])] = values[known]
    return placed

"""What the timeline of a long run is drawn from at first: all of it from afar, while its columns are being unpacked.

Of each long line the lowest and the highest reading of as many parts of the run as a wide page has pixels. All readings
are in the page as well; once they are unpacked, the timeline is drawn from them.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gpu_report.model import Run
from gpu_report.render.quantity_labels import LANES, Quantity, gpu_quantities, host_quantities
from gpu_report.render.samples.column_codec import PackedColumn, Scale, pack_column
from gpu_report.render.samples.quantity_series import QuantitySeries, quantity_series

Floats = NDArray[np.float64]

LONG_LINE = 20_000  # readings; to unpack fewer of each of a few lines takes a browser less than a tenth of a second
BUCKETS = 1400  # one for each pixel of the timeline on a wide page
MANY_GPUS = 4  # more are drawn from the lowest and highest of two pixels (js/traces.js), so half as many will do
LEAST_IN_BUCKET = 4  # readings on average; in fewer, one that came late would leave a bucket empty and break the line


def gpu_overview(run: Run, gpu: int, edges: Floats) -> tuple[PackedColumn, ...]:
    """Return the packed overview of each long line of a GPU: lowest and highest of each part (`edges_of`)."""
    drawn = _drawn("gpu", gpu_quantities(), run.samples)
    lines = ((quantity, quantity_series(run, gpu, quantity.name)) for quantity in drawn)
    return tuple(column for quantity, track in lines for column in _packed(quantity, track, edges))


def host_overview(run: Run, edges: Floats) -> tuple[PackedColumn, ...]:
    """Return the packed overview of each long line of the host, as `gpu_overview`."""
    t_s = run.host["t_s"].to_numpy(dtype=float)
    drawn = _drawn("host", host_quantities(), run.host)
    lines = ((quantity, QuantitySeries(t_s, run.host[quantity.name].to_numpy(dtype=float))) for quantity in drawn)
    return tuple(column for quantity, track in lines for column in _packed(quantity, track, edges))


def span_s(run: Run) -> tuple[float, float]:
    """Return when the first and the last sample were taken, s since the start; 0 and 0 without any."""
    times = run.samples["t_s"].to_numpy(dtype=float)
    return (float(times.min()), float(times.max())) if len(times) else (0.0, 0.0)


def envelope(track: QuantitySeries, edges: Floats) -> Floats:
    """Return the lowest and the highest reading of each bucket in turn, NaN where it has none."""
    first = np.searchsorted(track.t_s, edges)
    values, begins, some = np.append(track.values, np.nan), first[:-1], first[1:] > first[:-1]
    ends = (np.where(some, reduce.reduceat(values, begins), np.nan) for reduce in (np.fmin, np.fmax))
    return np.column_stack(list(ends)).ravel()


def edges_of(run: Run) -> Floats:
    """Return the edges of the equal parts of `span_s` that an overview has, s since the start."""
    start, end = span_s(run)
    buckets = BUCKETS // 2 if run.samples["gpu"].nunique() > MANY_GPUS else BUCKETS
    return np.linspace(start, np.nextafter(end, np.inf), buckets + 1)


def _drawn(kind: str, quantities: Iterable[Quantity], table: pd.DataFrame) -> list[Quantity]:
    drawn = {name for lane in LANES if lane.kind == kind for name in lane.drawn}
    return [quantity for quantity in quantities if quantity.name in drawn and quantity.name in table]


def _packed(quantity: Quantity, track: QuantitySeries, edges: Floats) -> list[PackedColumn]:
    known = int(np.isfinite(track.values).sum())
    if known < max(LONG_LINE, LEAST_IN_BUCKET * len(edges)):
        return []
    scale = Scale(quantity.decimals, quantity.digits)
    return [pack_column(quantity.name, envelope(track, edges), scale)]

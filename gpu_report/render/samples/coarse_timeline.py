"""What the timeline of a long run is drawn from at first: all of it from afar, while its columns are being unpacked.

Of each long line the lowest and the highest reading of as many parts of the run as a wide page has pixels, of a heat
strip's rows the mean. All readings are in the page as well; once they are unpacked, the timeline is drawn from them.
"""

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gpu_report.model import Run
from gpu_report.render.quantity_labels import Quantity, gpu_quantities, host_quantities, lanes
from gpu_report.render.samples.column_codec import PackedColumn, Scale, pack_column
from gpu_report.render.samples.quantity_series import QuantitySeries, gpu_indexes, quantity_series

Floats = NDArray[np.float64]
Summary = Callable[[QuantitySeries, Floats], Floats]  # of the buckets between some edges

LONG_LINE = 20_000  # readings; to unpack fewer of each of a few lines takes a browser less than a tenth of a second
BUCKETS = 1400  # one for each pixel of the timeline on a wide page
MANY_GPUS = 4  # more are drawn from the lowest and highest of two pixels (js/traces.js), so half as many will do
LEAST_IN_BUCKET = 4  # readings on average; in fewer, one that came late would leave a bucket empty and break the line


def gpu_overview(run: Run, gpu: int, edges: Floats) -> tuple[PackedColumn, ...]:
    """Return the packed overview of each long line of a GPU: of each part (`edges_of`) what is drawn of it."""
    drawn = _drawn("gpu", gpu_quantities(), run.samples, len(gpu_indexes(run)))
    lines = ((quantity, quantity_series(run, gpu, quantity.name), summary) for quantity, summary in drawn)
    return tuple(column for line in lines for column in _packed(*line, edges))


def host_overview(run: Run, edges: Floats) -> tuple[PackedColumn, ...]:
    """Return the packed overview of each long line of the host, as `gpu_overview`."""
    t_s = run.host["t_s"].to_numpy(dtype=float)
    drawn = _drawn("host", host_quantities(), run.host)
    lines = (
        (quantity, QuantitySeries(t_s, run.host[quantity.name].to_numpy(dtype=float)), summary)
        for quantity, summary in drawn
    )
    return tuple(column for line in lines for column in _packed(*line, edges))


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


def means(track: QuantitySeries, edges: Floats) -> Floats:
    """Return the mean of the readings of each half of a bucket, as many values as `envelope`; NaN where it has none."""
    return track.means(np.linspace(edges[0], edges[-1], 2 * len(edges) - 1))


def edges_of(run: Run) -> Floats:
    """Return the edges of the equal parts of `span_s` that an overview has, s since the start."""
    start, end = span_s(run)
    buckets = BUCKETS // 2 if run.samples["gpu"].nunique() > MANY_GPUS else BUCKETS
    return np.linspace(start, np.nextafter(end, np.inf), buckets + 1)


def _drawn(
    kind: str, quantities: Iterable[Quantity], table: pd.DataFrame, gpus: int = 0
) -> list[tuple[Quantity, Summary]]:
    """Return the quantities that lanes show, each with what is drawn of its buckets."""
    drawn = {name: means if lane.heat else envelope for lane in lanes(gpus) if lane.kind == kind for name in lane.drawn}
    shown = (quantity for quantity in quantities if quantity.name in drawn and quantity.name in table)
    return [(quantity, drawn[quantity.name]) for quantity in shown]


def _packed(quantity: Quantity, track: QuantitySeries, summary: Summary, edges: Floats) -> list[PackedColumn]:
    known = int(np.isfinite(track.values).sum())
    if known < max(LONG_LINE, LEAST_IN_BUCKET * len(edges)):
        return []
    scale = Scale(quantity.decimals, quantity.digits)
    return [pack_column(quantity.name, summary(track, edges), scale)]

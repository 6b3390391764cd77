"""Latency against throughput: where each variant stands, on logarithmic scales, in percent of the chart."""

import math
from collections.abc import Sequence

from gpu_report.model import BenchResult, BenchRow, LatencyLimit
from gpu_report.render.bench.rows import MEDIAN, P95, images_per_s, limit_words, measured, milliseconds
from gpu_report.render.bench.view import VariantChart, VariantDot

STEPS = ((1, 2, 5), (1, 1.5, 2, 3, 4, 5, 7), (1, 1.1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 5, 6, 7, 8, 9))
TICKS_AT_LEAST = 3  # of an axis: else it is labelled with the next finer of STEPS, within each decade
MARGIN = 1.15  # by which the axes reach further than the outermost dots, as a factor
COLOURS = 8  # of models; a ninth has the first one's again


def chart(result: BenchResult) -> VariantChart | None:
    """Return the chart of all variants that were measured; None without any.

    The latency is that of the limit, else p95; where any variant made too few calls for it, the median.
    """
    rows = measured(result)
    asked = result.limit or P95
    axis = asked if all(asked.quantile(row).value_ms is not None for _, row in rows) else MEDIAN
    known = [(number, row) for number, row in rows if axis.quantile(row).value_ms and row.images_per_s]
    if not known:
        return None
    models = list(dict.fromkeys(row.variant.short for _, row in known))
    x = _LogAxis([end for _, row in known for end in _ends(row, axis)] + ([axis.ms] if axis.ms else []))
    y = _LogAxis([row.images_per_s.value for _, row in known if row.images_per_s])
    chosen = None if result.choice is None else result.rows[result.choice]
    dots = (_dot(number, row, axis, (x, y), models, is_chosen=row is chosen) for number, row in known)
    return VariantChart(
        x_label=f"Latency of a call ({axis.of})",
        dots=tuple(sorted(dots, key=lambda dot: dot.chosen)),  # over all others
        x_ticks=tuple((x.place(value), f"{value:,g} ms") for value in x.ticks),
        y_ticks=tuple((100 - y.place(value), f"{value:,g}") for value in y.ticks),
        limit=x.place(axis.ms) if axis.ms else None,
        limit_words=limit_words(axis) if axis.ms else "",
        models=tuple(models),
        has_half=any(row.variant.half for _, row in known),
    )


class _LogAxis:
    """A logarithmic axis that holds some values."""

    def __init__(self, values: Sequence[float]) -> None:
        self._low = math.log(min(values) / MARGIN)
        self._high = math.log(max(values) * MARGIN)

    def place(self, value: float) -> float:
        return round(100 * (math.log(value) - self._low) / (self._high - self._low), 2)

    @property
    def ticks(self) -> list[float]:
        """Return round numbers on the axis."""
        found = [self._within(steps) for steps in STEPS]
        return next((ticks for ticks in found if len(ticks) >= TICKS_AT_LEAST), found[-1])

    def _within(self, steps: Sequence[float]) -> list[float]:
        first, last = (math.floor(end / math.log(10)) for end in (self._low, self._high))
        every = [step * 10.0**power for power in range(first, last + 1) for step in steps]
        return [value for value in every if self._low <= math.log(value) <= self._high]


def _ends(row: BenchRow, axis: LatencyLimit) -> tuple[float, ...]:
    quantile = axis.quantile(row)
    ends = (quantile.value_ms, quantile.low_ms, quantile.high_ms)
    return tuple(end for end in ends if end is not None and end > 0)


def _dot(  # noqa: PLR0913 - what a dot is made of
    number: int,
    row: BenchRow,
    axis: LatencyLimit,
    scales: tuple[_LogAxis, _LogAxis],
    models: Sequence[str],
    *,
    is_chosen: bool,
) -> VariantDot:
    x, y = scales
    rate = row.images_per_s.value if row.images_per_s else 1.0
    places = [x.place(end) for end in _ends(row, axis)]
    return VariantDot(
        number=str(number),
        x=places[0],
        y=100 - y.place(rate),
        low=min(places),
        high=max(places),
        colour=models.index(row.variant.short) % COLOURS,
        hollow=row.variant.half,
        chosen=is_chosen,
        title=f"{row.variant.name}: {images_per_s(row)}, {axis.of} {milliseconds(axis.quantile(row).value_ms)}",
    )

"""Latency over time, and beside it as a distribution: drawn without a script, read off exactly by latency.js.

However many calls there are, a stroke stands for all of one bucket of time, from its shortest call to its longest. A
bucket of one call is a dot. A chart of a million calls is as large as one of a thousand, some 20 kB.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpu_report.render.page.views.inference import LatencyBin, LatencyChartView
from gpu_report.render.samples.column_codec import Scale
from gpu_report.render.samples.columns import pack_table
from gpu_report.render.served_words import MS, milliseconds
from gpu_report.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpu_report.model import ServedModel
    from gpu_report.render.run_clock import WallClock
    from gpu_report.render.samples.columns import Blob

Floats = NDArray[np.float64]
Json = dict[str, Any]

SIZE = 1000  # of the chart's width and height in its own units, and how many buckets of time it has
SHOWS_ALL = 0.5  # of a run: where calls lie in less of it, the chart shows them without the rest, which is empty
LEAST_SHOWN_S = 1.0
WINDOWS = 125  # steps of the line of medians at most ...
CALLS_A_WINDOW = 20  # ... each of so many calls on average: the median of fewer jumps about
WORST = 5  # calls marked
SPARSE = 300  # buckets with calls, under which there is room to draw each larger
BINS = 40
MARGIN = 1.04  # the axis reaches so much beyond the shortest and the longest call
LEAST_SPAN = 1.2  # longest over shortest: less would blow noise up
LEAST_BAR = 1.2  # of 100: what is not nothing shows
MOST_TICKS = 6
KEPT = Scale(3, 4)  # milliseconds: four digits tell calls apart


@dataclass(frozen=True, eq=False)
class Buckets:
    """The calls of each bucket of time that has any: how many, and the shortest, median and longest, in ms."""

    place: NDArray[np.int64]
    count: NDArray[np.int64]
    low_ms: Floats
    median_ms: Floats
    high_ms: Floats


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis of latency, from its lower end to its upper one, in ms."""

    low_ms: float
    high_ms: float

    def y(self, ms: Floats) -> Floats:
        """Return where latencies lie, from above."""
        share: Floats = np.log(ms / self.low_ms) / math.log(self.high_ms / self.low_ms)
        return SIZE * (1 - share)

    def of(self, ms: float) -> float:
        """Return where one latency lies."""
        return float(self.y(np.array([ms]))[0])


def chart(served: ServedModel, duration_s: float, clock: WallClock) -> LatencyChartView | None:
    """Return the chart of the calls after warming up, on the time of `shown_s`; None without any."""
    start_s, total_ms = _steady(served)
    if not len(start_s) or duration_s <= 0:
        return None
    begin_s, duration_s = shown_s(served, duration_s)
    start_s = start_s - begin_s
    axis, found = _axis(total_ms), bucketed(start_s, total_ms, duration_s, SIZE)
    worst = slowest(total_ms)
    return LatencyChartView(
        label=_label(served, total_ms),
        ranges=_ranges(found, axis),
        sparse=len(found.place) < SPARSE,
        medians=_medians(start_s, total_ms, duration_s, axis),
        worst="".join(
            f"M{x:.0f},{y:.0f}h0"
            for x, y in zip(SIZE * start_s[worst] / duration_s, axis.y(total_ms[worst]), strict=True)
        ),
        warm_up=_warm_up(served, begin_s, duration_s),
        ticks=tuple((round(axis.of(ms) / SIZE * 100, 1), _tick_words(ms)) for ms in ticks(axis)),
        bins=tuple(_bins(total_ms, axis)),
        quantiles=tuple(_quantiles(served, axis)),
        start=clock.moment(begin_s),
        middle=clock.moment(begin_s + duration_s / 2),
        end=clock.moment(begin_s + duration_s),
    )


def shown_s(served: ServedModel, duration_s: float) -> tuple[float, float]:
    """Return from when on (s) the chart shows calls, and for how long: the whole run, unless most of it had none."""
    first, last = float(served.calls.start_s[0]), min(float(served.calls.end_s[-1]), duration_s)
    if last - first >= SHOWS_ALL * duration_s:
        return 0.0, duration_s
    length_s = min(max(last - first, LEAST_SHOWN_S), duration_s)
    return max(min(first, duration_s - length_s), 0.0), length_s


def latency_data(served: ServedModel, duration_s: float, blob: Blob) -> list[Json]:
    """Return where the columns lie in `blob` that the chart is read off from, none where there is no chart."""
    start_s, total_ms = _steady(served)
    if not len(start_s):
        return []
    begin_s, length_s = shown_s(served, duration_s)
    found = bucketed(start_s - begin_s, total_ms, length_s, SIZE)
    return blob.put(
        pack_table(
            {
                "place": (found.place.tolist(), Scale(0)),
                "count": (found.count.tolist(), Scale(0)),
                **{name: (getattr(found, name).tolist(), KEPT) for name in ("low_ms", "median_ms", "high_ms")},
            }
        )
    )


def bucketed(start_s: Floats, total_ms: Floats, duration_s: float, count: int) -> Buckets:
    """Return calls, in order of their beginnings, by so many buckets of time of equal length."""
    place = np.clip((start_s / max(duration_s, 1e-9) * count).astype(np.int64), 0, count - 1)
    first = np.flatnonzero(np.diff(place, prepend=-1))
    ordered = [np.sort(own) for own in np.split(total_ms, first[1:])]
    return Buckets(
        place[first],
        np.array([len(own) for own in ordered]),
        np.array([own[0] for own in ordered]),
        np.array([(own[(len(own) - 1) // 2] + own[len(own) // 2]) / 2 for own in ordered]),
        np.array([own[-1] for own in ordered]),
    )


def slowest(total_ms: Floats) -> NDArray[np.intp]:
    """Return the places of the slowest calls, the slowest first."""
    beyond = np.argpartition(-total_ms, min(WORST, len(total_ms) - 1))[:WORST]
    return beyond[np.argsort(-total_ms[beyond], kind="stable")]


def ticks(axis: Axis) -> list[float]:
    """Return round latencies on the axis: 1, 2 and 5 of each decade, or within less than that equal steps."""
    decades = range(math.floor(math.log10(axis.low_ms)), math.ceil(math.log10(axis.high_ms)) + 1)
    for digits in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        found = [digit * 10.0**power for power in decades for digit in digits]
        inside = [ms for ms in found if axis.low_ms <= ms <= axis.high_ms]
        if len(inside) > 2:
            return inside[:: -(-len(inside) // MOST_TICKS)]
    step = _round_step((axis.high_ms - axis.low_ms) / (MOST_TICKS - 1))
    return [n * step for n in range(math.ceil(axis.low_ms / step), math.floor(axis.high_ms / step) + 1)]


def _tick_words(ms: float) -> str:
    return f"{ms:g}\u00a0ms" if ms < MS else f"{ms / MS:g}\u00a0s"


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= least)


def _steady(served: ServedModel) -> tuple[Floats, Floats]:
    """Return the beginnings (s) and lengths (ms) of the calls after warming up."""
    calls, first = served.calls, served.warm_up_calls
    total_ms = calls.total_ms[first:].astype(np.float64)
    usable = np.isfinite(total_ms) & (total_ms > 0) & (calls.start_s[first:] >= 0)
    return calls.start_s[first:].astype(np.float64)[usable], total_ms[usable]


def _axis(total_ms: Floats) -> Axis:
    low, high = float(total_ms.min()), float(total_ms.max())
    wider = max(math.sqrt(LEAST_SPAN / (high / low)), 1.0) * MARGIN
    return Axis(low / wider, high * wider)


def _ranges(found: Buckets, axis: Axis) -> str:
    top, bottom = (np.rint(axis.y(ms)).astype(int) for ms in (found.high_ms, found.low_ms))
    strokes = zip(found.place.tolist(), top.tolist(), bottom.tolist(), strict=True)
    return "".join(f"M{x},{y}" + (f"V{end}" if end > y else "h0") for x, y, end in strokes)


def _medians(start_s: Floats, total_ms: Floats, duration_s: float, axis: Axis) -> str:
    """Return the median over time as a line in steps, which breaks where a window has too few calls."""
    span_s, windows = float(start_s[-1] - start_s[0]), min(len(start_s) // CALLS_A_WINDOW, WINDOWS)
    if windows < 2 or span_s <= 0:
        return ""
    found = bucketed(start_s - start_s[0], total_ms, span_s, windows)
    left, step = SIZE * float(start_s[0]) / duration_s, SIZE * span_s / duration_s / windows
    path, before = [], -2
    for place, count, y in zip(found.place.tolist(), found.count.tolist(), axis.y(found.median_ms), strict=True):
        if count >= CALLS_A_WINDOW // 4:
            joined = "L" if place == before + 1 else "M"
            path.append(f"{joined}{left + step * place:.1f},{y:.0f}H{left + step * (place + 1):.1f}")
            before = place
    return "".join(path)


def _warm_up(served: ServedModel, begin_s: float, duration_s: float) -> tuple[float, float] | None:
    """Return where the calls of warming up lie, and how wide that is."""
    if not served.warm_up_calls:
        return None
    first = float(served.calls.start_s[0]) - begin_s
    last = float(served.calls.end_s[served.warm_up_calls - 1]) - begin_s
    return round(SIZE * first / duration_s, 1), round(max(SIZE * (last - first) / duration_s, 1.0), 1)


def _bins(total_ms: Floats, axis: Axis) -> Iterator[LatencyBin]:
    edges = np.geomspace(axis.low_ms, axis.high_ms, BINS + 1)
    counts, _ = np.histogram(total_ms, edges)
    most, height = int(counts.max()), SIZE / BINS
    for number, count in enumerate(counts.tolist()):
        if count:
            words = f"{milliseconds(edges[number])} to {milliseconds(edges[number + 1])}: {counted(count, 'call')}"
            width = max(100 * count / most, LEAST_BAR)
            yield LatencyBin(round(SIZE - (number + 1) * height, 1), round(width, 1), words)


def _quantiles(served: ServedModel, axis: Axis) -> Iterator[tuple[str, float]]:
    for name in ("p50", "p95", "p99"):
        value = getattr(served.latency, name).value_ms
        if value is not None:
            yield name, round(axis.of(value), 1)


def _label(served: ServedModel, total_ms: Floats) -> str:
    ends = f"{milliseconds(float(total_ms.min()))} to {milliseconds(float(total_ms.max()))}"
    median = milliseconds(served.latency.p50.value_ms if served.latency.p50.value_ms else float(np.median(total_ms)))
    return f"Latency of {counted(len(total_ms), 'call')} over time: {ends}, median {median}"

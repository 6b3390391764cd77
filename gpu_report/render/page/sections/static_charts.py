"""Small charts that need no script and stand on paper: the surroundings of a finding, and each GPU's run as a strip."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gpu_report.catalogue import RULES
from gpu_report.local_interval import local_intervals_s
from gpu_report.median import median_of
from gpu_report.model import Analysis, Finding
from gpu_report.render.formatting import gibibytes, quantity
from gpu_report.render.page.views.findings import ChartLine, ChartView
from gpu_report.render.page.views.report import HeatCell
from gpu_report.render.quantity_labels import HEAT_GPUS, label, unit_of
from gpu_report.render.run_clock import WallClock
from gpu_report.render.samples.quantity_series import OF_HOST, UTILISATION, QuantitySeries
from gpu_report.wording import lower_first

Floats = NDArray[np.float64]

WIDTH = 1000  # of a chart, in its own units, which are about a pixel each: points lie on whole ones
CONTEXT_LENGTHS = 1.5  # how many lengths of a finding are shown on either side of it, as by the timeline
LEAST_CONTEXT_S = 15.0
# The edges of what is shown lie on whole steps, but at the run's end: what befell several GPUs at once is drawn from
# the same lines then. Steps are ten times as long where more than MOST_STEPS would lie on either side of a finding.
CONTEXT_STEP_S = 5.0
MOST_STEPS = 30
SHOWN_TOGETHER = 12  # times that something happened: of more only the longest is shown, for bands would be hairs
LEAST_BAND = 2.0  # of a chart's width: what is shorter is a line
MOST_POINTS = 1200  # of a line up to which every sample is drawn; beyond, mean, lowest and highest of each bucket
BUCKETS = 300  # of such a line: about three pixels each
LEAST_SEEN = 5.0  # of a chart's width: where no time that something happened is wider, the longest is shown alone
GAP_TICKS = 3.5  # readings further apart than this many ticks or median steps are not joined
WITHOUT_MOMENT = frozenset({"environment", "left-behind"})  # rules whose findings no moment of the run shows
STEPS_IN_BUCKET = 2.0  # of many GPUs' readings at least: each has some then, and a late one leaves no gap
STRIP_CELLS = 200
HEAT_LEVELS = 5

Line = tuple[str, str]  # the SVG paths of a line and of its band (`ChartLine`)
PathOf = Callable[[QuantitySeries, float, float, float], Line]


def subject(finding: Finding) -> str:
    """Return the quantity that a finding is about, which its chart shows."""
    return RULES[finding.rule].subject


def paths() -> PathOf:
    """Return what draws paths, each once: what befell several GPUs at once is drawn from the same lines."""
    return cache(_path)


def surroundings(
    finding: Finding,
    analysis: Analysis,
    by_gpu: Mapping[int, QuantitySeries],
    clock: WallClock,
    path: PathOf | None = None,
) -> ChartView | None:
    """Return a quantity in and around a finding, its own GPUs' lines last and thus on top; None without samples."""
    finding = _shown(finding, analysis.run.duration_s)
    name, top, top_words = _measure(subject(finding), by_gpu)
    frame = _ChartBounds(*_window(finding, analysis.run.duration_s), top)
    drawn = _lines(analysis.gpus_of(finding), by_gpu, frame, path or _path)
    if not drawn:
        return None
    return ChartView(
        quantity=name,
        top=top_words,
        lines=drawn,
        bands=tuple(
            (frame.x(one.start_t_s), round(max(one.duration_s * frame.scale, LEAST_BAND), 1)) for one in finding.each
        ),
        epochs=frame.within(epoch.end_t_s for epoch in analysis.epochs),
        kernel=frame.within(nearby.event.t_s for nearby in finding.kernel_events),
        start=clock.moment(frame.start),
        end=clock.moment(frame.end),
        has_wide_band=any(one.duration_s * frame.scale > LEAST_BAND for one in finding.each),
        has_range=any(line.band for line in drawn),
    )


@dataclass(frozen=True)
class _ChartBounds:
    """What a chart shows: from when to when, in s from the run's start, and the value at its upper edge."""

    start: float
    end: float
    top: float

    @property
    def scale(self) -> float:
        """Return how many of the chart's units a second is wide."""
        return WIDTH / (self.end - self.start)

    def x(self, t_s: float) -> float:
        """Return where a moment lies, in the chart's units."""
        return round((t_s - self.start) * self.scale, 1)

    def within(self, moments: Iterable[float]) -> tuple[float, ...]:
        """Return where those of some moments lie that it shows."""
        return tuple(self.x(t_s) for t_s in moments if self.start <= t_s <= self.end)


def _lines(
    felt: Sequence[int], by_gpu: Mapping[int, QuantitySeries], frame: _ChartBounds, path: PathOf
) -> tuple[ChartLine, ...]:
    """Return the lines of all GPUs that have any, those that felt a finding last."""
    own = [index for index in by_gpu if index in felt] or list(by_gpu)  # a quantity of the host has no GPU
    others = [index for index in by_gpu if index not in own]
    sides = _lines_of(others, by_gpu, frame, path, is_own=False), _lines_of(own, by_gpu, frame, path, is_own=True)
    return tuple(line for side in sides for line in side if line.path)


def _lines_of(
    gpus: Sequence[int], by_gpu: Mapping[int, QuantitySeries], frame: _ChartBounds, path: PathOf, *, is_own: bool
) -> list[ChartLine]:
    """Return the line of each of some GPUs; of many one of their mean, for so many lines are one blot."""
    span = frame.start, frame.end, frame.top
    if len(gpus) >= HEAT_GPUS:
        mean_and_range = _mean_of_many([by_gpu[index] for index in gpus], *span)
        return [ChartLine("gpu-many", is_own, *mean_and_range, gpus=len(gpus))]
    colours = [f"gpu-{list(by_gpu).index(index) % 8}" for index in gpus]
    drawn = [path(by_gpu[index], *span) for index in gpus]
    return [ChartLine(colour, is_own, *each) for colour, each in zip(colours, drawn, strict=True)]


def _shown(finding: Finding, duration_s: float) -> Finding:
    """Return a finding with all the times that it happened, or the longest alone: of many, or where all are hairs."""
    start, end = _window(finding, duration_s)
    is_seen = finding.longest.duration_s * WIDTH >= LEAST_SEEN * (end - start)
    return finding if is_seen and len(finding.occurrences) <= SHOWN_TOGETHER else finding.longest


def shared(charts: Sequence[ChartView | None]) -> tuple[ChartView | None, ...]:
    """Return charts in which no line's path stands twice: those that do get an id, which others refer to."""
    count = Counter(line.path for chart in charts if chart for line in chart.lines)
    ids: dict[str, str] = {}

    def drawn(line: ChartLine) -> ChartLine:
        if count[line.path] == 1:
            return line
        before = line.path in ids
        name = ids.setdefault(line.path, f"l{len(ids) + 1}")
        return replace(line, path="", band="", id=name) if before else replace(line, id=name)

    return tuple(chart and replace(chart, lines=tuple(map(drawn, chart.lines))) for chart in charts)


def _window(finding: Finding, duration_s: float) -> tuple[float, float]:
    """Return from when to when the surroundings of a finding are shown, in s from the run's start."""
    around = max(finding.longest.duration_s * CONTEXT_LENGTHS, LEAST_CONTEXT_S)
    step = CONTEXT_STEP_S
    while around > MOST_STEPS * step:
        step *= 10
    start = max(math.floor((finding.start_t_s - around) / step) * step, 0.0)
    end = math.ceil((finding.end_t_s + around) / step) * step
    return start, max(min(end, duration_s), start + 1.0)


def _measure(name: str, by_gpu: Mapping[int, QuantitySeries]) -> tuple[str, float, str]:
    """Return what a quantity is called, the value at its chart's upper edge, and that in words; the lower edge is 0."""
    if name == UTILISATION:
        return "GPU utilisation", 100.0, "100 %"
    highest = max((float(np.nanmax(t.values, initial=0.0)) for t in by_gpu.values() if len(t.values)), default=0.0)
    words = gibibytes(highest) if name.endswith("_mib") else quantity(highest, unit_of(name))
    of_host = name.startswith(OF_HOST)
    what = f"Host {lower_first(label(name.removeprefix(OF_HOST)))}" if of_host else label(name)
    return what, highest or 1.0, words


def strip(track: QuantitySeries | None, duration_s: float) -> tuple[HeatCell, ...]:
    """Return mean utilisation over the run as a few levels; equal neighbours are one cell, missing time is none."""
    if track is None or duration_s <= 0:
        return ()
    cells = min(STRIP_CELLS, max(len(track.t_s) // 2, 1))  # two samples a cell, so that a late one leaves no hole
    mean = track.means(np.append(np.arange(cells) * (duration_s / cells), np.nextafter(duration_s, np.inf)))
    level = np.where(np.isnan(mean), -1, np.clip(mean * HEAT_LEVELS // 100, 0, HEAT_LEVELS - 1)).astype(int)
    edges = np.concatenate([[0], np.flatnonzero(np.diff(level)) + 1, [cells]])
    step = WIDTH / cells
    return tuple(
        HeatCell(round(float(a * step), 1), round(float((b - a) * step), 1), int(level[a]))
        for a, b in pairwise(edges)
        if level[a] >= 0
    )


def _path(track: QuantitySeries, start: float, end: float, top: float) -> Line:
    """Return a line's samples between two moments as an SVG path, with one beyond either end where there is one.

    Of more than MOST_POINTS it is their mean, with the area from the lowest to the highest.
    """
    first, last = np.searchsorted(track.t_s, [start, end])
    window = slice(max(int(first) - 1, 0), int(last) + 1)
    t_s, values = track.t_s[window], track.values[window]
    if not np.isfinite(values).any():
        return "", ""
    if len(t_s) > MOST_POINTS:
        return _mean_and_range(t_s - start, values, end - start, top)
    steps = np.diff(t_s)
    usual_s = max(median_of(steps) if len(steps) else 0.0, track.tick_s)
    apart = np.append(False, steps > GAP_TICKS * local_intervals_s(t_s, usual_s))
    known = np.isfinite(values)
    # whole numbers (of y hundredths): steps then add up to where a point lies, and are shorter than its place
    x = np.rint((t_s - start) * WIDTH / (end - start)).astype(int)
    begins = (known & (apart | ~np.concatenate([[False], known[:-1]])))[known]
    return _drawn(x[known], _height(values[known], top), begins), ""


def _mean_of_many(tracks: Sequence[QuantitySeries], start: float, end: float, top: float) -> Line:
    """Return the mean of many GPUs between two moments, each counted alike, and the area of all their readings."""
    known = [_known_within(track, start, end) for track in tracks]
    fewest = min((len(t_s) for t_s, _ in known if len(t_s)), default=0)
    if not fewest:
        return "", ""
    buckets = int(np.clip(fewest / STEPS_IN_BUCKET, 1, BUCKETS))
    low, high, means = np.full(buckets, np.inf), np.full(buckets, -np.inf), np.full((len(tracks), buckets), np.nan)
    for mean, (t_s, values) in zip(means, known, strict=True):
        place = np.clip((t_s - start) / (end - start) * buckets, 0, buckets - 1).astype(int)
        count = np.bincount(place, minlength=buckets)
        np.divide(np.bincount(place, values, minlength=buckets), count, out=mean, where=count > 0)
        np.minimum.at(low, place, values)
        np.maximum.at(high, place, values)
    filled = np.flatnonzero(np.isfinite(low))
    return _line_and_area(filled, np.nanmean(means[:, filled], axis=0), low[filled], high[filled], top, buckets)


def _known_within(track: QuantitySeries, start: float, end: float) -> tuple[Floats, Floats]:
    within = slice(*np.searchsorted(track.t_s, [start, end]))
    known = np.isfinite(track.values[within])
    return track.t_s[within][known], track.values[within][known]


def _height(values: Floats, top: float) -> NDArray[np.int64]:
    """Return where values lie below a chart's upper edge, in hundredths."""
    return np.rint(100 * (100 - values * (100 / top))).astype(np.int64)


def _mean_and_range(t_s: Floats, values: Floats, length_s: float, top: float) -> Line:
    """Return the mean of each bucket of time as a path, and the area from the lowest to the highest of each.

    A bucket without readings is a gap, for each holds several.
    """
    known = np.isfinite(values)
    place = np.clip(t_s[known] / length_s * BUCKETS, 0, BUCKETS - 1).astype(int)
    filled, first, count = np.unique(place, return_index=True, return_counts=True)
    mean = np.add.reduceat(values[known], first) / count
    low, high = np.minimum.reduceat(values[known], first), np.maximum.reduceat(values[known], first)
    return _line_and_area(filled, mean, low, high, top, BUCKETS)


def _line_and_area(  # noqa: PLR0913, PLR0917 - what stands in each filled bucket
    filled: NDArray[np.int64], mean: Floats, low: Floats, high: Floats, top: float, buckets: int
) -> Line:
    """Return what stands in each of some buckets, by their places, as the paths of a line and of an area."""
    x = np.rint((filled + 0.5) * (WIDTH / buckets)).astype(np.int64)
    begins = np.diff(filled, prepend=-2) > 1
    runs = np.split(np.arange(len(x)), np.flatnonzero(begins)[1:])
    bands = (_area(x[run], _height(low[run], top), _height(high[run], top)) for run in runs)
    return _drawn(x, _height(mean, top), begins), "".join(bands)


def _area(x: NDArray[np.int64], low: NDArray[np.int64], high: NDArray[np.int64]) -> str:
    """Return the area between two lines (y in hundredths) as a path."""
    begins = np.zeros(2 * len(x), dtype=bool)
    begins[0] = True
    return _drawn(np.concatenate([x, x[::-1]]), np.concatenate([high, low[::-1]]), begins) + "z"


def _drawn(x: NDArray[np.int64], y: NDArray[np.int64], begins: NDArray[np.bool_]) -> str:
    """Return points (y in hundredths) as a path that begins anew at some of them, without those within a level."""
    ends = np.concatenate([begins[1:], [True]])
    turns = begins | ends | (np.diff(y, prepend=y[:1]) != 0) | (np.diff(y, append=y[-1:]) != 0)
    x, y, begins = x[turns], y[turns], begins[turns]
    right = _each(np.diff(x, prepend=0), str)
    up = _each(np.diff(y, prepend=0), lambda parts: f"{'' if parts < 0 else ','}{parts / 100:g} ")
    parts = [to_the_right + upwards for to_the_right, upwards in zip(right, up, strict=True)]
    for place in np.flatnonzero(begins).tolist():
        parts[place] = f"M{int(x[place])},{int(y[place]) / 100:g}l"
    return "".join(parts).replace("lM", "M").removesuffix("l").rstrip()


def _each(steps: NDArray[np.int64], words: Callable[[int], str]) -> list[str]:
    """Return numbers as words; each different one is made words of once, and there are few."""
    different, places = np.unique(steps, return_inverse=True)
    texts = np.array([words(step) for step in different.tolist()], dtype=object)
    return list(texts[places])

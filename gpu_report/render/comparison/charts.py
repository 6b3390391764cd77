"""Both runs over their epochs: aligned by epoch, not by clock, so that the same work stands under the same work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gpu_report.model import Analysis, Comparison, EpochSummary
from gpu_report.render.comparison.rows import run_name
from gpu_report.render.comparison.view import ChartsView, Dot, EpochColumn, EpochLane, Panel
from gpu_report.render.formatting import known
from gpu_report.render.page.views.tables import TextTable
from gpu_report.render.samples.quantity_series import QuantitySeries, series_of_each_gpu
from gpu_report.wording import amount

WIDTH, HEIGHT = 1000.0, 100.0
MOST_POINTS = 1500  # of a line of utilisation
FINEST_S = 0.4  # of a point of it: two of the driver's readings
MOST_TICKS = 16
MOST_LANES = 8  # GPUs drawn of one run
HEADROOM = 1.08  # of a panel, so that its highest dot is seen whole

BEFORE, AFTER = "before", "after"
Value = Callable[[EpochSummary], float | None]


@dataclass(frozen=True)
class _EpochQuantity:
    """What an epoch has, None where it is not known."""

    label: str
    unit: str
    of: Value


PANELS = (
    _EpochQuantity("Training part", "s", lambda epoch: epoch.train_s),
    _EpochQuantity("Data wait", "s", lambda epoch: epoch.data_wait_s),
    _EpochQuantity("Validation", "s", lambda epoch: epoch.validation_s),
)
TABLE = (*PANELS, _EpochQuantity("Utilisation", "%", lambda epoch: epoch.gpu_util_pct))


@dataclass(frozen=True)
class _Places:
    """Where each epoch stands: all are equally wide, and a number that nobody has keeps its place."""

    first: int
    width: float

    def left(self, number: int) -> float:
        return (number - self.first) * self.width

    def middle(self, number: int) -> float:
        return round(self.left(number) + self.width / 2, 2)


@dataclass(frozen=True, eq=False)
class _DrawnRun:
    """One run's epochs by number, and those of them that are not compared."""

    kind: str
    name: str
    analysis: Analysis
    epochs: Mapping[int, EpochSummary]
    apart: frozenset[int]


def charts(comparison: Comparison) -> ChartsView | None:
    """Return the charts of the newest baseline and the run, None where neither has epochs."""
    both = (comparison.baselines[:1], (comparison.run,))
    sides = [
        _side(kind, analysis, apart)
        for kind, found, apart in zip((BEFORE, AFTER), both, comparison.left_out, strict=True)
        for analysis in found
    ]
    numbers = sorted({number for side in sides for number in side.epochs})
    if not numbers:
        return None
    places = _Places(numbers[0], WIDTH / (numbers[-1] - numbers[0] + 1))
    panels = (_panel(quantity, sides, places) for quantity in PANELS)
    return ChartsView(
        lanes=tuple(_lane(side, places) for side in sides),
        panels=tuple(panel for panel in panels if panel is not None),
        columns=tuple(EpochColumn(round(places.left(n), 2), round(places.width, 2), _title(n, sides)) for n in numbers),
        ticks=_ticks(numbers, places),
        table=_table(numbers, sides),
        note=_note(sides),
    )


def _side(kind: str, analysis: Analysis, apart: frozenset[int]) -> _DrawnRun:
    """Return a run's longest training: of an epoch that was begun anew the last attempt."""
    trained: dict[int, float] = {}
    for epoch in analysis.epochs:
        trained[epoch.run] = trained.get(epoch.run, 0.0) + (epoch.train_s or 0.0)
    longest = max(trained, key=lambda run: trained[run], default=None)
    mine = {epoch.epoch: epoch for epoch in analysis.epochs if epoch.run == longest}
    return _DrawnRun(kind, run_name(analysis), analysis, mine, apart)


def _lane(side: _DrawnRun, places: _Places) -> EpochLane:
    """Return a run's utilisation, each epoch stretched to the width of all, and its phases."""
    used = {summary.gpu.index for summary in side.analysis.gpus if summary.used}
    found = {index: track for index, track in series_of_each_gpu(side.analysis.run).items() if index in used}
    each = max(int(MOST_POINTS / max(len(side.epochs), 1)), 1)
    paths = tuple(
        (f"gpu-{place % 8}", path)
        for place, (_, track) in enumerate(sorted(found.items())[:MOST_LANES])
        if (path := "".join(_path(track, e, places.left(n), places.width, each) for n, e in side.epochs.items()))
    )
    role = "Baseline" if side.kind == BEFORE else "Run"
    return EpochLane(role, side.name, paths, tuple(_phases(side, places)))


def _path(track: QuantitySeries, epoch: EpochSummary, x: float, width: float, most: int) -> str:
    """Return the means of an epoch's readings as a path from its left edge to its right one."""
    seconds = epoch.end_t_s - epoch.start_t_s
    first, last = np.searchsorted(track.t_s, [epoch.start_t_s, epoch.end_t_s])
    t_s, util = track.t_s[first:last], track.values[first:last]
    seen = np.isfinite(util)
    if seconds <= 0 or not seen.any():
        return ""
    count = int(np.clip(seconds / max(FINEST_S, track.tick_s if len(t_s) < 2 else 0.0), 1, most))
    place = np.minimum(((t_s[seen] - epoch.start_t_s) / seconds * count).astype(int), count - 1)
    sums, totals = np.bincount(place, util[seen], minlength=count), np.bincount(place, minlength=count)
    at = np.flatnonzero(totals)
    xs = x + (at + 0.5) * width / count
    ys = HEIGHT - sums[at] / totals[at]
    points = [f"{a:.1f},{b:.1f}" for a, b in zip(xs.tolist(), ys.tolist(), strict=True)]
    return "M" + "L".join(points) if len(points) > 1 else f"M{xs[0] - width / 4:.1f},{ys[0]:.1f}h{width / 2:.1f}"


def _phases(side: _DrawnRun, places: _Places) -> list[tuple[str, float, float]]:
    """Return the parts of each epoch as (phase, x, width), in its own stretched time."""
    found = []
    for number, epoch in side.epochs.items():
        seconds = epoch.end_t_s - epoch.start_t_s
        x, end = places.left(number), places.left(number + 1)
        parts = [("train", epoch.train_s), ("validation", epoch.validation_s), ("checkpoint", epoch.checkpoint_s)]
        for name, length in parts:
            if length and seconds > 0:
                wide = min(length / seconds * places.width, end - x)
                found.append((name, round(x, 2), round(wide, 2)))
                x += wide
    return found


def _panel(quantity: _EpochQuantity, sides: Sequence[_DrawnRun], places: _Places) -> Panel | None:
    """Return a quantity over the epochs, from zero; None where no epoch knows it."""
    values = {
        side.kind: {n: v for n, e in side.epochs.items() if (v := known(quantity.of(e))) is not None} for side in sides
    }
    every = [v for each in values.values() for v in each.values()]
    if not every or max(every) <= 0:
        return None
    top = HEADROOM * max(every)
    dots = tuple(
        Dot(places.middle(n), _y(v, top), f"{side.kind}{' apart' if n in side.apart else ''}")
        for side in sides
        for n, v in values[side.kind].items()
    )
    lines = tuple((side.kind, _line(values[side.kind], side.apart, places, top)) for side in sides)
    high = amount(top, quantity.unit)
    return Panel(quantity.label, amount(0.0, quantity.unit), high, dots, tuple(line for line in lines if line[1]))


def _line(values: Mapping[int, float], apart: frozenset[int], places: _Places, top: float) -> str:
    """Return the line through the epochs that are compared; it breaks where one is missing or distinguished."""
    numbers = [n for n in sorted(values) if n not in apart]
    follows = [False, *(b == a + 1 for a, b in pairwise(numbers))][: len(numbers)]
    return "".join(
        f"{'L' if joined else 'M'}{places.middle(n):.1f},{_y(values[n], top):.1f}"
        for n, joined in zip(numbers, follows, strict=True)
    )


def _y(value: float, top: float) -> float:
    return round(HEIGHT * (1 - value / top), 2)


def _title(number: int, sides: Sequence[_DrawnRun]) -> str:
    """Return what is reported of an epoch when it is pointed at."""
    lines = [f"Epoch {number}"]
    for side in sides:
        epoch = side.epochs.get(number)
        role = "before" if side.kind == BEFORE else "now"
        if epoch is None:
            lines.append(f"{role}: none")
            continue
        parts = [f"trained {amount(epoch.train_s, 's')}"]
        parts += [f"waited {amount(epoch.data_wait_s, 's')}"] if epoch.data_wait_s is not None else []
        parts += [f"utilisation {amount(epoch.gpu_util_pct, '%')}"] if epoch.gpu_util_pct is not None else []
        parts += ["not compared"] if number in side.apart else []
        lines.append(f"{role}: {', '.join(parts)}")
    return "\n".join(lines)


def _table(numbers: Sequence[int], sides: Sequence[_DrawnRun]) -> TextTable:
    """Return the epochs of both runs in numbers; what no epoch knows has no column."""
    columns = [
        (quantity, side)
        for quantity in TABLE
        if any(quantity.of(epoch) is not None for each in sides for epoch in each.epochs.values())
        for side in sides
    ]
    heads = (f"{quantity.label}, {'baseline' if side.kind == BEFORE else 'run'}" for quantity, side in columns)
    rows = tuple((str(number), *(_cell(quantity, side, number) for quantity, side in columns)) for number in numbers)
    return TextTable(("Epoch", *heads), (False, *(True for _ in columns)), rows)


def _cell(quantity: _EpochQuantity, side: _DrawnRun, number: int) -> str:
    epoch = side.epochs.get(number)
    return "" if epoch is None else amount(quantity.of(epoch), quantity.unit)


def _ticks(numbers: Sequence[int], places: _Places) -> tuple[tuple[float, str], ...]:
    """Return some of the epochs' numbers under their places."""
    step = -(-len(numbers) // MOST_TICKS)
    return tuple((places.middle(number), str(number)) for number in numbers[::step])


def _note(sides: Sequence[_DrawnRun]) -> str:
    apart = any(side.apart & set(side.epochs) for side in sides)
    hollow = " Hollow dots are epochs that are not compared." if apart else ""
    return f"Every epoch is drawn as wide as the others, whatever it took.{hollow}"

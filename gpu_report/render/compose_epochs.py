"""The epochs: a table with what stands out, and a chart of how their times, utilisation and loss went."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from gpu_report.model import Analysis, EpochSummary, Stats
from gpu_report.render.moments import Clock
from gpu_report.render.view import EpochBar, EpochChartView, EpochLine, EpochPart, EpochRowView
from gpu_report.render.words import MISSING, clean, counted, duration, energy, gibibytes, known, number, quantity, share

WIDTH = 1000.0  # of the chart, in its own units
HEIGHT = 100.0  # of each of its panels
MOST_BARS = 250  # of more epochs a bar is the mean of several
WIDEST = 250.0  # so that a single epoch is no wall
GAP = 0.18  # of a bar's place is left free
CUT_AT = 3.0  # bars longer than this many medians are cut off: one stalled epoch would flatten all others

Value = Callable[[EpochSummary], float | None]


@dataclass(frozen=True)
class _Column:
    """A column of the table: its head, and an epoch's cell; `value` says whether it is known of any epoch."""

    head: str
    cell: Callable[[EpochSummary], str]
    value: Value
    always: bool = False


def columns(analysis: Analysis) -> tuple[str, ...]:
    """Return the heads of the table's columns after epoch and start; what no epoch knows has no column."""
    return tuple(column.head for column in _columns(analysis))


def utilisation_column(analysis: Analysis) -> int:
    """Return which of the columns is that of utilisation, which has a bar."""
    return columns(analysis).index("GPU utilisation")


def rows(analysis: Analysis, clock: Clock) -> tuple[EpochRowView, ...]:
    """Return a row for each epoch."""
    shown = _columns(analysis)
    several_runs = len({epoch.run for epoch in analysis.epochs}) > 1
    return tuple(
        EpochRowView(
            anchor=f"epoch-{epoch.run}-{epoch.attempt}-{epoch.epoch}",
            start=clock.moment(epoch.start_t_s),
            end=clock.moment(epoch.end_t_s),
            util_pct=known(epoch.gpu_util_pct),
            cells=(_name(epoch, several_runs=several_runs), *(column.cell(epoch) for column in shown)),
            odd="; ".join(epoch.odd),
        )
        for epoch in analysis.epochs
    )


def odd_note(analysis: Analysis) -> str:
    """Return how many epochs stand out, and what that means."""
    odd = sum(bool(epoch.odd) for epoch in analysis.epochs)
    if not odd:
        return ""
    what = "epoch stands" if odd == 1 else "epochs stand"
    return f"{number(odd)} {what} out: a part took far longer than in most others."


def unknown_note(analysis: Analysis) -> str:
    """Return what is not known of any epoch, and how it would be."""
    if any(known(epoch.data_wait_s) is not None for epoch in analysis.epochs):
        return ""
    return "Images a second and data wait are known only of a run that tells them from inside."


def chart(analysis: Analysis) -> EpochChartView | None:
    """Return the chart of epochs over time, None without epochs."""
    if not analysis.epochs:
        return None
    several_runs = len({epoch.run for epoch in analysis.epochs}) > 1
    each = -(-len(analysis.epochs) // MOST_BARS)
    groups = [analysis.epochs[at : at + each] for at in range(0, len(analysis.epochs), each)]
    lengths = [sum(height for _, height in _heights(group)) for group in groups]
    usual = median(lengths)
    top = min(max(lengths), CUT_AT * usual) or 1.0
    places = _places(len(groups))
    names = [_name(epoch, several_runs=several_runs) for epoch in (analysis.epochs[0], analysis.epochs[-1])]
    cut = sum(length > top for length in lengths)
    return EpochChartView(
        bars=tuple(
            _bar(group, place, top, several_runs=several_runs) for group, place in zip(groups, places, strict=True)
        ),
        top=duration(top),
        kinds=tuple(dict.fromkeys(kind for group in groups for kind, height in _heights(group) if height > 0)),
        lines=tuple(line for line in _lines(groups, places) if line is not None),
        first=names[0],
        last=names[1] if len(analysis.epochs) > 1 else "",
        note=" ".join(
            part
            for part in (
                f"Each bar is the mean of {each} epochs." if each > 1 else "",
                f"{counted(cut, 'bar')} longer than {duration(top)} {'is' if cut == 1 else 'are'} cut off."
                if cut
                else "",
            )
            if part
        ),
    )


# --- the table ------------------------------------------------------------------------------------------------


def _columns(analysis: Analysis) -> tuple[_Column, ...]:
    indexes = [s.gpu.index for s in analysis.gpus] if len(analysis.gpus) > 1 else []
    every = (
        _Column("Length", lambda e: duration(e.end_t_s - e.start_t_s), lambda e: e.end_t_s, always=True),
        _Column("Train", lambda e: duration(e.train_s), lambda e: e.train_s),
        _Column("Validation", lambda e: duration(e.validation_s), lambda e: e.validation_s),
        _Column("Checkpoint", lambda e: duration(e.checkpoint_s), lambda e: e.checkpoint_s),
        _Column("Images/s", lambda e: number(e.images_per_s), lambda e: e.images_per_s),
        _Column("Data wait", _wait, lambda e: e.data_wait_s),
        _Column("GPU utilisation", lambda e: quantity(e.gpu_util_pct, "%"), lambda e: e.gpu_util_pct, always=True),
        *(_gpu_column(index) for index in indexes),
        _Column("Memory peak", lambda e: gibibytes(e.memory_peak_mib), lambda e: e.memory_peak_mib, always=True),
        _Column("Energy", lambda e: energy(e.energy_j), lambda e: e.energy_j, always=True),
        _Column("Loss", lambda e: number(e.loss, 3), lambda e: e.loss, always=True),
        _Column("Learning rate", _rate, lambda e: e.lr, always=True),
    )
    return tuple(c for c in every if c.always or any(known(c.value(epoch)) is not None for epoch in analysis.epochs))


def _gpu_column(index: int) -> _Column:
    def stats(epoch: EpochSummary) -> Stats | None:
        return epoch.gpus.get(index, {}).get("gpu_util_pct")

    def mean(epoch: EpochSummary) -> float | None:
        found = stats(epoch)
        return found.mean if found else None

    return _Column(f"GPU {index}", lambda epoch: quantity(mean(epoch), "%"), mean, always=True)


def _wait(epoch: EpochSummary) -> str:
    """Return the seconds waited for data, and their share of the training."""
    if known(epoch.data_wait_s) is None:
        return MISSING
    of = "" if known(epoch.data_wait_share) is None else f", {share(epoch.data_wait_share)}"
    return f"{duration(epoch.data_wait_s)}{of}"


def _rate(epoch: EpochSummary) -> str:
    return MISSING if known(epoch.lr) is None else f"{epoch.lr:.3g}"


def _name(epoch: EpochSummary, *, several_runs: bool) -> str:
    name = f"{epoch.run}: {epoch.epoch}" if several_runs else str(epoch.epoch)
    return name if epoch.attempt == 1 else f"{name} (attempt {epoch.attempt})"


# --- the chart ------------------------------------------------------------------------------------------------


def _places(count: int) -> list[tuple[float, float]]:
    """Return x and width of each bar."""
    step = min(WIDTH / count, WIDEST / (1 - GAP))
    width = step * (1 - GAP) if count <= MOST_BARS / 2 else step
    return [(round(n * step, 2), round(width, 2)) for n in range(count)]


def _heights(group: Sequence[EpochSummary]) -> list[tuple[str, float]]:
    """Return the mean seconds of each part of some epochs, from below; what is not told apart is training."""
    count = len(group)
    wait = sum(_waited(epoch) for epoch in group) / count
    train = sum(_trained(epoch) for epoch in group) / count
    validation = sum(known(epoch.validation_s) or 0.0 for epoch in group) / count
    checkpoint = sum(known(epoch.checkpoint_s) or 0.0 for epoch in group) / count
    return [("wait", wait), ("train", max(train - wait, 0.0)), ("validation", validation), ("checkpoint", checkpoint)]


def _trained(epoch: EpochSummary) -> float:
    return known(epoch.train_s) or max(epoch.end_t_s - epoch.start_t_s, 0.0)


def _waited(epoch: EpochSummary) -> float:
    """Return the wait within the training that is drawn: that before the first batch of a run belongs to startup."""
    return min(known(epoch.data_wait_s) or 0.0, _trained(epoch))


def _bar(group: Sequence[EpochSummary], place: tuple[float, float], top: float, *, several_runs: bool) -> EpochBar:
    parts, below = [], 0.0
    for kind, seconds in _heights(group):
        height = min(seconds, max(top - below, 0.0))
        if height > 0:
            y = HEIGHT * (1 - (below + height) / top)
            parts.append(EpochPart(kind, round(y, 2), round(HEIGHT * height / top, 2)))
        below += seconds
    return EpochBar(
        x=place[0],
        width=place[1],
        parts=tuple(parts),
        odd=any(epoch.odd for epoch in group),
        title=_title(group, several_runs=several_runs),
    )


def _title(group: Sequence[EpochSummary], *, several_runs: bool) -> str:
    """Return what a bar says when it is pointed at."""
    names = [_name(epoch, several_runs=several_runs) for epoch in (group[0], group[-1])]
    words = {"wait": "waiting for data", "train": "train", "validation": "validation", "checkpoint": "checkpoint"}
    parts = [f"{words[kind]} {duration(seconds)}" for kind, seconds in _heights(group) if seconds > 0]
    util = _mean([epoch.gpu_util_pct for epoch in group])
    parts += [f"GPU {quantity(util, '%')}"] if util is not None else []
    odd = [reason for epoch in group for reason in epoch.odd]
    epochs = f"Epoch {names[0]}" if len(group) == 1 else f"Epochs {names[0]} to {names[1]}, mean"
    return clean("; ".join([f"{epochs}: {', '.join(parts)}", *odd[:4]]))


def _lines(groups: Sequence[Sequence[EpochSummary]], places: Sequence[tuple[float, float]]) -> list[EpochLine | None]:
    util = [_mean([epoch.gpu_util_pct for epoch in group]) for group in groups]
    loss = [_mean([epoch.loss for epoch in group]) for group in groups]
    rate = [_mean([epoch.lr for epoch in group]) for group in groups]
    return [
        _line("GPU utilisation", "util", util, places, (0.0, 100.0), lambda value: f"{value:.0f} %"),
        _line("Loss", "loss", loss, places, None, lambda value: f"{value:.3g}"),
        _line("Learning rate", "lr", rate, places, None, lambda value: f"{value:.2g}"),
    ]


def _line(  # noqa: PLR0913, PLR0917 - a panel, its values and how they are told
    label: str,
    kind: str,
    values: Sequence[float | None],
    places: Sequence[tuple[float, float]],
    limits: tuple[float, float] | None,
    tell: Callable[[float], str],
) -> EpochLine | None:
    """Return a panel's line in steps, None where nothing is known; it breaks where a value is missing."""
    present = [value for value in values if value is not None]
    if not present:
        return None
    low, high = limits or (min(present), max(present))
    room = (high - low) or 1.0
    path, joined = [], False
    for value, (x, width) in zip(values, places, strict=True):
        if value is not None:
            y = HEIGHT * (1 - (value - low) / room) if high > low else HEIGHT / 2
            path.append(f"{'L' if joined else 'M'}{x:.1f},{y:.1f}H{x + width:.1f}")
        joined = value is not None
    return EpochLine(label, kind, "".join(path), tell(low), tell(high) if high > low else "")


def _mean(values: Sequence[float | None]) -> float | None:
    present = [value for value in map(known, values) if value is not None]
    return sum(present) / len(present) if present else None

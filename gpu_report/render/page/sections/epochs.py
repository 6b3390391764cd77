"""The epochs: a table with what stands out, and a chart of how their times, utilisation and loss went."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from gpu_report.gpu_words import gpu_words
from gpu_report.model import Analysis, EpochSummary
from gpu_report.render.formatting import (
    clean,
    duration,
    energy,
    gibibytes,
    known,
    number,
    outlier_words,
    quantity,
    share,
)
from gpu_report.render.page.views.epochs import EpochBar, EpochChartView, EpochLine, EpochPart, EpochRowView, EpochsView
from gpu_report.render.run_clock import WallClock
from gpu_report.wording import MISSING, counted, upper_first

WIDTH = 1000.0  # of the chart, in its own units
HEIGHT = 100.0  # of each of its panels
MOST_BARS = 250  # of more epochs a bar is the mean of several
LEAST_BARS = 3  # of fewer the table says as much, in a tenth of the room
MOST_TICKS = 20  # names of epochs under the bars
MOST_ON_A_PHONE = 8  # of such names: 25 pixels each
SHORT_NAME = 4  # characters of a name of which so many have room
MOST_ROWS = 500  # of the table; 15,000 of them, a day of short epochs, are 14 MB that nobody reads
MOST_GPU_COLUMNS = 4  # of more GPUs the table, which would not fit on paper, names the least busy one and the busiest
GAP = 0.18  # of a bar's place is left free
CUT_AT = 3.0  # bars longer than this many medians are cut off: one stalled epoch would flatten all others

UTILISATION = "GPU utilisation"  # the head of the column that has a bar
WITH_WAIT = "Train, incl. data wait"  # the column's head where another one says how long that wait was

# Parts of an epoch that the chart calls otherwise than their kind.
PARTS = {"wait": "waiting for data", "held": "blocked between steps"}

Value = Callable[[EpochSummary], float | None]


@dataclass(frozen=True)
class _ColumnSpec:
    """A column of the table: its head, and an epoch's cell; `value` says whether it is known of any epoch."""

    head: str
    cell: Callable[[EpochSummary], str]
    value: Value
    always: bool = False


def epochs(analysis: Analysis, clock: WallClock) -> EpochsView:
    """Return what the section of epochs says."""
    shown = columns(analysis)
    return EpochsView(
        columns=shown,
        util_column=shown.index(UTILISATION) if UTILISATION in shown else None,
        rows=rows(analysis, clock),
        chart=chart(analysis),
        outliers_note=outliers_note(analysis),
        unknown_note=" ".join(filter(None, (known_note(analysis), rows_note(analysis)))),
    )


def columns(analysis: Analysis) -> tuple[str, ...]:
    """Return the heads of the table's columns after epoch and start; what no epoch knows has no column."""
    return tuple(column.head for column in _columns(analysis))


def rows(analysis: Analysis, clock: WallClock) -> tuple[EpochRowView, ...]:
    """Return a row for each epoch that the table lists."""
    shown = _columns(analysis)
    several_runs = len({epoch.run for epoch in analysis.epochs}) > 1
    return tuple(
        EpochRowView(
            anchor=f"epoch-{epoch.run}-{epoch.attempt}-{epoch.epoch}",
            start=clock.moment(epoch.start_t_s),
            end=clock.moment(epoch.end_t_s),
            util_pct=known(epoch.gpu_util_pct),
            cells=(_name(epoch, several_runs=several_runs), *(column.cell(epoch) for column in shown)),
            outliers=upper_first("; ".join(outlier_words(epoch))),
        )
        for epoch in _listed(analysis.epochs)
    )


def rows_note(analysis: Analysis) -> str:
    """Return which epochs the table lists, empty where it lists all."""
    listed = _listed(analysis.epochs)
    if len(listed) == len(analysis.epochs):
        return ""
    outliers, shown = (sum(bool(epoch.outliers) for epoch in epochs) for epochs in (analysis.epochs, listed))
    which = "those" if shown == outliers else f"{number(shown)} of {number(outliers)}"
    chosen = "" if shown == outliers else ", the ones that lost most time"
    return (
        f"The table lists {number(len(listed))} of {number(len(analysis.epochs))} epochs: the first, the last, and "
        f"{which} that stand out{chosen}. All are on the timeline, and in the CSV under Raw data."
    )


def _listed(epochs: Sequence[EpochSummary]) -> Sequence[EpochSummary]:
    """Return the epochs that the table lists: all, or of very many the first, the last, and those that stand out.

    Of too many that stand out those that lost most time, in the order in which they came.
    """
    if len(epochs) <= MOST_ROWS:
        return epochs
    at_each_end = MOST_ROWS // 4
    outliers = [number for number in range(at_each_end, len(epochs) - at_each_end) if epochs[number].outliers]
    if len(outliers) > (room := MOST_ROWS - 2 * at_each_end):
        lost_s = _lost_s(epochs)
        outliers = sorted(sorted(outliers, key=lambda number: -lost_s[number])[:room])
    return (*epochs[:at_each_end], *(epochs[number] for number in outliers), *epochs[-at_each_end:])


def _lost_s(epochs: Sequence[EpochSummary]) -> list[float]:
    """Return how much longer each epoch's parts took than their median in its run, in seconds.

    A wait for data lies in the training part and counts once; where no part is known, the epoch's length stands in.
    """
    typical_s: dict[int, list[float]] = {}
    for run in {epoch.run for epoch in epochs}:
        mine = [_parts_s(epoch) for epoch in epochs if epoch.run == run]
        known_s = ([value for value in part if value is not None] for part in zip(*mine, strict=True))
        typical_s[run] = [median(values) if values else 0.0 for values in known_s]
    lost_s = []
    for epoch in epochs:
        of_parts = zip(_parts_s(epoch), typical_s[epoch.run], strict=True)
        train, wait, *others = (max(value - typical, 0.0) if value is not None else 0.0 for value, typical in of_parts)
        lost_s.append(max(train, wait) + sum(others))
    return lost_s


def _parts_s(epoch: EpochSummary) -> tuple[float | None, ...]:
    """Return the seconds of training, wait for data, validation and checkpoint; None where not known."""
    parts = tuple(map(known, (epoch.train_s, epoch.data_wait_s, epoch.validation_s, epoch.checkpoint_s)))
    return parts if any(part is not None for part in parts) else (epoch.end_t_s - epoch.start_t_s, *parts[1:])


def outliers_note(analysis: Analysis) -> str:
    """Return how many epochs stand out, and what that means."""
    outliers = sum(bool(epoch.outliers) for epoch in analysis.epochs)
    if not outliers:
        return ""
    if outliers == 1:
        return "1 epoch stands out: a part of it took far longer than in most others."
    return f"{number(outliers)} epochs stand out: a part of each took far longer than in most others."


def known_note(analysis: Analysis) -> str:
    """Return what utilisation is of, which elsewhere is of training alone; what is not known, and how it would be."""
    if not analysis.epochs or not analysis.gpus:
        return ""
    whole = "GPU utilisation here is of whole epochs, validation and saving included."
    if any(known(epoch.data_wait_s) is not None for epoch in analysis.epochs):
        return whole
    return f"{whole} Images per second and data wait are known only where YOLO's callbacks reported them."


def chart(analysis: Analysis) -> EpochChartView | None:
    """Return the chart of epochs over time, None with too few of them."""
    if len(analysis.epochs) < LEAST_BARS:
        return None
    several_runs = len({epoch.run for epoch in analysis.epochs}) > 1
    each = -(-len(analysis.epochs) // MOST_BARS)
    groups = [analysis.epochs[at : at + each] for at in range(0, len(analysis.epochs), each)]
    lengths = [sum(height for _, height in _heights(group)) for group in groups]
    typical = median(lengths)
    top = min(max(lengths), CUT_AT * typical) or 1.0
    places = _places(len(groups))
    names = [_name(group[0], several_runs=several_runs) for group in groups]
    cut = sum(length > top for length in lengths)
    return EpochChartView(
        bars=tuple(
            _bar(group, place, top, several_runs=several_runs) for group, place in zip(groups, places, strict=True)
        ),
        top=duration(top),
        kinds=tuple(dict.fromkeys(kind for group in groups for kind, height in _heights(group) if height > 0)),
        lines=tuple(line for line in _lines(groups, places) if line is not None),
        ticks=_ticks(names, places, MOST_TICKS),
        few_ticks=_ticks(names, places, MOST_ON_A_PHONE),
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


def _columns(analysis: Analysis) -> tuple[_ColumnSpec, ...]:
    indexes = [s.gpu.index for s in analysis.gpus] if len(analysis.gpus) > 1 else []
    waits = any(known(epoch.data_wait_s) is not None for epoch in analysis.epochs)
    has_gpu = bool(analysis.gpus)
    every = (
        _ColumnSpec(
            "Length", lambda e: duration(e.end_t_s - e.start_t_s, aligned=True), lambda e: e.end_t_s, always=True
        ),
        _ColumnSpec(
            "Warm-up",
            lambda e: duration(e.warm_up_s, aligned=True) if e.warm_up_s else "",
            lambda e: e.warm_up_s or None,
        ),
        _ColumnSpec(WITH_WAIT if waits else "Train", lambda e: duration(e.train_s, aligned=True), lambda e: e.train_s),
        _ColumnSpec("Validation", lambda e: duration(e.validation_s, aligned=True), lambda e: e.validation_s),
        _ColumnSpec("Checkpoint", lambda e: duration(e.checkpoint_s, aligned=True), lambda e: e.checkpoint_s),
        _ColumnSpec("Images/s", lambda e: number(e.images_per_s), lambda e: e.images_per_s),
        _ColumnSpec("Data wait", _wait, lambda e: e.data_wait_s),
        _ColumnSpec(
            "GPU utilisation", lambda e: quantity(e.gpu_util_pct, "%"), lambda e: e.gpu_util_pct, always=has_gpu
        ),
        *(map(_gpu_column, indexes) if len(indexes) <= MOST_GPU_COLUMNS else (_LEAST_BUSY, _BUSIEST)),
        _ColumnSpec("Memory peak", lambda e: gibibytes(e.memory_peak_mib), lambda e: e.memory_peak_mib, always=has_gpu),
        _ColumnSpec("Energy", lambda e: energy(e.energy_j), lambda e: e.energy_j, always=has_gpu),
        _ColumnSpec("Loss", lambda e: number(e.loss, 3), lambda e: e.loss, always=True),
        _ColumnSpec("Learning rate", _rate, lambda e: e.lr, always=True),
    )
    return tuple(c for c in every if c.always or any(known(c.value(epoch)) is not None for epoch in analysis.epochs))


def _gpu_column(index: int) -> _ColumnSpec:
    def mean(epoch: EpochSummary) -> float | None:
        return epoch.gpu_utils_pct.get(index)

    return _ColumnSpec(gpu_words(index), lambda epoch: quantity(mean(epoch), "%"), mean, always=True)


def _extreme_column(words: str, pick: Callable[..., tuple[int, float]]) -> _ColumnSpec:
    """Return a column of the GPU that `pick` finds among an epoch's, and of its utilisation."""

    def picked(epoch: EpochSummary) -> tuple[int, float | None]:
        found = {gpu: value for gpu, value in epoch.gpu_utils_pct.items() if known(value) is not None}
        return pick(found.items(), key=lambda each: each[1]) if found else (0, None)

    def tell(epoch: EpochSummary) -> str:
        index, value = picked(epoch)
        return MISSING if value is None else f"{quantity(value, '%')} ({gpu_words(index)})"

    return _ColumnSpec(words, tell, lambda epoch: picked(epoch)[1], always=True)


_LEAST_BUSY, _BUSIEST = _extreme_column("Least busy GPU", min), _extreme_column("Busiest GPU", max)


def _wait(epoch: EpochSummary) -> str:
    """Return the seconds waited for data, and their share of the training."""
    if known(epoch.data_wait_s) is None:
        return MISSING
    of = "" if known(epoch.data_wait_share) is None else f", {share(epoch.data_wait_share)}"
    return f"{duration(epoch.data_wait_s, aligned=True)}{of}"


def _rate(epoch: EpochSummary) -> str:
    return MISSING if known(epoch.lr) is None else f"{epoch.lr:#.3g}"


def _name(epoch: EpochSummary, *, several_runs: bool) -> str:
    name = f"{epoch.run}: {epoch.epoch}" if several_runs else str(epoch.epoch)
    return name if epoch.attempt == 1 else f"{name} (attempt {epoch.attempt})"


# --- the chart ------------------------------------------------------------------------------------------------


def _places(count: int) -> list[tuple[float, float]]:
    """Return x and width of each bar."""
    step = WIDTH / count
    width = step * (1 - GAP) if count <= MOST_BARS / 2 else step
    return [(round(n * step + (step - width) / 2, 2), round(width, 2)) for n in range(count)]


def _ticks(names: Sequence[str], places: Sequence[tuple[float, float]], most: int) -> tuple[tuple[float, str], ...]:
    """Return the middles of some bars with their names: every one, every second, fifth, tenth, ... as there is room."""
    room = most if max(map(len, names)) <= SHORT_NAME else most // 4
    steps = (digit * 10**power for power in range(9) for digit in (1, 2, 5))
    step = next(step for step in steps if len(names) <= step * room)
    shown = [0, *range(step - 1, len(names), step)] if step > 1 else range(len(names))
    return tuple((round(places[n][0] + places[n][1] / 2, 1), names[n]) for n in dict.fromkeys(shown))


def _heights(group: Sequence[EpochSummary]) -> list[tuple[str, float]]:
    """Return the mean seconds of each part of some epochs, from below; what is not distinguished is training."""
    count = len(group)
    warm_up = sum(known(epoch.warm_up_s) or 0.0 for epoch in group) / count
    wait = sum(_waited(epoch) for epoch in group) / count
    held = sum(_held(epoch) for epoch in group) / count
    train = sum(_trained(epoch) for epoch in group) / count
    validation = sum(known(epoch.validation_s) or 0.0 for epoch in group) / count
    checkpoint = sum(known(epoch.checkpoint_s) or 0.0 for epoch in group) / count
    working = max(train - wait - held, 0.0)
    after = (("train", working), ("validation", validation), ("checkpoint", checkpoint))
    first = [("warm-up", warm_up)] if warm_up > 0 else []
    return [*first, ("wait", wait), *([("held", held)] if held > 0 else []), *after]


def _trained(epoch: EpochSummary) -> float:
    whole_s = max(epoch.end_t_s - epoch.start_t_s, 0.0)
    return known(epoch.train_s) or max(whole_s - (known(epoch.warm_up_s) or 0.0), 0.0)


def _waited(epoch: EpochSummary) -> float:
    """Return the wait within the training that is drawn."""
    return min(known(epoch.data_wait_s) or 0.0, _trained(epoch))


def _held(epoch: EpochSummary) -> float:
    """Return how long of the training that is drawn it stalled between batches, and not for data."""
    return min(known(epoch.stall_s) or 0.0, _trained(epoch) - _waited(epoch))


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
        outliers=any(epoch.outliers for epoch in group),
        title=_title(group, several_runs=several_runs),
    )


def _title(group: Sequence[EpochSummary], *, several_runs: bool) -> str:
    """Return what a bar says when it is pointed at."""
    names = [_name(epoch, several_runs=several_runs) for epoch in (group[0], group[-1])]
    parts = [f"{PARTS.get(kind, kind)} {duration(seconds)}" for kind, seconds in _heights(group) if seconds > 0]
    util = _mean([epoch.gpu_util_pct for epoch in group])
    parts += [f"GPU {quantity(util, '%')}"] if util is not None else []
    outliers = [reason for epoch in group for reason in outlier_words(epoch)]
    epochs = f"Epoch {names[0]}" if len(group) == 1 else f"Epochs {names[0]} to {names[1]}, mean"
    return clean("; ".join([f"{epochs}: {', '.join(parts)}", *outliers[:4]]))


def _lines(groups: Sequence[Sequence[EpochSummary]], places: Sequence[tuple[float, float]]) -> list[EpochLine | None]:
    util = [_mean([epoch.gpu_util_pct for epoch in group]) for group in groups]
    loss = [_mean([epoch.loss for epoch in group]) for group in groups]
    rate = [_mean([epoch.lr for epoch in group]) for group in groups]
    return [
        _line("GPU utilisation", "util", util, places, (0.0, 100.0), lambda value: f"{value:.0f} %"),
        _line("Loss", "loss", loss, places, None, lambda value: f"{value:.3g}"),
        _line("Learning rate", "lr", rate, places, None, lambda value: f"{value:.2g}"),
    ]


def _line(  # noqa: PLR0913, PLR0917 - a panel, its values and how they are reported
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

"""What rises from epoch to epoch: which epochs tell of it, and the function that a GPU waits for longer each time."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.epochs.changed_signals import changed
from gpu_report.analyse.rules.epochs.comparable_epochs import KnownSlowdowns, TrainedEpoch
from gpu_report.analyse.rules.epochs.possible_causes import possible_causes
from gpu_report.analyse.timeseries.trend import Trend
from gpu_report.catalogue import GREW_COST_KEY, GROWTH_KEY
from gpu_report.model import Advice, Evidence, Frame, Reference
from gpu_report.wording import epoch_length, place_words

Rise = Callable[[Sequence[TrainedEpoch]], Trend | None]
# What slows a part of the training from one epoch on, by how that part is called.
SLOWS = {
    "the main process": "a callback, a logger or code of yours that runs since then",
    "the GPU's work": "larger images, more work a step, another program on the GPU, or full GPU memory",
    "data loading": "larger images, slower storage, or another program on the CPU",
}


class _SteppedFunction(NamedTuple):
    """A function of the main processes, or of the loaders' workers."""

    is_worker: bool
    file: str
    function: str


def thirds(
    epochs: Sequence[TrainedEpoch], grown: Trend | None = None
) -> tuple[Sequence[TrainedEpoch], Sequence[TrainedEpoch]]:
    """Return the first and the last third of some epochs, or those before and since a step: they tell what rose."""
    if grown is not None and grown.step is not None:
        return epochs[: grown.step], epochs[grown.step :]
    third = len(epochs) // 3
    return epochs[:third], epochs[-third:]


def risen(
    epochs: Sequence[TrainedEpoch], held_up: KnownSlowdowns, rise: Rise
) -> tuple[Sequence[TrainedEpoch], Trend] | None:
    """Return the epochs that tell of a rise, and that; None where there is none.

    One that goes on takes the GPU below its level in the end: then drops are the rise, and disturb nothing.
    """
    for by_drops in (True, False):
        steady = held_up.undisturbed(epochs, by_drops=by_drops)
        grown = rise(steady)
        if grown is not None and (by_drops or grown.is_gradual):
            return steady, grown
    return None


def risen_since(epochs: Sequence[TrainedEpoch], values: Sequence[float], grown: Trend) -> TrainedEpoch:
    """Return the epoch from which on all values are over what they were; the first where they rise all along."""
    if grown.step is not None:
        return epochs[grown.step]
    usual = [place for place, value in enumerate(values) if value < risen_line(grown)]
    since = usual[-1] + 1 if usual else 0
    return epochs[since] if len(epochs) // 3 < since < len(epochs) else epochs[0]


def risen_line(grown: Trend) -> float:
    """Return the value from which on one is no longer what those at first were, in their unit."""
    return grown.first + th.RISEN_SHARE * grown.grown


def evidence_of_growth(
    context: Context, epochs: Sequence[TrainedEpoch], grown: Trend, what: str, lost_s: float
) -> tuple[Evidence, ...]:
    """Return the numbers of a rise: `what` rose, what it cost in all, and what else changed."""
    return (
        *numbers_of_growth(grown, what, lost_s),
        *changed(context, *thirds(epochs, grown), ("at first", "at last"), reference=_reference(grown)),
    )


def numbers_of_growth(grown: Trend, what: str, lost_s: float) -> tuple[Evidence, ...]:
    """Return by how much `what` rose and what that cost in all."""
    first, last = ("the first third", "in the last third") if grown.step is None else ("those before", "since then")
    return (
        Evidence(f"{what}, {'in ' * (grown.step is None)}{first}", grown.first, "s", what, _reference(grown)),
        Evidence(f"{what}, {last}", grown.last, "s", what),
        Evidence(f"lost, compared with {first}", lost_s, "s", key=GREW_COST_KEY),
        Evidence("longer in the last epoch than in the first", grown.by_the_end, "s", key=GROWTH_KEY),
    )


def _reference(grown: Trend) -> Reference:
    """Return what the first of two numbers is: of the first third of the epochs, or of those before a change."""
    return "first of next" if grown.step is None else "before of next"


def lost_gpu_s(context: Context, epochs: Sequence[TrainedEpoch], lost_s: float) -> float:
    """Return the GPU seconds that epochs lost: all GPUs of a training wait for what makes its epochs longer."""
    training = context.training_at(epochs[0].span[0])
    return lost_s * max(len(training.gpus) if training is not None else 0, 1)


def advice_on_growth(
    context: Context, epochs: Sequence[TrainedEpoch], grown: Trend, otherwise: str, slowed: str = "training"
) -> Advice:
    """Return where to look for what grew: the function that made most of it, where lines were noted, else `otherwise`.

    What changed once, at one epoch, is no growth: then it is to find what changed there, and `slowed` that.
    """
    found = _grown_most(context, epochs, grown)
    if found is not None:
        at, first_s, last_s = found
        short = f"Look at {place_words(at)}"
        waits = f"the GPU waited {epoch_length(first_s)} an epoch for it at first, {epoch_length(last_s)} at last"
        return Advice(f"{short}: {waits}", short=short)
    if not grown.is_gradual:
        since = risen_since(epochs, [epoch.train_s for epoch in epochs], grown)
        on = "" if since is epochs[0] else f" from epoch {since.epoch} on"
        short = f"Find what slowed {slowed}{on}"
        what = SLOWS.get(slowed) or possible_causes(context, *thirds(epochs, grown))
        return Advice(f"{short}: {what}", short=short)
    why = "a list that is kept, a file that is read again, memory that is not given back"
    return Advice(f"{otherwise}: {why}", short=otherwise)


def _grown_most(context: Context, epochs: Sequence[TrainedEpoch], grown: Trend) -> tuple[Frame, float, float] | None:
    """Return the function that made GROWN_IN_ONE_SHARE of a rise, at its worst line, and its seconds before and after.

    They are those that a GPU was idle meanwhile in an epoch (mean of the GPUs, and of the epochs).
    """
    first, last = (_idle_s(context, part) for part in thirds(epochs, grown))
    sums = {of: (sum(first.get(of, {}).values()), sum(lines.values())) for of, lines in last.items()}
    most = max(sums, key=lambda of: sums[of][1] - sums[of][0], default=None)
    if most is None or sums[most][1] - sums[most][0] < th.GROWN_IN_ONE_SHARE * grown.grown:
        return None
    worst = max(last[most], key=lambda line: last[most][line])
    return Frame(most.file, worst, most.function), *sums[most]


def _idle_s(context: Context, epochs: Sequence[TrainedEpoch]) -> dict[_SteppedFunction, dict[int, float]]:
    """Return for how long a GPU was idle in the lines of each function, an epoch; not while the loader was waited for.

    What the loader's workers did then is theirs.
    """
    spans, gpus = [epoch.span for epoch in epochs], max(len(context.used_series), 1)
    found: dict[_SteppedFunction, dict[int, float]] = {}
    for process in context.signals.idle_stacks:
        rows, share = process.within(spans)
        is_worker = process.process.is_worker
        idle_s = process.idle_s[rows] * share * (1 if is_worker else ~process.waits[rows])
        for frame, seconds in process.by_line(rows, idle_s).items():
            lines = found.setdefault(_SteppedFunction(is_worker, frame.file, frame.function), {})
            lines[frame.line] = lines.get(frame.line, 0.0) + seconds / len(epochs) / gpus
    return found

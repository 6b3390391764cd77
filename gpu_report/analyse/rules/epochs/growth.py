"""What rises from epoch to epoch: which epochs tell of it, and the function that a GPU waits for longer each time."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.epochs.comparable_epochs import HeldUp, TrainedEpoch
from gpu_report.analyse.signals.stack_notes import MAIN, WORKERS
from gpu_report.analyse.timeseries.trend import Trend
from gpu_report.model import Advice, CodeLocation, Frame
from gpu_report.wording import epoch_length, place_words

Rise = Callable[[Sequence[TrainedEpoch]], Trend | None]


class _Function(NamedTuple):
    """A function of the main processes or of the loaders' workers (`process`)."""

    process: str
    file: str
    function: str


def risen(epochs: Sequence[TrainedEpoch], held_up: HeldUp, rise: Rise) -> tuple[Sequence[TrainedEpoch], Trend] | None:
    """Return the epochs that tell of a rise, and that; None where there is none.

    One that goes on takes the GPU below its level in the end: then drops are the rise, and disturb nothing.
    """
    for by_drops in (True, False):
        steady = held_up.undisturbed(epochs, by_drops=by_drops)
        grown = rise(steady)
        if grown is not None and (by_drops or grown.is_gradual):
            return steady, grown
    return None


def advice_on_growth(context: Context, epochs: Sequence[TrainedEpoch], grown: Trend, otherwise: str) -> Advice:
    """Return where to look for what grew: the function that made most of it, where lines were noted, else `otherwise`.

    What changed once, at one epoch, is no growth: then it is to look at what changed there.
    """
    third = len(epochs) // 3
    found = _grown_most(context, epochs[:third], epochs[-third:], grown.grown)
    if found is not None:
        at, first_s, last_s = found
        waits = f"the GPU waited {epoch_length(first_s)} an epoch for it at first, {epoch_length(last_s)} at last"
        return Advice(f"Look at {place_words(at)}: {waits}", short=f"Look at {place_words(at)}: {waits}")
    if not grown.is_gradual:
        return Advice("Find what changed between epochs", short="Find what changed between epochs")
    why = "a list that is kept, a file that is read again, memory that is not given back"
    return Advice(f"{otherwise}: {why}", short=otherwise)


def _grown_most(
    context: Context, before: Sequence[TrainedEpoch], after: Sequence[TrainedEpoch], grown_s: float
) -> tuple[CodeLocation, float, float] | None:
    """Return the function that made GROWN_IN_ONE_SHARE of a rise, at its worst line, and its seconds before and after.

    They are those that a GPU was idle meanwhile in an epoch (mean of the GPUs, and of the epochs).
    """
    first, last = (_idle_s(context, epochs) for epochs in (before, after))
    functions = {key[0] for key in last}
    sums = {of: [sum(s for (each, _), s in part.items() if each == of) for part in (first, last)] for of in functions}
    most = max(sums, key=lambda of: sums[of][1] - sums[of][0], default=None)
    if most is None or sums[most][1] - sums[most][0] < th.GROWN_IN_ONE_SHARE * grown_s:
        return None
    line = max((line for of, line in last if of == most), key=lambda line: last[most, line])
    first_s, last_s = sums[most]
    at = CodeLocation(most.process, most.function, most.file, line, min((last_s - first_s) / grown_s, 1.0))
    return at, first_s, last_s


def _idle_s(context: Context, epochs: Sequence[TrainedEpoch]) -> dict[tuple[_Function, int], float]:
    """Return for how long a GPU was idle in each function and line, an epoch; not while the loader was waited for.

    What the loader's workers did then is theirs.
    """
    spans, gpus = [epoch.span for epoch in epochs], max(len(context.used_series), 1)
    found: dict[tuple[_Function, int], float] = {}
    for process in context.signals.idle_stacks:
        rows, share = process.within(spans)
        is_worker = process.process.is_worker
        idle_s = process.idle_s[rows] * share * (1 if is_worker else ~process.waits[rows])
        for frame, seconds in process.by_line(rows, idle_s).items():
            of = _function(frame, is_worker=is_worker), frame.line
            found[of] = found.get(of, 0.0) + seconds / len(epochs) / gpus
    return found


def _function(frame: Frame, *, is_worker: bool) -> _Function:
    return _Function(WORKERS if is_worker else MAIN, frame.file, frame.function)

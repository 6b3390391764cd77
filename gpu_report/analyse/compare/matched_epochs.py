"""What of two runs is held against each other: epochs that did the same work, and nothing where that cannot be."""

from collections.abc import Sequence

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.compare.samples import RunSample, with_epochs
from gpu_report.model import Analysis, EpochSummary
from gpu_report.wording import ending_words, lower_first

Chosen = tuple[tuple[RunSample, ...], tuple[str, ...]]


def alike(trainings: Sequence[RunSample]) -> Chosen:
    """Return the trainings with the epochs that did the same work, and what was left out for that, in sentences."""
    chosen, notes = _same_mosaic(trainings)
    chosen, more = _same_numbers(chosen)
    return chosen, (*_apart(trainings), *notes, *more)


def cut_short(analysis: Analysis) -> str:
    """Return in words that a training did not come to its end, and empty where it did or none is known.

    A recording that was asked to end after a time (`--duration`) shows a part of a training, and is no such case.
    """
    ending, by = analysis.ending, analysis.run.recording.ended_by
    if ending is None or ending.name in {"finished", "early stop"}:
        return ""
    return "" if by == "duration" and ending.name != "failed" else ending_words(ending)


def _apart(trainings: Sequence[RunSample]) -> list[str]:
    """Return what is no ordinary epoch in any of them."""
    notes = []
    if any(training.first for training in trainings):
        notes.append("The first epoch of a process warms up and is told apart.")
    if closing := _closing(trainings):
        notes.append(f"{closing} left out: the mosaic was closed and the loader made anew.")
    return notes


def _closing(trainings: Sequence[RunSample]) -> str:
    """Return which epochs of which runs closed the mosaic, with the verb; empty where none did."""
    *baselines, run = [sorted({epoch.epoch for epoch in training.closing}) for training in trainings]
    if not baselines or all(numbers == run for numbers in baselines):
        return _epochs(run, "" if not baselines else " of each run")
    before = sorted({number for numbers in baselines for number in numbers})
    whose = " of the baseline" if len(baselines) == 1 else " of the baselines"
    named = [said for said in (_epochs(before, whose, ""), _epochs(run, " of the run", "")) if said]
    several = len(named) > 1 or len(before or run) > 1
    return " and ".join((*named[:1], *map(lower_first, named[1:]))) + (" are" if several else " is")


def _epochs(numbers: Sequence[int], whose: str, verb: str | None = None) -> str:
    """Return epochs by their numbers at the beginning of a sentence, with its verb; empty without any."""
    if not numbers:
        return ""
    several = len(numbers) > 1
    named = f"{'Epochs' if several else 'Epoch'} {' and '.join(map(str, numbers))}{whose}"
    return named + ((" are" if several else " is") if verb is None else verb)


def _same_mosaic(trainings: Sequence[RunSample]) -> Chosen:
    """Return the trainings with epochs of one kind, with mosaic or without, where they have them in other shares."""
    bare = [[e for e in training.epochs if training.without_mosaic(e)] for training in trainings]
    full = [[e for e in training.epochs if not training.without_mosaic(e)] for training in trainings]
    shares = [len(some) / len(t.epochs) for some, t in zip(bare, trainings, strict=True) if t.epochs]
    if not shares or max(shares) - min(shares) <= th.MOSAIC_SHARE:
        return tuple(trainings), ()
    kinds = ((full, "without"), (bare, "with"))
    kept, left_out = max(kinds, key=lambda kind: min(map(len, kind[0])))
    if min(map(len, kept)) < th.COMPARED_AT_LEAST:
        said = "One of the runs has far more epochs without mosaic, whose images take less work to make."
        return tuple(trainings), (said,)
    note = f"Epochs {left_out} mosaic are left out: the runs have them in other shares."
    return _with(trainings, kept), (note,)


def _same_numbers(trainings: Sequence[RunSample]) -> Chosen:
    """Return the trainings with the epochs whose numbers all have: an epoch is not as long early as late."""
    numbers = [{epoch.epoch for epoch in training.epochs} for training in trainings]
    if not all(numbers):
        return tuple(trainings), ()
    low, high = max(map(min, numbers)), min(map(max, numbers))
    kept = [[epoch for epoch in training.epochs if low <= epoch.epoch <= high] for training in trainings]
    if min(map(len, kept)) < th.COMPARED_AT_LEAST or all(
        len(some) == len(training.epochs) for some, training in zip(kept, trainings, strict=True)
    ):
        return tuple(trainings), ()
    return _with(trainings, kept), (f"Epochs {low} to {high} are compared, which all of them have.",)


def _with(trainings: Sequence[RunSample], kept: Sequence[Sequence[EpochSummary]]) -> tuple[RunSample, ...]:
    return tuple(with_epochs(training, some) for training, some in zip(trainings, kept, strict=True))

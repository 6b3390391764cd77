"""What of two runs can be compared: epochs that did the same work, whether there are enough, and what is to be known.

What keeps runs from being compared is an Obstacle; what a reader should know of a comparison besides its verdict (what
was left out, what it cannot tell) is a note.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpu_report.analyse.compare import thresholds as th
from gpu_report.analyse.compare.metrics import EPOCH_TIME
from gpu_report.analyse.compare.samples import RunSample, with_epochs
from gpu_report.analyse.compare.significance import SampleValues
from gpu_report.model import FROM_CALLBACKS, Analysis, EpochSummary, Gate, MetricComparison, Obstacle
from gpu_report.wording import between, counted, ending_words, lower_first, share_change

Chosen = tuple[tuple[RunSample, ...], tuple[str, ...]]


def matched_epochs(trainings: Sequence[RunSample]) -> Chosen:
    """Return the trainings with the epochs that did the same work, and what was left out for that, in sentences."""
    chosen, notes = _same_mosaic(trainings)
    chosen, more = _same_numbers(chosen)
    return chosen, (*_left_out_epochs(trainings), *notes, *more)


def cut_short_obstacle(analysis: Analysis, which: str) -> list[Obstacle]:
    """Return that a run, the baseline or the compared one (`which`), was cut short; nothing where it was not."""
    short = cut_short(analysis)
    how = "is still being recorded" if analysis.ending and analysis.ending.still_recorded else "was cut short"
    return [Obstacle("cut short", f"{which} {how}", lower_first(short))] if short else []


def cut_short(analysis: Analysis) -> str:
    """Return in words that a training did not come to its end, and empty where it did or none is known.

    A recording that was asked to end after a time (`--duration`) shows a part of a training, and is no such case.
    """
    ending, by = analysis.ending, analysis.run.recording.ended_by
    if ending is None or ending.name in {"finished", "early stop"}:
        return ""
    return "" if by == "duration" and ending.name not in {"failed", "interrupted"} else ending_words(ending)


def _left_out_epochs(trainings: Sequence[RunSample]) -> list[str]:
    """Return what is no ordinary epoch in any of them."""
    notes = []
    if any(training.first for training in trainings):
        notes.append("The first epoch is warm-up. It is shown apart, and no gate counts it.")
    if closing := _closing(trainings):
        notes.append(f"{closing} left out: YOLO closed the mosaic and restarted the data loader.")
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
        said = "One of the runs has far more epochs without mosaic, whose images are faster to prepare."
        return tuple(trainings), (said,)
    note = f"Epochs {left_out} mosaic are left out: the runs have different shares of them."
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
    return _with(trainings, kept), (f"Only epochs {low} to {high} are compared, because every run has them.",)


def _with(trainings: Sequence[RunSample], kept: Sequence[Sequence[EpochSummary]]) -> tuple[RunSample, ...]:
    return tuple(with_epochs(training, some) for training, some in zip(trainings, kept, strict=True))


def has_windows(sides: Sequence[SampleValues]) -> bool:
    """Tell whether every side's training can be cut into enough windows."""
    return all(_windows(side) >= th.COMPARED_AT_LEAST for side in sides)


def too_little(sides: Sequence[SampleValues]) -> Obstacle:
    """Return that steady epochs are too few, why windows of them are no help, and how many epochs would be enough."""
    if without := _imported_without_epochs(sides):
        way_out = "Import its log again with --yolo FOLDER, where YOLO wrote results.csv"
        return Obstacle("too little data", "No epochs are known", f"{without} was imported without them. {way_out}")
    *baselines, run = [len(side.training.epochs) for side in sides]
    few = f"{counted(run, 'epoch')} after warm-up in the run, {min(baselines)} in the baseline"
    least = th.COMPARED_AT_LEAST
    return Obstacle(
        "too little data",
        "Too few epochs",
        f"{few}. At least {least} each are needed, or {least} windows of {th.WINDOW_S:g} s: "
        f"{_why_no_windows(sides)}. Train at least {_enough(sides)} epochs",
    )


def _imported_without_epochs(sides: Sequence[SampleValues]) -> str | None:
    """Return which side is another tool's log that nothing said the epochs of; the run where that is true of both."""
    bare = [
        name
        for side, name in _named(sides)
        if not side.training.analysis.epochs and not side.training.analysis.run.recording.is_ours
    ]
    return bare[-1] if bare else None


def _named(sides: Sequence[SampleValues]) -> list[tuple[SampleValues, str]]:
    return [*((side, "the baseline") for side in sides[:-1]), (sides[-1], "the run")]


def _why_no_windows(sides: Sequence[SampleValues]) -> str:
    """Return which side cannot be cut into windows, or into too few; the run where that is true of both."""
    named = _named(sides)
    untold = [(name, side) for side, name in named if side.training.throughput is None]
    if untold:
        name, side = untold[-1]
        why = "completed no epoch" if side.training.analysis.run.inside else "has no callbacks"
        return f"{name} {why}, so it has none"
    fewest, name = min((_windows(side), name) for side, name in named)
    return f"{name} has {fewest or 'none'}"


def _enough(sides: Sequence[SampleValues]) -> int:
    """Return how many epochs hold enough ordinary ones: the first of a process and one without mosaic are none."""
    special = max(1 + bool(side.training.closing) for side in sides)
    return th.COMPARED_AT_LEAST + special


def _windows(side: SampleValues) -> int:
    return len(side.steady(EPOCH_TIME, "windows"))


def recording_notes(baselines: Sequence[RunSample], run: RunSample) -> tuple[str, ...]:
    """Return what is to be known of the recordings: several trainings in one, and whether they saw alike."""
    named = [("The run", run), *(("A baseline", each) for each in baselines)]
    counts = [(name, len({epoch.run for epoch in training.analysis.epochs})) for name, training in named]
    notes = tuple(
        f"{name} holds {count} trainings. The longest one is compared." for name, count in counts if count > 1
    )
    told = {all(e.source == FROM_CALLBACKS for e in training.epochs) for _, training in named if training.epochs}
    seen = (
        "One of the runs has no callbacks, so its phases are estimated, to about a second. "
        "Utilisation, energy, CPU time, SM activity and validation are therefore not judged."
    )
    return (*notes, seen) if len(told) > 1 else notes


def value_notes(metrics: Sequence[MetricComparison], gates: Sequence[Gate]) -> tuple[str, ...]:
    """Return what is to be known of the values of the epoch time: windows, what stands out, several baselines."""
    time = next((metric for metric in metrics if metric.metric == EPOCH_TIME), None)
    return () if time is None else (*_of_windows(time), *_stood_out(time), *_of_band(time, gates))


def unused_baselines(all_of: int, used: int) -> tuple[str, ...]:
    """Return how many baselines are left out."""
    return (f"{all_of - used} of {all_of} baselines cannot be compared and are left out.",) if used < all_of else ()


def barring(obstacles: Sequence[Obstacle]) -> list[Obstacle]:
    """Return the obstacles for which nothing is compared at all.

    What was cut short is compared by its whole epochs: what failed has failed, and only what passed might not have.
    """
    return [each for each in obstacles if each.kind != "cut short"]


def _of_windows(time: MetricComparison) -> tuple[str, ...]:
    """Return that parts of epochs are compared, which are many where epochs are few."""
    if time.basis != "windows" or time.baseline is None:
        return ()
    before, after = time.counts
    return (
        f"There are too few epochs to compare (at least {th.COMPARED_AT_LEAST} of each run are needed). Instead, "
        f"windows of about {th.WINDOW_S:g} s of training are compared: {before} of the baseline and {after} of the "
        "run. Each is scaled to a whole epoch.",
    )


def _stood_out(time: MetricComparison) -> tuple[str, ...]:
    """Return how many epochs stood out by their time, in a sentence; what stands out by other metrics is theirs."""
    told = [f"{n} of {whose}" for n, whose in zip(time.outliers, ("the baseline", "the run"), strict=True) if n]
    if not told:
        return ()
    return (f"Epochs with an unusual time are left out: {' and '.join(told)}.",)


def _of_band(time: MetricComparison, gates: Sequence[Gate]) -> tuple[str, ...]:
    """Return what several baselines differ by in epoch time, and what gates cannot decide for that."""
    if not time.each or not time.baseline:
        return ()
    differ = between((min(time.each), max(time.each)), "s")
    told = f"Training per epoch of {counted(len(time.each), 'baseline')}: {differ}"
    if time.band is None:
        return (f"{told}. With {th.BAND_AT_LEAST} or more, the range of one more is known.",)
    until = time.band[1] / time.baseline - 1
    gate = next((g for g in gates if g.metric == EPOCH_TIME and g.kind == "share" and g.limit < until), None)
    band = f"{told}. One more may take {between(time.band, 's')} (95 %)."
    if gate is None:
        return (band,)
    blind = (
        f"{gate.text} cannot decide between {share_change(gate.limit)} and {share_change(until)}. More baselines make "
        "that range smaller, and so does a --key of their own for each machine."
    )
    return (band, blind)

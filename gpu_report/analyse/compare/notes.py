"""What is to be known of a comparison besides its verdict: what was left out, and what it cannot tell."""

from __future__ import annotations

from collections.abc import Sequence

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.compare.matched_epochs import cut_short
from gpu_report.analyse.compare.metrics import EPOCH_TIME
from gpu_report.analyse.compare.samples import RunSample
from gpu_report.analyse.timeline.callbacks import FROM_CALLBACKS
from gpu_report.model import Gate, MetricComparison
from gpu_report.wording import between, counted, share_change


def of_recordings(baselines: Sequence[RunSample], run: RunSample) -> tuple[str, ...]:
    """Return what is to be known of the recordings: several trainings in one, and whether they saw alike."""
    named = [("The run", run), *(("A baseline", each) for each in baselines)]
    counts = [(name, len({epoch.run for epoch in training.analysis.epochs})) for name, training in named]
    notes = tuple(f"{name} holds {count} trainings; the longest is compared." for name, count in counts if count > 1)
    told = {all(e.source == FROM_CALLBACKS for e in training.epochs) for _, training in named if training.epochs}
    seen = (
        "One of the runs is seen from outside, another was told from inside: the edges of an epoch's phases are found "
        "otherwise and may be off by up to a second, so that utilisation, energy, CPU time, SM activity and validation "
        "are not judged."
    )
    return (*notes, seen) if len(told) > 1 else notes


def of_values(metrics: Sequence[MetricComparison], gates: Sequence[Gate]) -> tuple[str, ...]:
    """Return what is to be known of the values of the epoch time: windows, what stands out, several baselines."""
    time = next((metric for metric in metrics if metric.metric == EPOCH_TIME), None)
    return () if time is None else (*_of_windows(time), *_stood_out(time), *_of_band(time, gates))


def not_used(all_of: int, used: int) -> tuple[str, ...]:
    """Return how many baselines are left out."""
    return (f"{all_of - used} of {all_of} baselines cannot be compared and are left out.",) if used < all_of else ()


def of_crash(run: RunSample, obstacles: Sequence[str]) -> tuple[str, ...]:
    """Return who fails on a training that was cut short, where it is not compared for that."""
    if not obstacles or not cut_short(run.analysis):
        return ()
    return ("A run that was cut short is not compared; `gpu-report check` fails on a crash.",)


def _of_windows(time: MetricComparison) -> tuple[str, ...]:
    """Return that parts of epochs are compared, which are many where epochs are few."""
    if time.basis != "windows" or time.baseline is None:
        return ()
    before, after = time.counts
    return (
        f"Epochs are too few to compare ({th.COMPARED_AT_LEAST} ordinary ones of each run are needed), so windows of "
        f"about {th.WINDOW_S:g} s of training are compared: {before} of the baseline and {after} of the run, each "
        "scaled to a whole epoch.",
    )


def _stood_out(time: MetricComparison) -> tuple[str, ...]:
    """Return how many epochs stood out by their time, in a sentence; what stands out by other metrics is theirs."""
    told = [f"{n} of {whose}" for n, whose in zip(time.outliers, ("the baseline", "the run"), strict=True) if n]
    if not told:
        return ()
    return (f"Epochs whose time stands far out are left out of it: {' and '.join(told)}.",)


def _of_band(time: MetricComparison, gates: Sequence[Gate]) -> tuple[str, ...]:
    """Return what several baselines differ by in epoch time, and what gates cannot decide for that."""
    if not time.each or not time.baseline:
        return ()
    differ = between((min(time.each), max(time.each)), "s")
    told = f"The epoch time of {counted(len(time.each), 'baseline')} ranges from {differ}"
    if time.band is None:
        return (f"{told}; from {th.BAND_AT_LEAST} on they tell how much one more may.",)
    until = time.band[1] / time.baseline - 1
    gate = next((g for g in gates if g.metric == EPOCH_TIME and g.kind == "share" and g.limit < until), None)
    band = f"{told}, and one more like them may come to {between(time.band, 's')} (95 %)."
    if gate is None:
        return (band,)
    blind = (
        f"Between {share_change(gate.limit)} and {share_change(until)} {gate.text} cannot decide: more baselines, and "
        "none of other machines (--key), make that less."
    )
    return (band, blind)

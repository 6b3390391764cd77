"""Rules: an epoch whose training took far longer than its siblings', and epochs that get slower and slower."""

import itertools
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from gpu_report.analyse.causes import Explanation, explain
from gpu_report.analyse.causes.confidence import HINTED, LIKELY, POSSIBLE, WEAK
from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.epochs.changed_signals import busy_s, changed, data_wait_s, of_gpus, of_host, utilisation
from gpu_report.analyse.rules.epochs.comparable_epochs import KnownSlowdowns, TrainedEpoch, first_of, groups
from gpu_report.analyse.rules.epochs.data_wait import (
    advice_on_wait,
    signals_beside,
    waits_grow,
    why_waited,
    with_storage_advice,
)
from gpu_report.analyse.rules.epochs.gpu_advice import LostTime, advice_on_gpu
from gpu_report.analyse.rules.epochs.growth import (
    advice_on_growth,
    evidence_of_growth,
    lost_gpu_s,
    risen,
    risen_since,
    thirds,
)
from gpu_report.analyse.rules.epochs.slower_cpu import by_slower_cpu
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.timeseries.gpu_series import Bools
from gpu_report.analyse.timeseries.intervals import Spans
from gpu_report.analyse.timeseries.robust_outliers import tolerance
from gpu_report.analyse.timeseries.thresholds import OUTLIER_AT_LEAST_S
from gpu_report.analyse.timeseries.trend import Trend, mann_kendall_rise
from gpu_report.catalogue import SLOW_COST_KEY
from gpu_report.model import Advice, Cause, Evidence, Finding, NearbyKernelEvent, Occurrence
from gpu_report.wording import brief_length, ends_of_change

BLOCKED = "workers_blocked"
TYPICAL_KEY = "typical_epoch_s"  # of evidence: what the training of an epoch typically takes


def slow_epochs(context: Context, epochs: Sequence[TrainedEpoch], held_up: KnownSlowdowns) -> list[Finding]:
    """Report epochs that stand out in the length of their training and that no other finding explains.

    The first epoch of a process and the one that closes the mosaic take longer by their nature and are never reported.
    Epochs that follow each other are one finding, and so are SLOW_TIMES stretches or more of one cause.
    """
    found: list[tuple[Sequence[TrainedEpoch], Sequence[TrainedEpoch]]] = []
    for siblings in groups(epochs):
        typical_s = median(epoch.train_s for epoch in siblings)
        unexplained = [
            held_up.seconds_in(epoch.span) < th.EXPLAINED_SHARE * (epoch.train_s - typical_s) for epoch in siblings
        ]
        slow = _outliers(siblings, th.SLOW_SHARE) & unexplained
        if any(risen(siblings, held_up, rise) for rise in (_trainings_grow, waits_grow)):
            parts = in_a_row(siblings, slow & ~_of_the_rise(siblings, slow))
        elif slow.any():
            parts = in_a_row(siblings, slow)
        else:
            some = in_a_row(siblings, _outliers(siblings, th.SLOWING_SHARE, OUTLIER_AT_LEAST_S) & unexplained)
            parts = [part for part in some if _lasts(part, typical_s)]
        found += [(part, siblings) for part in parts]
    return merged([slow_training(context, *each) for each in sorted(found, key=_begin)])


def merged(found: Sequence[Finding]) -> list[Finding]:
    """Return findings in which SLOW_TIMES or more of one cause are one, which has its numbers of the longest."""
    alike: dict[str, list[Finding]] = {}
    for finding in found:
        alike.setdefault(finding.cause_name, []).append(finding)
    return [one for mine in alike.values() for one in ([_of_several(mine)] if len(mine) >= th.SLOW_TIMES else mine)]


def _of_several(found: Sequence[Finding]) -> Finding:
    longest = max(found, key=lambda finding: finding.duration_s)
    cost_s = sum(finding.number(SLOW_COST_KEY) or 0.0 for finding in found)
    typical_s = next(each.value for each in longest.evidence if each.key == TYPICAL_KEY)
    return replace(
        longest,
        start_t_s=found[0].start_t_s,
        end_t_s=found[-1].end_t_s,
        epoch=found[0].epoch,
        summary=f"Training was slow {len(found):,} times, first in epoch {found[0].epoch} "
        f"(typical: {brief_length(typical_s or 0.0)} an epoch)",
        evidence=tuple(replace(e, value=cost_s) if e.key == SLOW_COST_KEY else e for e in longest.evidence),
        lost_gpu_s=sum(finding.lost_gpu_s or 0.0 for finding in found),
        occurrences=tuple(Occurrence(*finding.span, (), finding.lost_gpu_s) for finding in found),
    )


def slow_first_epochs(context: Context, epochs: Sequence[TrainedEpoch], _: KnownSlowdowns) -> list[Finding]:
    """Report the first epoch of a process that waited for data far longer than the others, its first batch apart.

    Files come from the disk for the first time, and later from memory: that is a note, and nothing got worse.
    """
    pairs = ((first_of(epochs, siblings), siblings) for siblings in groups(epochs))
    slow = [(first, siblings) for first, siblings in pairs if first is not None and _waited_first(first, siblings)]
    return [replace(slow_training(context, [first], siblings), severity="info", advice=()) for first, siblings in slow]


def _waited_first(first: TrainedEpoch, siblings: Sequence[TrainedEpoch]) -> bool:
    """Tell whether a first epoch took SLOW_SHARE longer than typical, most of it by waiting, and FIRST_SHARE of all."""
    longer_s = first.train_s - median(epoch.train_s for epoch in siblings)
    waits = [epoch.later_wait_s for epoch in siblings if epoch.later_wait_s is not None]
    if first.later_wait_s is None or not waits:
        return False
    least_s = max(th.SLOW_AT_LEAST_S, th.FIRST_SHARE * sum(epoch.train_s for epoch in siblings))
    slow = longer_s >= max(least_s, th.SLOW_SHARE * (first.train_s - longer_s))
    return slow and first.later_wait_s - median(waits) >= th.EXPLAINED_SHARE * longer_s


def epochs_slowing(context: Context, epochs: Sequence[TrainedEpoch], held_up: KnownSlowdowns) -> list[Finding]:
    """Report training that takes longer from epoch to epoch, unless that is because it waits longer for data."""
    found = (risen(siblings, held_up, _trainings_grow) for siblings in groups(epochs))
    return [_slowing(context, *each) for each in found if each is not None]


def _trainings_grow(epochs: Sequence[TrainedEpoch]) -> Trend | None:
    """Return how training times rose, None where they did not, or too little to matter, or by waiting for data."""
    grown, waits = mann_kendall_rise([epoch.train_s for epoch in epochs]), waits_grow(epochs)
    by_waiting = waits is not None and grown is not None and waits.grown >= th.EXPLAINED_SHARE * grown.grown
    return grown if grown is not None and not by_waiting and _matters(epochs, grown) else None


def _outliers(siblings: Sequence[TrainedEpoch], share: float, least_s: float = th.SLOW_AT_LEAST_S) -> Bools:
    """Return which epochs are over the line: `least_s`, a share and OUTLIER_Z robust deviations over typical."""
    trained_s = np.array([epoch.train_s for epoch in siblings])
    typical_s, far_s = tolerance(trained_s, least_s, share)
    slow: Bools = trained_s >= typical_s + far_s
    return slow


def _lasts(part: Sequence[TrainedEpoch], typical_s: float) -> bool:
    """Tell whether epochs in a row are so many, and took so much longer in all, that something held them back.

    Of epochs of seconds each is but seconds longer, and a hundred of them cost minutes.
    """
    longer_s = sum(epoch.train_s - typical_s for epoch in part)
    return len(part) >= th.LASTING_EPOCHS and longer_s >= th.LASTING_EPOCHS * th.SLOW_AT_LEAST_S


def in_a_row(siblings: Sequence[TrainedEpoch], slow: Bools) -> list[Sequence[TrainedEpoch]]:
    """Return the stretches of slow epochs between which none of the siblings trained at its usual pace."""
    runs = itertools.groupby(zip(siblings, slow, strict=True), key=lambda pair: bool(pair[1]))
    return [[epoch for epoch, _ in run] for is_slow, run in runs if is_slow]


def _of_the_rise(siblings: Sequence[TrainedEpoch], slow: Bools) -> Bools:
    """Return which slow epochs are what a rise came to: those up to the last ones, and no longer than these."""
    _, last = thirds(siblings)
    most_s = (1 + th.SLOW_SHARE) * median(epoch.train_s for epoch in last)
    to_the_last = [part for part in in_a_row(siblings, slow) if part[-1].epoch >= last[0].epoch]
    risen_to = {epoch.epoch for part in to_the_last for epoch in part if epoch.train_s < most_s}
    return np.array([epoch.epoch in risen_to for epoch in siblings])


def _begin(found: tuple[Sequence[TrainedEpoch], Sequence[TrainedEpoch]]) -> float:
    return found[0][0].span[0]


def slow_training(
    context: Context,
    slow: Sequence[TrainedEpoch],
    siblings: Sequence[TrainedEpoch],
    typical_s: float | None = None,
) -> Finding:
    """Return what slow epochs, or parts of them, came to beside their siblings, and why.

    What a sibling takes is their median, or `typical_s` where most of them may be slow.
    """
    typical_is = "median of the other epochs" if typical_s is None else "what the fastest quarter of such parts takes"
    if typical_s is None:
        typical_s = median(epoch.train_s for epoch in siblings)
    took_s = median(epoch.train_s for epoch in slow)
    cost_s = sum(epoch.train_s - typical_s for epoch in slow)
    which = f"epoch {slow[0].epoch}" if len(slow) == 1 else f"each of epochs {slow[0].epoch} to {slow[-1].epoch}"
    rest = _nearest(siblings, slow)
    cause, why, advice = _why_slow(context, slow, rest, typical_s / took_s, cost_s)
    return context.finding(
        "slow-epoch",
        "warning",
        (slow[0].span[0], slow[-1].span[1]),
        f"Training in {which} took {_took(slow)} (typical: {brief_length(typical_s)})",
        epoch=slow[0].epoch,
        phase="train",
        evidence=(
            Evidence("training took" if len(slow) == 1 else "training took (median)", took_s, "s"),
            Evidence(f"typical ({typical_is})", typical_s, "s", TYPICAL_KEY, "typical"),
            Evidence("lost in all", cost_s, "s", key=SLOW_COST_KEY),
            *changed(context, rest, slow, ("typical", "then"), reference="typical of next"),
            *why,
        ),
        cause=cause,
        advice=advice,
        kernel_events=_kernel(context, slow[0]),
        lost_gpu_s=lost_gpu_s(context, slow, cost_s),
    )


def _why_slow(
    context: Context, slow: Sequence[TrainedEpoch], rest: Sequence[TrainedEpoch], slower: float, cost_s: float
) -> tuple[Cause | None, tuple[Evidence, ...], tuple[Advice, ...]]:
    """Return why epochs were slow beside the `rest`, with the evidence, and what to do; None of a cause not known.

    They trained at `slower` (a share) of their speed, which cost `cost_s`. That they waited for data was measured, that
    they were slow for a clock follows from what clocks do. Where the GPU's clock or full memory accounts for that,
    another process or what held up the host is no cause.
    """
    why = _waited_longer(context, slow, rest)
    if why is None and (on_gpu := advice_on_gpu(context, rest, slow, slower, LostTime(slow, cost_s))) is not None:
        return None, (), (on_gpu,)
    if why is None and (cause := _something_else(context, slow, rest)) is not None:
        return cause, (), ()
    why = why or _held_up(context, slow, rest)
    return (None, (), ()) if why is None else (why.cause, why.evidence, advice_on_wait(why))


def _took(slow: Sequence[TrainedEpoch]) -> str:
    """Return how long the training of slow epochs took, from the shortest to the longest where these differ."""
    shortest, longest = (brief_length(end(epoch.train_s for epoch in slow)) for end in (min, max))
    return longest if shortest == longest else ends_of_change(shortest, longest)


def _kernel(context: Context, first: TrainedEpoch) -> tuple[NearbyKernelEvent, ...]:
    """Return what the kernel said as epochs got slower: in the first of them, and in the one before.

    That one may have got slower near its end, and have taken hardly longer.
    """
    start_s, end_s = first.span
    training = context.training_at(start_s)
    gpu = min(training.gpus, default=0) if training is not None else 0
    return tuple(context.signals.of(gpu, start_s - first.train_s, end_s).kernel)


def _nearest(siblings: Sequence[TrainedEpoch], slow: Sequence[TrainedEpoch]) -> Sequence[TrainedEpoch]:
    """Return the siblings beside slow ones, COMPARED_EPOCHS on either side at most: a long run has thousands."""
    first = bisect_left(siblings, slow[0].span, key=lambda epoch: epoch.span)
    before = siblings[max(first - th.COMPARED_EPOCHS, 0) : first]
    return [*before, *siblings[first + len(slow) : first + len(slow) + th.COMPARED_EPOCHS]]


def _waited_longer(context: Context, slow: Sequence[TrainedEpoch], rest: Sequence[TrainedEpoch]) -> Explanation | None:
    """Return why slow epochs waited for data, where that is most of what they took longer.

    Where no processes of the training were seen, that it waited is all that is known.
    """
    then_s, typical_s = (data_wait_s(context, epochs) for epochs in (slow, rest))
    longer_s = median(epoch.train_s for epoch in slow) - median(epoch.train_s for epoch in rest)
    if then_s is None or typical_s is None or then_s - typical_s < th.EXPLAINED_SHARE * longer_s:
        return None
    unseen = of_host("main_cpu_pct")(context, slow) is None
    return why_waited(context, slow, rest, WEAK if unseen else LIKELY)


def _held_up(context: Context, slow: Sequence[TrainedEpoch], rest: Sequence[TrainedEpoch]) -> Explanation | None:
    """Return what held up a training that waited for no data: its main process, or who paused it.

    A GPU that was as busy as usual, where that is known, was held up by nothing on the host.
    """
    then_pct, typical_pct = (utilisation(context, epochs) for epochs in (slow, rest))
    if then_pct is not None and typical_pct is not None and then_pct > (1 - th.CHANGED_SHARE) * typical_pct:
        return None
    middle = sorted(slow, key=lambda epoch: epoch.train_s)[len(slow) // 2]
    signals = signals_beside(context, middle, rest)
    found = None if signals is None else explain(signals, fell=True)
    if signals is None or found is None:
        return None
    if found.cause.confidence < POSSIBLE:
        found = _no_longer_hidden(signals)
    return by_slower_cpu(context, with_storage_advice(found, signals), rest, slow) if found is not None else None


def _no_longer_hidden(signals: IntervalSignals) -> Explanation | None:
    """Return that the loader waited for storage, where it did so before, too, and the GPU had batches all the same.

    Workers that are ahead of the GPU rest. Those that wait for storage as much as ever, while it idles, hold it up.
    """
    nothing: Spans = ()
    alone = replace(signals, host=signals.host.with_steady(nothing), own=signals.own.with_steady(nothing))
    found, blocked, usual = explain(alone, fell=True), signals.within(BLOCKED), signals.typical(BLOCKED)
    as_ever = blocked is not None and usual is not None and blocked >= max(usual, th.BLOCKED_LEAST)
    if found.cause.name != "input-storage" or not as_ever:
        return None
    return replace(found, cause=replace(found.cause, confidence=POSSIBLE))


def _something_else(context: Context, slow: Sequence[TrainedEpoch], rest: Sequence[TrainedEpoch]) -> Cause | None:
    """Name another process where the GPU was busy far longer for the same work than its clock accounts for.

    Of one GPU only: one of several may spin for another. What the same work takes of the GPU's time is the same in each
    epoch, however long the training waits between batches: where it only waited, the GPU was hardly busier.
    """
    training = context.training_at(slow[0].span[0])
    if training is None or len(training.gpus) != 1:
        return None
    then_s, typical_s = (busy_s(context, epochs) for epochs in (slow, rest))
    then_mhz, typical_mhz = (of_gpus("sm_clock_mhz")(context, epochs) for epochs in (slow, rest))
    if then_s is None or not typical_s or not then_mhz or typical_mhz is None:
        return None
    work_s = typical_s * max(typical_mhz / then_mhz, 1.0)
    longer_s = median(epoch.train_s for epoch in slow) - median(epoch.train_s for epoch in rest)
    if then_s < th.BUSIER_FACTOR * work_s or then_s - work_s < th.EXPLAINED_SHARE * longer_s:
        return None
    text = (
        f"the GPU was busy {then_s:.0f} s of it, typical {typical_s:.0f} s for the same work: something else ran on it"
    )
    return Cause("other-process", HINTED, text)


def _matters(epochs: Sequence[TrainedEpoch], grown: Trend) -> bool:
    """Tell whether epochs got slower by a share that a person would notice, and it cost some time."""
    cost_s = sum(epoch.train_s - grown.first for epoch in epochs)
    return grown.grown >= th.SLOWING_SHARE * grown.first and cost_s >= th.SLOW_AT_LEAST_S


def _slowing(context: Context, epochs: Sequence[TrainedEpoch], grown: Trend) -> Finding:
    lost_s = sum(epoch.train_s - grown.first for epoch in epochs)
    first, last = thirds(epochs, grown)
    on_gpu = advice_on_gpu(context, first, last, grown.first / grown.last, LostTime(epochs, lost_s))
    since = risen_since(epochs, [epoch.train_s for epoch in epochs], grown)
    why = None if on_gpu else _held_up(context, last, first)
    return context.finding(
        "epochs-slowing",
        "warning",
        (since.span[0], epochs[-1].span[1]),
        f"Epochs got slower{'' if since is epochs[0] else f' from epoch {since.epoch} on'}: training went from "
        f"{brief_length(grown.first)} to {brief_length(grown.last)} an epoch",
        evidence=evidence_of_growth(context, epochs, grown, "training of an epoch", lost_s),
        cause=why.cause if why is not None else None,
        advice=_advice(context, epochs, grown, on_gpu, why),
        kernel_events=() if since is epochs[0] else _kernel(context, since),
        epoch=None,
        phase=None,
        lost_gpu_s=lost_gpu_s(context, epochs, lost_s),
    )


def _advice(
    context: Context, epochs: Sequence[TrainedEpoch], grown: Trend, on_gpu: Advice | None, why: Explanation | None
) -> tuple[Advice, ...]:
    """Return what to do about epochs that get slower: what is on the GPU, what their cause says, else where to look."""
    if on_gpu is not None:
        return (on_gpu,)
    if why is not None and why.advice and (why.cause.name == "input-storage" or why.cause.confidence >= LIKELY):
        return why.advice
    is_main = why is not None and why.cause.name == "main-process"
    look = "Find what grows in the main process" if is_main else where_to_look(context, epochs, grown)
    slowed = "the main process" if is_main else "the GPU's work" if _is_on_gpu(context, epochs, grown) else "training"
    return (advice_on_growth(context, epochs, grown, look, slowed),)


def where_to_look(context: Context, epochs: Sequence[TrainedEpoch], grown: Trend) -> str:
    """Return where to look for what grows: on the GPU where that was busy for longer, else in the main process.

    Where nothing reported how long epochs waited for data, it may be the data loader as well.
    """
    if _is_on_gpu(context, epochs, grown):
        return "Find what makes the GPU's work longer"
    is_known = all(epoch.data_wait_s is not None for epoch in epochs)
    return f"Find what grows in {'the main process' if is_known else 'the data loader or the main process'}"


def _is_on_gpu(context: Context, epochs: Sequence[TrainedEpoch], grown: Trend) -> bool:
    """Tell whether the GPU was busy for as much longer an epoch as most of what that grew by."""
    first_s, last_s = (busy_s(context, part) for part in thirds(epochs, grown))
    return first_s is not None and last_s is not None and last_s - first_s >= th.EXPLAINED_SHARE * grown.grown

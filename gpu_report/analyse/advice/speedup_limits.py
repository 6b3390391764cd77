"""What training could be without a cause: the training part of an epoch now, and at best.

A limit holds for the removal of one cause alone: the rest of the epoch, above all the model's work, stays as it is.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean, median

from gpu_report.analyse.advice.expected_epoch import epoch_as_it_went, expected_end_s, expected_epoch
from gpu_report.analyse.advice.judged_epochs import (
    ALL,
    STEADY,
    JudgedEpoch,
    epochs_of_longest_run,
    judged_epochs,
    left_out_words,
    rest_of_epoch_s,
    training_of_limits,
    wait_of_epoch_s,
)
from gpu_report.analyse.advice.lasting_limits import lasting_limit, limit_of_code
from gpu_report.analyse.advice.ongoing_limits import Limits, with_ongoing_limits
from gpu_report.analyse.advice.temporary_limits import (
    cost_s_of,
    is_idle,
    limit_of_others,
    limits_at_epoch_ends,
    limits_in_all_epochs,
    limits_of_disturbed_epochs,
    limits_of_slower_epochs,
    span_of,
    times_of,
    what_took_time,
)
from gpu_report.analyse.context import Context
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.analyse.timeseries.intervals import IntervalIndex, length_s, minus
from gpu_report.catalogue import PAUSES_KEY
from gpu_report.model import EpochSummary, Finding, SpeedupLimit

EXPECTED = "estimate from the batches that it trained"


def find_speedup_limits(
    context: Context, epochs: Sequence[EpochSummary], findings: Sequence[Finding]
) -> tuple[SpeedupLimit, ...]:
    """Return a limit for each cause of lost training time, the largest win first; empty where epochs are not known.

    Of several YOLO runs in one recording the longest is meant. Where no epoch of it can be judged, there is a limit of
    what holds it back all the time, by the epoch that is expected.
    """
    mine = [JudgedEpoch(epoch, epoch.train_s) for epoch in judged_epochs(epochs) if epoch.train_s]
    if not mine:
        return tuple(_by_expected_epoch(context, epochs, findings))
    training = training_of_limits(context, epochs)
    took = what_took_time(findings)
    slower = [finding for finding in findings if cost_s_of(finding) is not None]
    held_up = interval_cover([*map(span_of, took), *times_of(slower)])
    steady = [epoch for epoch in mine if not held_up.touches(epoch.span)]
    usual, left_out = steady or mine, left_out_words(epochs)
    rest_s, mean_rest_s = rest_of_epoch_s(mine, median), rest_of_epoch_s(mine, fmean)
    typical = partial(replace, now_is=f"median of {STEADY if 0 < len(steady) < len(mine) else ALL}{left_out}")
    on_average = partial(replace, now_is=f"mean of {ALL}{left_out}", is_mean=True)
    lasting = lasting_limit(context, training, steady or _without_idle(mine, [*took, *_pauses(slower)]), findings)
    in_all = [] if steady else limits_in_all_epochs(context, training, mine, findings, took)
    found: list[SpeedupLimit] = [
        *(typical(limit, rest_s=rest_s, waits_s=wait_of_epoch_s(usual)) for limit in [lasting] if limit),
        *_at_moments(mine, steady, took, slower, left_out),
        *(typical(limit) for limit in _of_long_ends(usual, rest_s, findings)),
        *(on_average(limit) for limit in limits_at_epoch_ends(mine, findings)),
        *(on_average(limit, rest_s=mean_rest_s) for limit in in_all),
    ]
    found += [typical(limit, rest_s=rest_s) for limit in limit_of_code(context, training, usual, findings, found)]
    worthwhile = [limit for limit in found if limit.is_worthwhile]
    return tuple(sorted(worthwhile, key=lambda limit: -limit.speed_up_at_most))


def _at_moments(
    mine: Sequence[JudgedEpoch],
    steady: Sequence[JudgedEpoch],
    took: Sequence[Finding],
    slower: Sequence[Finding],
    left_out: str,
) -> Iterator[SpeedupLimit]:
    """Yield the limits of what took time at moments, or made epochs slower: in all epochs, and in the last ones."""
    disturbing, shortest_s = IntervalIndex(took, span_of), min(epoch.train_s for epoch in mine)
    kinds: tuple[Limits, ...] = (
        lambda of: limits_of_disturbed_epochs(of, steady, disturbing),
        lambda of: limits_of_slower_epochs(of, slower, shortest_s),
    )
    for kind in kinds:
        yield from with_ongoing_limits(kind, mine, [*took, *slower], left_out)


def _pauses(slower: Sequence[Finding]) -> list[Finding]:
    """Return the pauses that make epochs slower, each by itself: GPUs are idle in them."""
    return [each for finding in slower if finding.number(PAUSES_KEY) is not None for each in finding.each]


def _without_idle(epochs: Sequence[JudgedEpoch], took: Sequence[Finding]) -> list[JudgedEpoch]:
    """Return disturbed epochs without the times in which their GPUs were idle for what disturbed them."""
    idle = IntervalIndex([f for f in took if is_idle(f) or f.number(PAUSES_KEY) is not None], span_of)
    rests = [tuple(minus([epoch.span], [finding.span for finding in idle(*epoch.span)])) for epoch in epochs]
    return [
        replace(epoch, seen=rest, apart=1 - length_s(rest) / epoch.train_s)
        for epoch, rest in zip(epochs, rests, strict=True)
    ]


def _by_expected_epoch(
    context: Context, epochs: Sequence[EpochSummary], findings: Sequence[Finding]
) -> Iterator[SpeedupLimit]:
    """Yield the limit of a training that no epoch is known of but its first, whose end is that of any."""
    training = training_of_limits(context, epochs)
    firsts = [each for each in epochs_of_longest_run(epochs) if each.train_s and not each.partial]
    epoch = expected_epoch(context, training, firsts)
    expected = partial(replace, now_is=EXPECTED, rest_s=expected_end_s(context, firsts))
    seen = tuple(training.within(context.undisturbed)) if training is not None else ()
    steps = [JudgedEpoch(epoch, epoch.train_s or 0.0, seen)] if epoch else []
    limit = lasting_limit(context, training, steps, findings)
    if limit is not None and limit.is_worthwhile:
        yield expected(limit)
    if steps:
        known = [limit] if limit else []
        yield from map(expected, limit_of_code(context, training, steps, findings, known))
    went = None if epoch or training is None else epoch_as_it_went(context, training)
    if went is not None:
        yield from map(expected, limit_of_others(context, training, went.train_s or 0.0, findings))


OF_SAVING = ("trainer-blocked", "main-process")  # causes of saving and callbacks that take long, by what was done there


def _of_long_ends(epochs: Sequence[JudgedEpoch], rest_s: float, findings: Sequence[Finding]) -> Iterator[SpeedupLimit]:
    """Yield the limit of whole epochs without the validation, or the saving, that takes much of each.

    Of a note without advice there is none: nothing is known to make them shorter.
    """
    parts: dict[str, Callable[[EpochSummary], float | None]] = {
        "validation": lambda epoch: epoch.validation_s,
        "checkpoint": lambda epoch: epoch.checkpoint_s,
    }
    parts |= dict.fromkeys(OF_SAVING, parts["checkpoint"])
    now_s = median(epoch.train_s for epoch in epochs) + rest_s
    told = [f for f in findings if f.rule == "long-epoch-ends" and (f.advice or f.severity != "info")]
    for cause in {f.cause.name: f for f in told if f.cause}:
        took = [part(epoch.summary) for part in [parts[cause]] for epoch in epochs] if cause in parts else []
        known = [seconds for seconds in took if seconds is not None]
        if known and 0 < median(known) < now_s:
            yield SpeedupLimit(cause, now_s, now_s - median(known), "without it", at_epoch_ends=True)

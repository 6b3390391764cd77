"""Limits of what took time at moments: of an epoch without that time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median

import numpy as np

from gpu_report.analyse.advice.judged_epochs import JudgedEpoch
from gpu_report.analyse.advice.waits_for_ranks import waited_for
from gpu_report.analyse.context import Context
from gpu_report.analyse.rules.other_processes import taken_by_others
from gpu_report.analyse.signals.gpu.throttle import Throttle
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.analyse.timeseries.intervals import IntervalIndex, Span, mask_in_any
from gpu_report.analyse.timeseries.thresholds import TOUCHED_S
from gpu_report.catalogue import (
    CAUSES,
    GREW_COST_KEY,
    RULES,
    SLOW_COST_KEY,
    SLOW_RANK,
    UNEXPLAINED,
    WAITING_FOR_PEER,
)
from gpu_report.model import Finding, SpeedupLimit

OTHER_PROCESS = "other-process"  # a rule and its cause
COST_KEYS = (GREW_COST_KEY, SLOW_COST_KEY)  # of evidence: what epochs took longer in all (s)


def is_idle(finding: Finding) -> bool:
    """Tell whether GPUs did nothing, or less, while what disturbed a training lasted: others make it slower instead."""
    return RULES[finding.rule].fall or finding.rule in {SLOW_RANK, WAITING_FOR_PEER}


def limits_in_all_epochs(
    context: Context,
    training: Training | None,
    epochs: Sequence[JudgedEpoch],
    findings: Sequence[Finding],
    took: Sequence[Finding],
) -> list[SpeedupLimit]:
    """Return the limits of what held each epoch up for a while, so that none shows what it takes without.

    What lowers the clock may let utilisation fall, too: of the limits of one cause the largest holds.
    """
    now_s = fmean(epoch.train_s for epoch in epochs)
    found = [
        *limit_of_others(context, training, now_s, findings),
        *_at_lower_clocks(context, training, epochs, findings),
        *_lower_utilisation_limits(epochs, took),
        *(_waited(context, training, epochs, took) if training is not None else ()),
    ]
    largest = sorted(found, key=lambda limit: limit.saves_at_most_s)
    return list({limit.cause: limit for limit in largest}.values())


def _at_lower_clocks(
    context: Context, training: Training | None, epochs: Sequence[JudgedEpoch], findings: Sequence[Finding]
) -> Iterator[SpeedupLimit]:
    """Yield the limit of each cause that lowered a clock of training, by the GPU that lost most; notes have none."""
    now_s = fmean(epoch.train_s for epoch in epochs)
    noted = {(finding.rule, finding.gpu) for finding in findings if finding.severity == "info"}
    mine = [each for each in context.throttles if training is None or each.gpu in training.gpus]
    lost_s: dict[str, tuple[float, bool]] = {}
    for each in mine:
        if (each.cause, each.gpu) not in noted:
            lost = _clock_lost_s(context, each, epochs), each.unseen
            lost_s[each.cause] = max(lost_s.get(each.cause, (0.0, False)), lost)
    for cause, (seconds, unseen) in lost_s.items():
        if 0 < seconds < now_s:
            clock = "highest clock of the card" if unseen else "clock of the rest of its training"
            yield SpeedupLimit(cause, now_s, now_s - seconds, f"at the {clock}")


def _clock_lost_s(context: Context, throttle: Throttle, epochs: Sequence[JudgedEpoch]) -> float:
    """Return what a lower clock took of an epoch's training at most (s, mean), by the readings that there are."""
    series = context.series_of(throttle.gpu)
    t_s, util_pct, clock_mhz = (
        series.samples[name].to_numpy(dtype=float) for name in ("t_s", "gpu_util_pct", "sm_clock_mhz")
    )
    read = mask_in_any(t_s, [epoch.span for epoch in epochs]) & np.isfinite(util_pct) & np.isfinite(clock_mhz)
    read_s = float(series.sample_weight_s[read].sum())
    lost_s = float((throttle.throttled_s * throttle.lost * util_pct / 100)[read].sum())
    return lost_s / read_s * fmean(epoch.train_s for epoch in epochs) if read_s > 0 else 0.0


def limit_of_others(
    context: Context, training: Training | None, now_s: float, findings: Sequence[Finding]
) -> Iterator[SpeedupLimit]:
    """Yield the limit of other processes that worked in each epoch, by what they took of the fullest GPU's time."""
    shared = [f for f in findings if f.rule == OTHER_PROCESS and f.severity != "info" and f.cause]
    share = taken_by_others(context, training) if shared and training is not None else 0.0
    if share > 0:
        yield SpeedupLimit(OTHER_PROCESS, now_s, now_s * (1 - share), "without what they took of the GPU's time")


def limits_at_epoch_ends(epochs: Sequence[JudgedEpoch], findings: Sequence[Finding]) -> Iterator[SpeedupLimit]:
    """Yield a limit for each cause that makes the ends of epochs longer: it is of whole epochs, their ends included."""
    took: dict[str, list[Span]] = {}
    for finding in findings:
        if RULES[finding.rule].at_epoch_ends and finding.cause and finding.severity != "info":
            took.setdefault(finding.cause.name, []).append(finding.span)
    wholes = [(epoch.summary.start_t_s, epoch.summary.end_t_s) for epoch in epochs]
    now_s = fmean(end - start for start, end in wholes) if wholes else 0.0
    for cause, spans in took.items():
        best_s = now_s - float(interval_cover(spans).seconds_in_each(wholes).mean()) if wholes else 0.0
        if 0 < best_s < now_s:
            yield SpeedupLimit(cause, now_s, best_s, "without the time it took", at_epoch_ends=True)


def what_took_time(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings that say what took time at a moment, each time that it did.

    A wait for a GPU that fell is covered by that fall, one for a rank that was late by what made it late.
    """
    causing = [f for f in findings if not f.expected and f.severity != "info" and f.cause]
    took = [each for f in causing if RULES[f.rule].takes_epoch_time for each in f.each]
    fell = IntervalIndex([f for f in took if RULES[f.rule].fall or f.rule == SLOW_RANK], span_of)
    return [
        f for f in took if f.rule != WAITING_FOR_PEER or not any(_overlap_s(f, other) > 0 for other in fell(*f.span))
    ]


def span_of(finding: Finding) -> Span:
    """Return from when to when a finding lasted."""
    return finding.span


def _overlap_s(one: Finding, other: Finding) -> float:
    return min(one.end_t_s, other.end_t_s) - max(one.start_t_s, other.start_t_s)


def limits_of_disturbed_epochs(
    epochs: Sequence[JudgedEpoch], steady: Sequence[JudgedEpoch], findings: IntervalIndex[Finding]
) -> list[SpeedupLimit]:
    """Return a limit for each cause that disturbed some epochs, from what those took longer than undisturbed ones.

    Those may have a little of it, too: with the time in which its drops left the GPU idle, if that is more, all goes.
    """
    if not steady:
        return []
    typical_s, now_s = median(epoch.train_s for epoch in steady), fmean(epoch.train_s for epoch in epochs)
    idle_s = _idle_s(epochs, findings)
    return [
        SpeedupLimit(cause, now_s, min(best_s, now_s - idle_s.get(cause, 0.0)), "without the time it took")
        for cause, lost_s in _lost_s(epochs, typical_s, findings).items()
        for best_s in [max(now_s - lost_s / len(epochs), typical_s)]
        if lost_s > 0
    ]


def _idle_s(epochs: Sequence[JudgedEpoch], findings: IntervalIndex[Finding]) -> Mapping[str, float]:
    """Return for how long (s, mean of epochs) each cause left the GPU idle in drops of its utilisation.

    Not of a wait for data: of what a loader does meanwhile, the training after it has more.
    """
    of: dict[str, dict[str, Finding]] = {}
    for epoch in epochs:
        for finding in findings(*epoch.span):
            if finding.cause and RULES[finding.rule].drop and not CAUSES[finding.cause.name].is_input:
                of.setdefault(finding.cause.name, {})[finding.id] = finding
    spans = [epoch.span for epoch in epochs]
    lay_s = {name: interval_cover(map(span_of, mine.values())).seconds_in_each(spans) for name, mine in of.items()}
    return {
        name: float(lay_s[name].mean()) * fmean(map(_lost_utilisation_share, mine.values()))
        for name, mine in of.items()
    }


def _lower_utilisation_limits(epochs: Sequence[JudgedEpoch], took: Sequence[Finding]) -> Iterator[SpeedupLimit]:
    """Yield a limit for each cause that utilisation fell for in all epochs; another process has one by its own work."""
    now_s, of = fmean(epoch.train_s for epoch in epochs), dict[str, list[Finding]]()
    for finding in took:
        if finding.cause and RULES[finding.rule].fall:
            of.setdefault(finding.cause.name, []).append(finding)
    for cause, mine in of.items():
        lay_s = float(interval_cover(map(span_of, mine)).seconds_in_each([epoch.span for epoch in epochs]).mean())
        lost_s = lay_s * fmean(map(_lost_utilisation_share, mine))
        if cause != OTHER_PROCESS and 0 < lost_s < now_s:
            yield SpeedupLimit(cause, now_s, now_s - lost_s, "without the time it took")


def _waited(
    context: Context, training: Training, epochs: Sequence[JudgedEpoch], took: Sequence[Finding]
) -> Iterator[SpeedupLimit]:
    """Yield a limit for each cause for which all other ranks waited for one."""
    now_s, spans_of = fmean(epoch.train_s for epoch in epochs), waited_for(context, training, took)
    for cause, spans in spans_of.items():
        lost_s = float(interval_cover(spans).seconds_in_each([epoch.span for epoch in epochs]).mean())
        if 0 < lost_s < now_s:
            yield SpeedupLimit(cause, now_s, now_s - lost_s, "without the time it took")


def _lost_utilisation_share(finding: Finding) -> float:
    """Return how far utilisation fell, as a share (0 to 1) of its level; all of it where that is not known."""
    level_pct, low_pct = finding.level_pct, finding.low_pct
    return 1 - low_pct / level_pct if level_pct and low_pct is not None and low_pct <= level_pct else 1.0


def cost_s_of(finding: Finding) -> float | None:
    """Return what epochs took longer in all (s), of a finding of epochs that got slower, or of some slow ones."""
    return next((cost_s for cost_s in map(finding.number, COST_KEYS) if cost_s is not None), None)


def times_of(findings: Sequence[Finding]) -> list[Span]:
    """Return each time that each finding happened."""
    return [each.span for finding in findings for each in finding.each]


def limits_of_slower_epochs(
    epochs: Sequence[JudgedEpoch], slower: Sequence[Finding], shortest_s: float
) -> Iterator[SpeedupLimit]:
    """Yield a limit for each cause of slower epochs: without what it cost, which all epochs share in their mean.

    None takes less than `shortest_s`, the shortest of the training.
    """
    now_s = fmean(epoch.train_s for epoch in epochs)
    of: dict[str, list[Finding]] = {}
    for finding in slower:
        of.setdefault(finding.cause_name or UNEXPLAINED, []).append(finding)
    for cause, mine in of.items():
        touched = interval_cover(times_of(mine)).seconds_in_each([epoch.span for epoch in epochs]) > TOUCHED_S
        numbers = [epoch.summary.epoch for epoch, is_mine in zip(epochs, touched.tolist(), strict=True) if is_mine]
        if numbers:
            best_s = max(now_s - sum(cost_s_of(each) or 0.0 for each in mine) / len(epochs), shortest_s)
            to = None if numbers[-1] == epochs[-1].summary.epoch else numbers[-1]
            limit = SpeedupLimit(cause, now_s, best_s, "without the time it took")
            yield replace(limit, in_epochs=(numbers[0], to))


def _lost_s(epochs: Sequence[JudgedEpoch], typical_s: float, findings: IntervalIndex[Finding]) -> Mapping[str, float]:
    """Return the seconds that each cause cost: an epoch's excess goes to what lies in it, by the time it lies there."""
    lost: dict[str, float] = {}
    for epoch in epochs:
        shares: dict[str, float] = {}
        for finding in findings(*epoch.span):
            if finding.cause:
                name = finding.cause.name
                shares[name] = max(shares.get(name, 0.0), _shared_s(epoch, finding))
        total = sum(shares.values())
        for name, share in shares.items():
            if share > TOUCHED_S:
                lost[name] = lost.get(name, 0.0) + max(epoch.train_s - typical_s, 0.0) * share / total
    return lost


def _shared_s(epoch: JudgedEpoch, finding: Finding) -> float:
    return max(min(epoch.span[1], finding.end_t_s) - max(epoch.span[0], finding.start_t_s), 0.0)

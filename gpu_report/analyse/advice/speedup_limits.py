"""What training could be without a cause: the training part of an epoch now, and at best.

A limit holds for the removal of one cause alone: the rest of the epoch, above all the model's work, stays as it is.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import fmean, median

import numpy as np

from gpu_report.analyse.advice import thresholds as th
from gpu_report.analyse.advice.expected_epoch import epoch_as_it_went, expected_end_s, expected_epoch
from gpu_report.analyse.advice.waits_for_ranks import waited_for
from gpu_report.analyse.causes.garbage import garbage_collected
from gpu_report.analyse.causes.host import cores_short
from gpu_report.analyse.causes.main_process import OF_A_CALL, main_process_bound, partly_in_call
from gpu_report.analyse.causes.slow_modes import slowed_by_mode
from gpu_report.analyse.context import Context
from gpu_report.analyse.rules.gpu_imbalance import peer_waits
from gpu_report.analyse.rules.other_processes import taken_by_others
from gpu_report.analyse.signals.gpu.throttle import Throttle
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.timeline.trainings import Training, longest_run
from gpu_report.analyse.timeseries.gpu_series import GpuSeries
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.analyse.timeseries.intervals import IntervalIndex, Span, Spans, as_array, length_s, mask_in_any, minus
from gpu_report.analyse.timeseries.thresholds import TOUCHED_S
from gpu_report.catalogue import (
    CAUSES,
    GAPS,
    GREW_COST_KEY,
    LAUNCH_BOUND,
    RULES,
    SLOW_COST_KEY,
    SLOW_RANK,
    UNEXPLAINED,
    USER_CODE_KEY,
    WAITING_FOR_PEER,
)
from gpu_report.model import EpochSummary, Finding, SpeedupLimit
from gpu_report.wording import where_it_is

OTHER_PROCESS = "other-process"  # a rule and its cause
MAIN_PROCESS = "main-process"
COST_KEYS = (GREW_COST_KEY, SLOW_COST_KEY)  # of evidence: what epochs took longer in all (s)
# Of which epochs a limit calls one the epoch now: the table of epochs has others beside them, the first above all.
ALL, STEADY = "all epochs", "the steady-state epochs"
EXPECTED = "estimate from the batches that it trained"


@dataclass(frozen=True)
class _Epoch:
    """The training part of an epoch: where it lies, and its length in seconds.

    `seen` is what an epoch that is worked out was worked out from. `apart` is the share (0 to 1) of it that went with
    what disturbed each epoch, which has limits of its own: that is not `seen` then.
    """

    summary: EpochSummary
    train_s: float
    seen: tuple[Span, ...] = ()
    apart: float = 0.0

    @property
    def span(self) -> Span:
        return self.summary.start_t_s, self.summary.start_t_s + self.train_s

    @property
    def spans(self) -> tuple[Span, ...]:
        """Return when it trained, or what it was worked out from did."""
        return self.seen or (self.span,)


def training_of_limits(context: Context, epochs: Sequence[EpochSummary]) -> Training | None:
    """Return the training that limits are of: of the longest YOLO run the one in which its middle epoch lies.

    None where no training is distinguished.
    """
    longest = longest_run(epochs)
    starts = [epoch.start_t_s for epoch in epochs if epoch.run == longest]
    if starts:
        return context.training_at(starts[len(starts) // 2])
    return max(context.trainings, key=lambda training: length_s(training.train_spans), default=None)


def find_speedup_limits(
    context: Context, epochs: Sequence[EpochSummary], findings: Sequence[Finding]
) -> tuple[SpeedupLimit, ...]:
    """Return a limit for each cause of lost training time, the largest win first; empty where epochs are not known.

    Of several YOLO runs in one recording the longest is meant. Where no epoch of it can be judged, there is a limit of
    what holds it back all the time, by the epoch that is expected.
    """
    mine = [_Epoch(epoch, epoch.train_s) for epoch in judged(epochs) if epoch.train_s]
    if not mine:
        return tuple(_by_expected_epoch(context, epochs, findings))
    training = training_of_limits(context, epochs)
    took = _disturbing(context, findings)
    slower = [finding for finding in findings if _cost_s(finding) is not None]
    disturbing, held_up = IntervalIndex(took, _span), interval_cover([*map(_span, took), *_times(slower)])
    steady = [epoch for epoch in mine if not held_up.touches(epoch.span)]
    usual, left_out = steady or mine, left_out_words(epochs)
    rest_s, mean_rest_s = _rest_s(mine, median), _rest_s(mine, fmean)
    typical = partial(replace, now_is=f"median of {STEADY if 0 < len(steady) < len(mine) else ALL}{left_out}")
    on_average = partial(replace, now_is=f"mean of {ALL}{left_out}", is_mean=True)
    idle = IntervalIndex([f for f in took if _is_idle(f)], _span)
    lasts = steady or [_beside(epoch, idle(*epoch.span)) for epoch in mine]
    lasting = [limit for limit in [_lasting(context, training, lasts, findings)] if limit]
    momentary = [*_momentary(mine, steady, disturbing), *_of_slower_epochs(mine, slower)]
    in_all = [] if steady else _in_all_epochs(context, training, mine, findings, took)
    found: list[SpeedupLimit] = [
        *(typical(limit, rest_s=rest_s, waits_s=_waits_s(usual)) for limit in lasting),
        *(on_average(limit, rest_s=mean_rest_s) for limit in momentary),
        *(typical(limit) for limit in _of_long_ends(usual, rest_s, findings)),
        *(on_average(limit) for limit in _at_epoch_ends(mine, findings)),
        *(on_average(limit, rest_s=mean_rest_s) for limit in in_all),
    ]
    found += [typical(limit, rest_s=rest_s) for limit in _of_code(context, training, usual, findings, found)]
    worthwhile = [limit for limit in found if limit.is_worthwhile]
    return tuple(sorted(worthwhile, key=lambda limit: -limit.speed_up_at_most))


def _is_idle(finding: Finding) -> bool:
    """Tell whether GPUs did nothing, or less, while what disturbed a training lasted: others make it slower instead."""
    return RULES[finding.rule].fall or finding.rule in {SLOW_RANK, WAITING_FOR_PEER}


def _beside(epoch: _Epoch, idle: Sequence[Finding]) -> _Epoch:
    """Return a disturbed epoch without the times in which its GPUs were idle for what disturbed it."""
    rest = tuple(minus([epoch.span], [finding.span for finding in idle]))
    return replace(epoch, seen=rest, apart=1 - length_s(rest) / epoch.train_s)


def _by_expected_epoch(
    context: Context, epochs: Sequence[EpochSummary], findings: Sequence[Finding]
) -> Iterator[SpeedupLimit]:
    """Yield the limit of a training that no epoch is known of but its first, whose end is that of any."""
    training = training_of_limits(context, epochs)
    firsts = [each for each in _of_the_longest(epochs) if each.train_s and not each.partial]
    epoch = expected_epoch(context, training, firsts)
    expected = partial(replace, now_is=EXPECTED, rest_s=expected_end_s(context, firsts))
    seen = tuple(training.within(context.undisturbed)) if training is not None else ()
    steps = [_Epoch(epoch, epoch.train_s or 0.0, seen)] if epoch else []
    limit = _lasting(context, training, steps, findings)
    if limit is not None and limit.is_worthwhile:
        yield expected(limit)
    if steps:
        known = [limit] if limit else []
        yield from map(expected, _of_code(context, training, steps, findings, known))
    went = None if epoch or training is None else epoch_as_it_went(context, training)
    if went is not None:
        yield from map(expected, _taken(context, training, went.train_s or 0.0, findings))


def _of_code(
    context: Context,
    training: Training | None,
    epochs: Sequence[_Epoch],
    findings: Sequence[Finding],
    found: Sequence[SpeedupLimit],
) -> Iterator[SpeedupLimit]:
    """Yield the limit of the user's function that takes most of the steps beside what holds training back most.

    Not where its cause has a limit: that is then of more than the function. The GPU's work takes no less without it.
    """
    known = {limit.cause for limit in found}
    own = [(f.number(USER_CODE_KEY) or 0.0, f) for f in findings if f.rule == "user-code" and f.phase != "validation"]
    share_pct, most = max(own, key=lambda each: each[0], default=(0.0, None))
    if most is None or most.cause is None or most.cause.name in known or not 0 < share_pct < 100:
        return
    now_s = median(epoch.train_s for epoch in epochs)
    busy = min(_busy_shares(context, training, epochs), default=0.0) if training is not None else 0.0
    best_s = now_s * max(1 - share_pct / 100, busy)
    yield SpeedupLimit(most.cause.name, now_s, best_s, "without that function", function=where_it_is(most.where[0]))


def _in_all_epochs(
    context: Context,
    training: Training | None,
    epochs: Sequence[_Epoch],
    findings: Sequence[Finding],
    took: Sequence[Finding],
) -> list[SpeedupLimit]:
    """Return the limits of what held each epoch up for a while, so that none shows what it takes without.

    What lowers the clock may let utilisation fall, too: of the limits of one cause the largest holds.
    """
    now_s = fmean(epoch.train_s for epoch in epochs)
    found = [
        *_taken(context, training, now_s, findings),
        *_at_lower_clocks(context, training, epochs, findings),
        *_fallen(epochs, took),
        *(_waited(context, training, epochs, took) if training is not None else ()),
    ]
    largest = sorted(found, key=lambda limit: limit.saves_at_most_s)
    return list({limit.cause: limit for limit in largest}.values())


def _at_lower_clocks(
    context: Context, training: Training | None, epochs: Sequence[_Epoch], findings: Sequence[Finding]
) -> Iterator[SpeedupLimit]:
    """Yield the limit of each cause that lowered a clock of training, by the GPU that lost most; notes have none."""
    now_s = fmean(epoch.train_s for epoch in epochs)
    noted = {(finding.rule, finding.gpu) for finding in findings if finding.severity == "info"}
    mine = [each for each in context.throttles if training is None or each.gpu in training.gpus]
    lost_s: dict[str, float] = {}
    for each in mine:
        if (each.cause, each.gpu) not in noted:
            lost_s[each.cause] = max(lost_s.get(each.cause, 0.0), _clock_lost_s(context, each, epochs))
    for cause, seconds in lost_s.items():
        if 0 < seconds < now_s:
            yield SpeedupLimit(cause, now_s, now_s - seconds, "at the clock of the rest of its training")


def _clock_lost_s(context: Context, throttle: Throttle, epochs: Sequence[_Epoch]) -> float:
    """Return what a lower clock took of an epoch's training at most (s, mean), by the readings that there are."""
    series = context.series_of(throttle.gpu)
    t_s, util_pct, clock_mhz = (
        series.samples[name].to_numpy(dtype=float) for name in ("t_s", "gpu_util_pct", "sm_clock_mhz")
    )
    read = mask_in_any(t_s, [epoch.span for epoch in epochs]) & np.isfinite(util_pct) & np.isfinite(clock_mhz)
    read_s = float(series.sample_weight_s[read].sum())
    lost_s = float((throttle.throttled_s * throttle.lost * util_pct / 100)[read].sum())
    return lost_s / read_s * fmean(epoch.train_s for epoch in epochs) if read_s > 0 else 0.0


def _taken(
    context: Context, training: Training | None, now_s: float, findings: Sequence[Finding]
) -> Iterator[SpeedupLimit]:
    """Yield the limit of other processes that worked in each epoch, by what they took of the fullest GPU's time."""
    shared = [f for f in findings if f.rule == OTHER_PROCESS and f.severity != "info" and f.cause]
    share = taken_by_others(context, training) if shared and training is not None else 0.0
    if share > 0:
        yield SpeedupLimit(OTHER_PROCESS, now_s, now_s * (1 - share), "without what they took of the GPU's time")


def _at_epoch_ends(epochs: Sequence[_Epoch], findings: Sequence[Finding]) -> Iterator[SpeedupLimit]:
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


def _waits_s(epochs: Sequence[_Epoch]) -> float:
    """Return what the training part of an epoch waits for data (s), 0 where callbacks did not report it."""
    waits = [epoch.summary.data_wait_s for epoch in epochs if epoch.summary.data_wait_s is not None]
    return median(waits) if waits else 0.0


def _rest_s(epochs: Sequence[_Epoch], middle: Callable[[list[float]], float]) -> float:
    """Return what an epoch takes beside its training (s): validation, checkpoint, and what lies between."""
    rests = [epoch.summary.end_t_s - epoch.summary.start_t_s - epoch.train_s for epoch in epochs]
    return max(middle(rests), 0.0) if rests else 0.0


def _disturbing(context: Context, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings that say what took time at a moment, each time that it did.

    A wait for a GPU that fell is covered by that fall, one for a rank that was late by what made it late.
    """
    causing = [f for f in findings if not f.expected and f.severity != "info" and f.cause]
    took = [each for f in causing if RULES[f.rule].takes_epoch_time for each in _each_time(context, f)]
    fell = IntervalIndex([f for f in took if RULES[f.rule].fall or f.rule == SLOW_RANK], _span)
    return [
        f for f in took if f.rule != WAITING_FOR_PEER or not any(_overlap_s(f, other) > 0 for other in fell(*f.span))
    ]


def _each_time(context: Context, finding: Finding) -> list[Finding]:
    """Return a finding once for each time; of a lower clock, whose finding is of its longest stretch, for each one."""
    held = [each.spans for each in context.throttles if (each.cause, each.gpu) == (finding.rule, finding.gpu)]
    spans = [span for spans in held for span in spans]
    return [replace(finding, start_t_s=start, end_t_s=end) for start, end in spans] or list(finding.each)


def _span(finding: Finding) -> Span:
    return finding.span


def _overlap_s(one: Finding, other: Finding) -> float:
    return min(one.end_t_s, other.end_t_s) - max(one.start_t_s, other.start_t_s)


def judged(epochs: Sequence[EpochSummary]) -> list[EpochSummary]:
    """Return the epochs of the longest YOLO run, without those that do more than train.

    The first of a process warms up, where the mosaic closes the loader is made anew, and `time=` cuts the last one.
    """
    return [epoch for epoch in _of_the_longest(epochs) if not epoch.is_special]


def _of_the_longest(epochs: Sequence[EpochSummary]) -> list[EpochSummary]:
    """Return the epochs of the longest YOLO run; those whose training part is known, where it is of any."""
    longest = longest_run(epochs)
    mine = [epoch for epoch in epochs if epoch.run == longest]
    return [epoch for epoch in mine if epoch.train_s] or mine


def left_out_words(epochs: Sequence[EpochSummary]) -> str:
    """Return which epochs of the longest YOLO run are not judged, in words; empty where all are."""
    mine = _of_the_longest(epochs)
    kinds = (
        ("the first", any(epoch.first for epoch in mine)),
        ("the one that turns mosaic off", any(epoch.closing for epoch in mine)),
        ("the one that was profiled", any(epoch.profiled for epoch in mine)),
        ("the last one, which was cut short", any(epoch.partial for epoch in mine)),
    )
    named = " and ".join(words for words, there in kinds if there)
    return f", without {named}" if named else ""


def lasting_causes(context: Context, training: Training, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings of what holds a training back all the time, with their causes."""
    starved = [f for f in findings if f.rule == "starved" and f.cause]
    return [f for f in starved if context.training_at(f.start_t_s, f.gpu) is training]


def _lasting(
    context: Context, training: Training | None, epochs: Sequence[_Epoch], findings: Sequence[Finding]
) -> SpeedupLimit | None:
    """Return the limit of what holds training back all the time: of its cause where one is known, else of all gaps."""
    if not epochs or training is None:
        return None
    held_back = lasting_causes(context, training, findings)
    # named as in the ledger, where all that is not explained is gaps; a warning of it is reported as what it is
    causes = [(f.cause.name, f.severity) for f in held_back if f.cause]
    cause, severity = next((each for each in causes if each != ("unexplained", "info")), (GAPS, ""))
    now_s = median(epoch.train_s for epoch in epochs)
    waits = [epoch.summary.data_wait_s for epoch in epochs]
    signals = context.signals.of_training(min(training.gpus), training) if training.gpus else None
    # where cores are short the main process is late, too, and its own work would take less with more of them
    short = signals is not None and cores_short(signals)
    if CAUSES[cause].is_input and not short and all(wait is not None for wait in waits):
        best_s = min(epoch.train_s - (epoch.summary.data_wait_s or 0.0) for epoch in epochs)
        return _limit(cause, now_s, best_s, "shortest epoch, without its wait for data")
    # what is but a note lies in the kernels that this batch makes: they stay as they are, and only its gaps go; where
    # the kernels themselves could be fewer and fuller, utilisation is no limit
    if cause == LAUNCH_BOUND and severity != "info":
        limit = _by_occupancy(now_s, signals)
    else:
        limit = _by_utilisation(cause, now_s, _busy_shares(context, training, epochs), signals)
    if limit is not None:
        apart = fmean(epoch.apart for epoch in epochs)
        limit = replace(limit, epoch_s_at_best=now_s - (1 - apart) * limit.saves_at_most_s)
    call = signals.idle_location.call if signals is not None and signals.idle_location is not None else None
    if limit is None or call is None or signals is None or _share_in_call(cause, signals) is None:
        return limit
    at = context.signals.place_in_call(signals.gpu, call, context.signals.steady_of(training))
    return limit if at is None else replace(limit, function=where_it_is(at))


def _by_occupancy(now_s: float, signals: IntervalSignals | None) -> SpeedupLimit | None:
    """Return the limit of steps that are too small for the GPU, by how much of it they fill; None where not recorded.

    What the main process does longer the more images a batch has stays.
    """
    occupancy = signals.gpu_within("sm_occupancy_pct") if signals else None
    if occupancy is None:
        return None
    stays = signals.idle_location.by_image if signals and signals.idle_location else 0.0
    basis = f"the GPU filled to {th.MOST_OCCUPANCY_PCT:.0f} %, about the most in practice"
    return _limit(LAUNCH_BOUND, now_s, now_s * max(occupancy / th.MOST_OCCUPANCY_PCT, stays), basis)


def _by_utilisation(
    cause: str, now_s: float, busy: Sequence[float], signals: IntervalSignals | None
) -> SpeedupLimit | None:
    """Return the limit of a cause by what the GPUs were busy (0 to 1 each), or without what is known to be it.

    A debugging mode makes the GPU wait between kernels; how much of its gaps it makes, nothing tells. Nor does a GPU
    that is hardly busy say how fast it could be: launching, which no reading tells, takes more than its work then.
    """
    taken = _taken_by(cause, signals)
    if taken is not None and any(busy):
        share, basis = taken
        # a rank that waits for the one in that function shows as busy: the least busy GPU has waited for none
        return _limit(cause, now_s, now_s * max(1 - share, min(busy)), basis)
    if max(busy, default=0.0) < th.LEAST_BUSY_SHARE or (signals is not None and slowed_by_mode(signals) is not None):
        return None
    return _limit(cause, now_s, now_s * max(busy), "GPU never idle")


def _taken_by(cause: str, signals: IntervalSignals | None) -> tuple[float, str] | None:
    """Return the share (0 to 1) of training time that goes with what is known to be the cause, and without what."""
    in_call = _share_in_call(cause, signals)
    if in_call is not None:
        return in_call, "without that function"
    if signals is None or signals.garbage is None or cause != MAIN_PROCESS or garbage_collected(signals) is None:
        return None
    return signals.garbage.share, "without Python's garbage collector"


def _share_in_call(cause: str, signals: IntervalSignals | None) -> float | None:
    """Return the share (0 to 1) of training time that goes with the function of the user's that is the cause.

    It holds the next step up all the while that it lasts, also while the GPU still works on the one before; but not
    while it only waits for that, which has to be done without it, too.
    """
    if signals is None or signals.idle_location is None or cause not in OF_A_CALL:
        return None
    only = partly_in_call(signals) is not None and slowed_by_mode(signals) is main_process_bound(signals) is None
    taken = signals.idle_location.call_of_all - signals.idle_location.call_waited
    return taken if signals.idle_location.is_in_call or only else None


def _limit(cause: str, now_s: float, best_s: float, basis: str) -> SpeedupLimit | None:
    return SpeedupLimit(cause, now_s, best_s, basis) if best_s > 0 else None


def _busy_shares(context: Context, training: Training, epochs: Sequence[_Epoch]) -> list[float]:
    """Return mean utilisation (0 to 1) of each used GPU in these epochs: none can do its work in less time.

    What a GPU spins for a late one of its training, or of another node, is no work of it.
    """
    spans = as_array([span for epoch in epochs for span in epoch.spans])
    mine = [series for series in context.series if series.gpu in training.gpus]
    ahead = {gpu: share for gpu, (_, share) in context.cached(peer_waits).items()}
    means = [(series.gpu, *_mean_work_pct(context, series, spans)) for series in mine]
    return [pct / 100 * (1 - ahead.get(gpu, 0.0)) for gpu, pct, seconds in means if seconds > 0]


def _mean_work_pct(context: Context, series: GpuSeries, spans: Spans) -> tuple[float, float]:
    """Return for which share (%) of the time of its readings in some spans a GPU worked, and the seconds of these."""
    waits = [wait.span for wait in context.busy_waits if wait.gpu == series.gpu]
    if not waits:
        return series.mean_util_in(spans)
    work_pct = 100 * context.work_in_waits(series)
    work_pct = np.where(mask_in_any(series.t_s, waits), work_pct, series.util_pct.astype(float))
    there = mask_in_any(series.t_s, spans)
    weight_s = series.weight_s[there]
    seconds = float(weight_s.sum())
    return (float((weight_s * work_pct[there]).sum()) / seconds, seconds) if seconds > 0 else (0.0, 0.0)


def _momentary(
    epochs: Sequence[_Epoch], steady: Sequence[_Epoch], findings: IntervalIndex[Finding]
) -> list[SpeedupLimit]:
    """Return a limit for each cause that disturbed some epochs, from what those took longer than undisturbed ones."""
    if not steady:
        return []
    typical_s, now_s = median(epoch.train_s for epoch in steady), fmean(epoch.train_s for epoch in epochs)
    return [
        SpeedupLimit(cause, now_s, max(now_s - lost_s / len(epochs), typical_s), "without the time it took")
        for cause, lost_s in _lost_s(epochs, typical_s, findings).items()
        if lost_s > 0
    ]


def _fallen(epochs: Sequence[_Epoch], took: Sequence[Finding]) -> Iterator[SpeedupLimit]:
    """Yield a limit for each cause that utilisation fell for in all epochs; another process has one by its own work."""
    now_s, of = fmean(epoch.train_s for epoch in epochs), dict[str, list[Finding]]()
    for finding in took:
        if finding.cause and RULES[finding.rule].fall:
            of.setdefault(finding.cause.name, []).append(finding)
    for cause, mine in of.items():
        lay_s = float(interval_cover(map(_span, mine)).seconds_in_each([epoch.span for epoch in epochs]).mean())
        lost_s = lay_s * fmean(map(_depth, mine))
        if cause != OTHER_PROCESS and 0 < lost_s < now_s:
            yield SpeedupLimit(cause, now_s, now_s - lost_s, "without the time it took")


def _waited(
    context: Context, training: Training, epochs: Sequence[_Epoch], took: Sequence[Finding]
) -> Iterator[SpeedupLimit]:
    """Yield a limit for each cause for which all other ranks waited for one."""
    now_s, spans_of = fmean(epoch.train_s for epoch in epochs), waited_for(context, training, took)
    for cause, spans in spans_of.items():
        lost_s = float(interval_cover(spans).seconds_in_each([epoch.span for epoch in epochs]).mean())
        if 0 < lost_s < now_s:
            yield SpeedupLimit(cause, now_s, now_s - lost_s, "without the time it took")


def _depth(finding: Finding) -> float:
    """Return how far utilisation fell, as a share (0 to 1) of its level; all of it where that is not known."""
    level_pct, low_pct = finding.level_pct, finding.low_pct
    return 1 - low_pct / level_pct if level_pct and low_pct is not None and low_pct <= level_pct else 1.0


def _of_long_ends(epochs: Sequence[_Epoch], rest_s: float, findings: Sequence[Finding]) -> Iterator[SpeedupLimit]:
    """Yield the limit of whole epochs without the validation, or the saving, that takes much of each.

    Of a note without advice there is none: nothing is known to make them shorter.
    """
    parts: dict[str, Callable[[EpochSummary], float | None]] = {
        "validation": lambda epoch: epoch.validation_s,
        "checkpoint": lambda epoch: epoch.checkpoint_s,
    }
    now_s = median(epoch.train_s for epoch in epochs) + rest_s
    told = [f for f in findings if f.rule == "long-epoch-ends" and (f.advice or f.severity != "info")]
    for cause in {f.cause.name: f for f in told if f.cause}:
        took = [part(epoch.summary) for part in [parts[cause]] for epoch in epochs] if cause in parts else []
        known = [seconds for seconds in took if seconds is not None]
        if known and 0 < median(known) < now_s:
            yield SpeedupLimit(cause, now_s, now_s - median(known), "without it", at_epoch_ends=True)


def _cost_s(finding: Finding) -> float | None:
    """Return what epochs took longer in all (s), of a finding of epochs that got slower, or of some slow ones."""
    return next((cost_s for cost_s in map(finding.number, COST_KEYS) if cost_s is not None), None)


def _times(findings: Sequence[Finding]) -> list[Span]:
    return [each.span for finding in findings for each in finding.each]


def _of_slower_epochs(epochs: Sequence[_Epoch], slower: Sequence[Finding]) -> Iterator[SpeedupLimit]:
    """Yield a limit for each cause of slower epochs: without what it cost, which all epochs share in their mean."""
    now_s, shortest_s = fmean(epoch.train_s for epoch in epochs), min(epoch.train_s for epoch in epochs)
    of: dict[str, list[Finding]] = {}
    for finding in slower:
        of.setdefault(finding.cause.name if finding.cause else UNEXPLAINED, []).append(finding)
    for cause, mine in of.items():
        touched = interval_cover(_times(mine)).seconds_in_each([epoch.span for epoch in epochs]) > TOUCHED_S
        numbers = [epoch.summary.epoch for epoch, is_mine in zip(epochs, touched.tolist(), strict=True) if is_mine]
        if numbers:
            best_s = max(now_s - sum(_cost_s(each) or 0.0 for each in mine) / len(epochs), shortest_s)
            to = None if numbers[-1] == epochs[-1].summary.epoch else numbers[-1]
            limit = SpeedupLimit(cause, now_s, best_s, "without the time it took")
            yield replace(limit, in_epochs=(numbers[0], to))


def _lost_s(epochs: Sequence[_Epoch], typical_s: float, findings: IntervalIndex[Finding]) -> Mapping[str, float]:
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


def _shared_s(epoch: _Epoch, finding: Finding) -> float:
    return max(min(epoch.span[1], finding.end_t_s) - max(epoch.span[0], finding.start_t_s), 0.0)

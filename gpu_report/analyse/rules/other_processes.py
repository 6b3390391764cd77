"""Rule: another process worked on a GPU that the training used. Utilisation may even rise; the training gets less."""

from collections.abc import Sequence

import numpy as np

from gpu_report.analyse.causes.confidence import POSSIBLE, STRONG
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence, usually
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.shared_gpu_speed import lost_to_others_s, speed_left, typical_per_s
from gpu_report.analyse.signals.host.other_processes import UNNAMED, OtherProcess, share_of_others
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats, GpuSeries
from gpu_report.analyse.timeseries.intervals import Span, as_array, intersect, length_s, mask_in_any, rows_before, union
from gpu_report.gpu_words import gpu_words, gpus_words
from gpu_report.model import Advice, Cause, Evidence, Finding, Occurrence
from gpu_report.wording import length, upper_first


def other_processes(context: Context) -> list[Finding]:
    """Report every process that worked on a GPU of the training beside it, even one that it started itself.

    All stays of one process on a GPU are one finding.
    """
    phases = [p.span for p in context.phases if p.name in {"train", "validation"}]
    trained = phases or [training.span for training in context.trainings]
    stays: dict[tuple[int, int], list[OtherProcess]] = {}
    for other in sorted(context.used_by_others, key=lambda other: other.span):
        if length_s(intersect([other.span], trained)) >= th.OTHER_PROCESS_AT_LEAST_S:
            stays.setdefault((other.gpu, other.pid), []).append(other)
    return [_finding(context, each, list(stays.values())) for each in stays.values()]


def others_work(context: Context) -> dict[int, Floats]:
    """Return the share of each reading's work that was other processes', by GPU of the training that had any."""
    shared = {other.gpu for other in context.used_by_others}
    mine = [series for series in context.used_series if series.gpu in shared]
    shares = {series.gpu: _others_share(context, series) for series in mine}
    return {gpu: share for gpu, share in shares.items() if share.any()}


def _others_share(context: Context, series: GpuSeries) -> Floats:
    """Return the share of each reading's work that was others': what the driver says, or more where training lost more.

    A GPU that two share is slower for each than their shares of its time say.
    """
    share = share_of_others(context.run, series, context.used_by_others)
    stays = union([other.span for other in context.used_by_others if other.gpu == series.gpu])
    lost = lost_to_others_s(context, series.gpu, stays)
    trained = intersect(stays, context.all_train_spans)
    there = np.zeros(len(series.t_s))
    there[mask_in_any(series.t_s, trained)] = 1.0
    theirs_s = float((series.weight_s[:] * series.util_pct.astype(float) / 100 * share * there).sum())
    if not theirs_s or lost is None or lost <= theirs_s:
        return share
    return np.where(there > 0, np.minimum(share * lost / theirs_s, 1.0), share)


def lost_to_others(context: Context) -> dict[int, Floats]:
    """Return which share of each reading's work was none for other processes, by GPU of the training that lost any.

    Ranks step together: what one GPU of a training lost, the others waited for, and read as busy meanwhile.
    """
    lost, taken = dict(context.cached(others_work)), context.cached(others_work)
    for training in context.trainings:
        mine = [series for series in context.used_series if series.gpu in training.gpus]
        hit = [series for series in mine if series.gpu in taken]
        for series in mine if training.steps_together and hit else ():
            there = mask_in_any(series.t_s, as_array(training.train_spans))
            shares = np.max([_at(series, each, taken[each.gpu]) for each in hit], axis=0)
            lost[series.gpu] = np.where(there, shares, lost.get(series.gpu, 0.0))
    return lost


def _at(series: GpuSeries, other: GpuSeries, values: Floats) -> Floats:
    """Return a value of another GPU's readings at those of a GPU: that of the last one before."""
    row = np.minimum(rows_before(other.t_s, series.t_s, "right"), len(values)) - 1
    return np.where(row >= 0, values[np.maximum(row, 0)], 0.0)


def taken_by_others(context: Context, training: Training) -> float:
    """Return the share (0 to 1) of a training's time that other processes took: of the GPU on which it was most."""
    spans, work = as_array(training.train_spans), context.cached(others_work)
    mine = [series for series in context.used_series if series.gpu in training.gpus and series.gpu in work]
    return max((_taken(each, work[each.gpu], mask_in_any(each.t_s, spans)) for each in mine), default=0.0)


def _taken(series: GpuSeries, share: Floats, there: Bools) -> float:
    """Return which share (0 to 1) of a GPU's time in some readings went to others, by their `share` of its work."""
    seconds = series.weight_s[there]
    took_s = float((seconds * share[there] * series.util_pct[there].astype(float) / 100).sum())
    return took_s / float(seconds.sum()) if seconds.sum() > 0 else 0.0


def _finding(context: Context, stays: Sequence[OtherProcess], every: Sequence[Sequence[OtherProcess]]) -> Finding:
    """Return the finding of one process; signals are those of its longest stay, `every` has the stays of all."""
    other = max(stays, key=lambda stay: stay.span[1] - stay.span[0])
    spans = [stay.span for stay in stays]
    keep = _keep_off([each[0] for each in every if each[0].name == other.name])
    signals = context.signals.of(other.gpu, *other.span)
    times = f" ({len(spans)} times)" if len(spans) > 1 else ""
    took = f"for {length(length_s(spans))}{times}{_cost(context, stays)}"
    return context.finding(
        "other-process",
        "warning",
        (spans[0][0], spans[-1][1]),
        f"{upper_first(other.who) if other.pid == UNNAMED else other.who} shared {gpu_words(other.gpu)} {took}",
        gpu=other.gpu,
        evidence=_evidence(context, other, signals, spans),
        cause=_cause(other),
        advice=(Advice(f"{keep} while it trains", short=keep),),
        kernel_events=tuple(signals.kernel),
        occurrences=_occurrences(context, stays) if len(spans) > 1 else (),
        lost_gpu_s=lost_to_others_s(context, other.gpu, spans),
    )


def _cause(other: OtherProcess) -> Cause:
    if other.pid != UNNAMED:
        return Cause("other-process", STRONG, f"{other.who} shared the GPU with the training")
    by = "memory of the GPU rose and later fell by as much, while it worked no less; the log has no processes"
    return Cause("other-process", POSSIBLE, by)


def _keep_off(alike: Sequence[OtherProcess]) -> str:
    """Return from which GPUs a program is to be kept: all ranks wait for the one that it slows most."""
    pids = sorted({each.pid for each in alike})
    which = f"pids {pids[0]} and {pids[-1]}" if len(pids) == 2 else f"{len(pids)} processes"
    who = alike[0].who if len(pids) == 1 else f"{alike[0].name or 'a program'} ({which})"
    who = "other processes" if pids == [UNNAMED] else who
    return f"Keep {who.replace('`', chr(39))} off {gpus_words(sorted({each.gpu for each in alike}))}"


def _occurrences(context: Context, stays: Sequence[OtherProcess]) -> tuple[Occurrence, ...]:
    return tuple(
        Occurrence(*stay.span, (stay.gpu,), lost_to_others_s(context, stay.gpu, [stay.span])) for stay in stays
    )


def _cost(context: Context, stays: Sequence[OtherProcess]) -> str:
    """Return what a process left of the training's throughput in words, else what it took of the GPU's time.

    That is known where nothing shows how fast the training is without it; empty where neither is.
    """
    left = speed_left(context, stays[0].gpu, [stay.span for stay in stays])
    if left is not None:
        return f": training speed was {100 * left:.0f} % of typical"
    series = context.series_of(stays[0].gpu)
    trained = context.all_train_spans
    taken = _taken(series, share_of_others(context.run, series, stays), mask_in_any(series.t_s, as_array(trained)))
    return f": it took {100 * taken:.0f} % of training time" if taken >= th.TAKEN_SHARE else ""


def _evidence(
    context: Context,
    other: OtherProcess,
    signals: IntervalSignals,
    spans: Sequence[Span],
) -> tuple[Evidence, ...]:
    throughput = context.throughput
    return evidence(
        ("training speed meanwhile", throughput.images_per_s(spans) if throughput else None, "images/s"),
        usually(typical_per_s(context, other.gpu, spans[0][0]), "images/s"),
        ("its share of the GPU time meanwhile, at most", other.util_pct, "%"),
        ("its memory", other.memory_mib, "MiB"),
        ("utilisation meanwhile", signals.gpu_within("gpu_util_pct"), "%"),
        usually(signals.gpu_typical("gpu_util_pct"), "%"),
        ("sent to the GPU meanwhile (PCIe)", signals.gpu_within("pcie_rx_mib_s"), "MiB/s"),
        usually(signals.gpu_typical("pcie_rx_mib_s"), "MiB/s"),
        ("CPU of the loader's workers meanwhile", signals.within("workers_cpu_pct"), "% of a core"),
        usually(signals.typical("workers_cpu_pct"), "% of a core"),
    )

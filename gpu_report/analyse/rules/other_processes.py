"""Rule: another process worked on a GPU that the training used. Utilisation may even rise; the training gets less."""

from collections.abc import Sequence

import numpy as np

from gpu_report.analyse.causes.confidence import STRONG
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence, usually
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.other_processes import OtherProcess, share_of_others
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.gpu_series import Floats, GpuSeries
from gpu_report.analyse.timeseries.intervals import Span, as_array, intersect, length_s, mask_in_any, rows_before
from gpu_report.model import Advice, Cause, Evidence, Finding, Occurrence
from gpu_report.wording import length


def other_processes(context: Context) -> list[Finding]:
    """Report every process that worked on a GPU of the training beside it, even one that it started itself.

    All stays of one process on a GPU are one finding.
    """
    trained = [p.span for p in context.phases if p.name in {"train", "validation"}]
    stays: dict[tuple[int, int], list[OtherProcess]] = {}
    for other in sorted(context.used_by_others, key=lambda other: other.span):
        if length_s(intersect([other.span], trained)) >= th.OTHER_PROCESS_AT_LEAST_S:
            stays.setdefault((other.gpu, other.pid), []).append(other)
    return [_finding(context, each) for each in stays.values()]


def others_work(context: Context) -> dict[int, Floats]:
    """Return the share of each reading's work that was other processes', by GPU of the training that had any."""
    shared = {other.gpu for other in context.used_by_others}
    mine = [series for series in context.used_series if series.gpu in shared]
    shares = {series.gpu: share_of_others(context.run, series, context.used_by_others) for series in mine}
    return {gpu: share for gpu, share in shares.items() if share.any()}


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
    found, spans = [0.0], as_array(training.train_spans)
    for series in context.used_series:
        share = context.cached(others_work).get(series.gpu)
        if share is not None and series.gpu in training.gpus:
            there = mask_in_any(series.t_s, spans)
            seconds = series.weight_s[there]
            took_s = float((seconds * share[there] * series.util_pct[there].astype(float) / 100).sum())
            found.append(took_s / float(seconds.sum()) if len(seconds) and seconds.sum() > 0 else 0.0)
    return max(found)


def _finding(context: Context, stays: Sequence[OtherProcess]) -> Finding:
    """Return the finding of one process; signals are those of its longest stay."""
    other = max(stays, key=lambda stay: stay.span[1] - stay.span[0])
    spans = [stay.span for stay in stays]
    keep = f"Keep {other.who.replace('`', chr(39))} off GPU {other.gpu}"
    signals = context.signals.of(other.gpu, *other.span)
    typical_per_s = _typical_per_s(context, other)
    times = f" ({len(spans)} times)" if len(spans) > 1 else ""
    took = f"for {length(length_s(spans))}{times}{_at_speed(context, spans, typical_per_s)}"
    return context.finding(
        "other-process",
        "warning",
        (spans[0][0], spans[-1][1]),
        f"{other.who} shared GPU {other.gpu} with the training {took}",
        gpu=other.gpu,
        evidence=_evidence(context, other, signals, spans, typical_per_s),
        cause=Cause("other-process", STRONG, f"{other.who} shared the GPU with the training"),
        advice=(Advice(f"{keep} while it trains", short=keep),),
        kernel_events=tuple(signals.kernel),
        occurrences=_occurrences(context, stays, typical_per_s) if len(spans) > 1 else (),
    )


def _occurrences(
    context: Context, stays: Sequence[OtherProcess], typical_per_s: float | None
) -> tuple[Occurrence, ...]:
    return tuple(Occurrence(*stay.span, (stay.gpu,), _lost_s(context, stay, typical_per_s)) for stay in stays)


def _lost_s(context: Context, stay: OtherProcess, typical_per_s: float | None) -> float:
    """Return the seconds of training that a stay cost, 0 where callbacks told no throughput."""
    left = _speed_left(context, [stay.span], typical_per_s)
    return 0.0 if left is None else max(1 - left, 0.0) * (stay.span[1] - stay.span[0])


def _speed_left(context: Context, spans: Sequence[Span], typical_per_s: float | None) -> float | None:
    """Return what a process left of the training's throughput (a share), None where callbacks did not tell it."""
    then = context.throughput.images_per_s(spans) if context.throughput else None
    return then / typical_per_s if then is not None and typical_per_s else None


def _at_speed(context: Context, spans: Sequence[Span], typical_per_s: float | None) -> str:
    """Return what a process left of the training's throughput in words, empty where that is not known."""
    left = _speed_left(context, spans, typical_per_s)
    return "" if left is None else f": training speed was {100 * left:.0f} % of typical"


def _typical_per_s(context: Context, other: OtherProcess) -> float | None:
    """Return images a second in the steady state of the training that another process came to."""
    training = context.training_at(other.span[0], other.gpu)
    steady = context.signals.steady_of(training) if training else context.signals.steady
    return context.throughput.images_per_s(steady) if context.throughput else None


def _evidence(
    context: Context,
    other: OtherProcess,
    signals: IntervalSignals,
    spans: Sequence[Span],
    typical_per_s: float | None,
) -> tuple[Evidence, ...]:
    throughput = context.throughput
    return evidence(
        ("training speed meanwhile", throughput.images_per_s(spans) if throughput else None, "images/s"),
        usually(typical_per_s, "images/s"),
        ("its share of the GPU time, at most", other.util_pct, "%"),
        ("its memory", other.memory_mib, "MiB"),
        ("utilisation meanwhile", signals.gpu_within("gpu_util_pct"), "%"),
        usually(signals.gpu_typical("gpu_util_pct"), "%"),
        ("sent to the GPU meanwhile (PCIe)", signals.gpu_within("pcie_rx_mib_s"), "MiB/s"),
        usually(signals.gpu_typical("pcie_rx_mib_s"), "MiB/s"),
        ("CPU of the loader's workers meanwhile", signals.within("workers_cpu_pct"), "% of a core"),
        usually(signals.typical("workers_cpu_pct"), "% of a core"),
    )

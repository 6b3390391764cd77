"""Rule: another process worked on a GPU that the training used. Utilisation may even rise; the training gets less."""

from collections.abc import Sequence

from gpu_report.analyse.causes.confidence import STRONG
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence, usually
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.other_processes import OtherProcess
from gpu_report.analyse.timeseries.intervals import Span, intersect
from gpu_report.model import Advice, Cause, Evidence, Finding


def other_processes(context: Context) -> list[Finding]:
    """Report every process that worked on a GPU of the training beside it, even one that it started itself."""
    trained = [p.span for p in context.phases if p.name in {"train", "validation"}]
    found = [
        other
        for other in context.used_by_others
        if sum(b - a for a, b in intersect([other.span], trained)) >= th.OTHER_PROCESS_AT_LEAST_S
    ]
    found.sort(key=lambda other: other.span)
    return [_finding(context, other) for other in found]


def _finding(context: Context, other: OtherProcess) -> Finding:
    start_s, end_s = other.span
    keep = f"Keep {other.who.replace('`', chr(39))} off GPU {other.gpu}"
    signals = context.signals.of(other.gpu, *other.span)
    return context.finding(
        "other-process",
        "warning",
        (start_s, end_s),
        f"{other.who} shared GPU {other.gpu} with the training for {end_s - start_s:.0f} s{_at_speed(context, other)}",
        gpu=other.gpu,
        evidence=_evidence(context, other, signals),
        cause=Cause("other-process", STRONG, f"{other.who} shared the GPU with the training"),
        advice=(Advice(f"{keep} while it trains", short=keep),),
        kernel_events=tuple(signals.kernel),
    )


def _at_speed(context: Context, other: OtherProcess) -> str:
    """Return what the other process left of the training's throughput, empty where callbacks did not tell it."""
    throughput = context.throughput
    then, typical = (
        (throughput.images_per_s([other.span]), throughput.images_per_s(_steady(context, other)))
        if throughput
        else (None, None)
    )
    return f": training speed was {100 * then / typical:.0f} % of typical" if then is not None and typical else ""


def _steady(context: Context, other: OtherProcess) -> Sequence[Span]:
    """Return the spans of the steady state in the training that another process came to."""
    training = context.training_at(other.span[0], other.gpu)
    return context.signals.steady_of(training) if training else context.signals.steady


def _evidence(context: Context, other: OtherProcess, signals: IntervalSignals) -> tuple[Evidence, ...]:
    throughput, steady = context.throughput, _steady(context, other)
    return evidence(
        ("training speed meanwhile", throughput.images_per_s([other.span]) if throughput else None, "images/s"),
        usually(throughput.images_per_s(steady) if throughput else None, "images/s"),
        ("its share of the GPU time, at most", other.util_pct, "%"),
        ("its memory", other.memory_mib, "MiB"),
        ("utilisation meanwhile", signals.gpu_within("gpu_util_pct"), "%"),
        usually(signals.gpu_typical("gpu_util_pct"), "%"),
        ("sent to the GPU meanwhile (PCIe)", signals.gpu_within("pcie_rx_mib_s"), "MiB/s"),
        usually(signals.gpu_typical("pcie_rx_mib_s"), "MiB/s"),
        ("CPU of the loader's workers meanwhile", signals.within("workers_cpu_pct"), "% of a core"),
        usually(signals.typical("workers_cpu_pct"), "% of a core"),
    )

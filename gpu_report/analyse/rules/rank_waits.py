"""Rule: a GPU reads as busy and does nothing, because its rank waits for another one (DDP)."""

import numpy as np

from gpu_report.analyse.causes import explain
from gpu_report.analyse.causes.confidence import STRONG
from gpu_report.analyse.causes.thresholds import STOPPED
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence, stopped_processes, usually
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.thresholds import BUSY_WAIT_UTIL_PCT
from gpu_report.analyse.timeseries.intervals import Span, intersect, length_s, union
from gpu_report.model import Cause, Evidence, Finding, Interval


def waiting_for_peer(context: Context) -> list[Finding]:
    """Report where a rank's GPU spins at full utilisation and idle power for 10 s or more, and whom it waits for.

    Of the rank that is late the cause is looked for in its own processes. Where its GPU fell, that drop has it.
    """
    late = {wait: _late(context, wait.gpu, wait.span) for wait in context.busy_waits}
    waits = [_finding(context, wait, late[wait]) for wait in context.busy_waits]
    slow = {(gpu, wait.span): wait for wait, gpu in late.items() if gpu is not None and not _fell(context, gpu, wait)}
    return [
        *waits,
        *(found for (gpu, _), wait in slow.items() if (found := _slow_rank(context, gpu, wait)) is not None),
    ]


def _fell(context: Context, gpu: int, wait: Interval) -> bool:
    """Tell whether a GPU's utilisation fell in most of a wait."""
    spans = [drop.span for drop in context.drops if drop.gpu == gpu]
    return length_s(intersect(union(spans), [wait.span])) > wait.duration_s / 2


def _slow_rank(context: Context, gpu: int, wait: Interval) -> Finding | None:
    """Return why a rank was late, None where nobody can tell."""
    explained = explain(context.signals.of(gpu, *wait.span))
    if not explained.cause.confidence:
        return None
    return context.finding(
        "slow-rank",
        "warning",
        wait.span,
        f"The rank on GPU {gpu} was late, and GPU {wait.gpu} waited {wait.duration_s:.0f} s for it",
        gpu=gpu,
        evidence=explained.evidence,
        cause=explained.cause,
        advice=explained.advice,
    )


def _finding(context: Context, interval: Interval, late: int | None) -> Finding:
    span = interval.span
    signals = context.signals.of(interval.gpu, *span)
    power = signals.gpu_within("power_w")
    peer = f"GPU {late}" if late is not None else "another GPU"
    seconds = f"{interval.duration_s:.0f} s"
    waited = f"GPU {interval.gpu} waited {seconds} for {peer}"
    if late is None and _all_wait(context, span):
        waited = f"All GPUs of the training waited {seconds} for each other"
    return context.finding(
        "waiting-for-peer",
        "warning",
        span,
        f"{waited} (shows as {interval.mean_pct:.0f} % busy)",
        gpu=interval.gpu,
        evidence=_evidence(signals, power),
        cause=Cause("waiting-for-peer", STRONG, _explanation(signals, late)),
        kernel_events=tuple(signals.kernel),
    )


def _late(context: Context, gpu: int, span: Span) -> int | None:
    """Return the GPU that did least of the others: the rank that all wait for."""
    others = [t for t in context.series if t.gpu != gpu and t.gpu in context.activity.used_gpus]
    means = {t.gpu: mean for t in others if np.isfinite(mean := t.mean_util_pct(*span))}
    quiet = {gpu: mean for gpu, mean in means.items() if mean < BUSY_WAIT_UTIL_PCT}
    return min(quiet, key=lambda other: quiet[other], default=None)


def _all_wait(context: Context, span: Span) -> bool:
    """Tell whether all GPUs of the training waited in most of a span: their ranks wait for each other."""
    half_s = (span[1] - span[0]) / 2
    waiting = {wait.gpu for wait in context.busy_waits if length_s(intersect([wait.span], [span])) > half_s}
    return waiting >= set(context.activity.used_gpus)


def _explanation(signals: IntervalSignals, late: int | None) -> str:
    why = "; a signal had paused a process of the training" if _paused(signals) else ""
    whom = f"the one on GPU {late}" if late is not None else "one that never came to the same place in the code"
    return f"it showed full utilisation at idle power: its rank waited for {whom}{why}"


def _paused(signals: IntervalSignals) -> float | None:
    """Return how many processes of the training a signal had stopped, None where it had hardly stopped one."""
    stopped = signals.within("trainer_stopped")
    return stopped if stopped is not None and stopped >= STOPPED else None


def _evidence(signals: IntervalSignals, power: float | None) -> tuple[Evidence, ...]:
    return evidence(
        ("power meanwhile", power, "W"),
        usually(signals.gpu_typical("power_w"), "W"),
        ("tensor activity meanwhile", signals.gpu_within("tensor_active_pct"), "%"),
        usually(signals.gpu_typical("tensor_active_pct"), "%"),
        stopped_processes(_paused(signals)),
    )

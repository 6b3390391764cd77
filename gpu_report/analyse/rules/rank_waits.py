"""Rule: a GPU reads as busy and does nothing, because its rank waits for another one (DDP)."""

import numpy as np

from gpu_report.analyse.causes.confidence import STRONG
from gpu_report.analyse.causes.thresholds import STOPPED
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence, stopped_processes, usually
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.thresholds import BUSY_WAIT_UTIL_PCT
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.model import Cause, Evidence, Finding, Interval


def waiting_for_peer(context: Context) -> list[Finding]:
    """Report where a rank's GPU spins at full utilisation and idle power for 10 s or more, and whom it waits for."""
    return [_finding(context, wait) for wait in context.busy_waits]


def _finding(context: Context, interval: Interval) -> Finding:
    span = interval.span
    signals = context.signals.of(interval.gpu, *span)
    late = _late(context, interval.gpu, span)
    power = signals.gpu_within("power_w")
    peer = f"GPU {late}" if late is not None else "another GPU"
    seconds = f"{interval.duration_s:.0f} s"
    return context.finding(
        "waiting-for-peer",
        "warning",
        span,
        f"GPU {interval.gpu} waited {seconds} for {peer} (shows as {interval.mean_pct:.0f} % busy)",
        gpu=interval.gpu,
        evidence=_evidence(signals, power),
        cause=Cause("waiting-for-peer", STRONG, _explanation(signals, peer)),
        kernel_events=tuple(signals.kernel),
    )


def _late(context: Context, gpu: int, span: Span) -> int | None:
    """Return the GPU that did least of the others: the rank that all wait for."""
    others = [t for t in context.series if t.gpu != gpu and t.gpu in context.activity.used_gpus]
    means = {t.gpu: mean for t in others if np.isfinite(mean := t.mean_util_pct(*span))}
    quiet = {gpu: mean for gpu, mean in means.items() if mean < BUSY_WAIT_UTIL_PCT}
    return min(quiet, key=lambda other: quiet[other], default=None)


def _explanation(signals: IntervalSignals, peer: str) -> str:
    stopped = signals.within("trainer_stopped")
    why = "; a signal had paused a process of the training" if stopped is not None and stopped >= STOPPED else ""
    return f"it showed full utilisation at idle power: its rank waited for the one on {peer}{why}"


def _evidence(signals: IntervalSignals, power: float | None) -> tuple[Evidence, ...]:
    return evidence(
        ("power meanwhile", power, "W"),
        usually(signals.gpu_typical("power_w"), "W"),
        ("tensor activity meanwhile", signals.gpu_within("tensor_active_pct"), "%"),
        usually(signals.gpu_typical("tensor_active_pct"), "%"),
        stopped_processes(signals.within("trainer_stopped")),
    )

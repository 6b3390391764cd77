"""Rule: the kernel named a fault, whether or not utilisation fell."""

from gpu_report.analyse.context import Context
from gpu_report.analyse.signals.kernel_events import kernel_events_near
from gpu_report.model import Advice, Finding, KernelEvent


def kernel_faults(context: Context) -> list[Finding]:
    """Report every warning or fault that the kernel named, whether or not utilisation fell."""
    faults = [event for event in context.run.kernel.events if event.severity != "info"]
    return [_finding(context, event) for event in faults]


def _finding(context: Context, event: KernelEvent) -> Finding:
    times = f" ({event.count} times)" if event.count > 1 else ""
    where = f"GPU {event.gpu}: " if event.gpu is not None else ""
    return context.finding(
        "kernel",
        event.severity,
        (event.t_s, event.last_t_s if event.last_t_s is not None else event.t_s),
        f"{where}{event.meaning}{times}",
        gpu=event.gpu,
        kernel_events=kernel_events_near([event], event.t_s, event.t_s, event.gpu),
        advice=(Advice(event.action),) if event.action else (),
    )

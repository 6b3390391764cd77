"""Rule: the kernel named a fault, whether or not utilisation fell."""

from gpu_report.analyse.context import Context
from gpu_report.analyse.signals.kernel_events import kernel_events_near
from gpu_report.model import Advice, Finding, KernelEvent


def kernel_faults(context: Context) -> list[Finding]:
    """Report every warning or fault that the kernel named, whether or not utilisation fell."""
    faults = [event for event in context.run.kernel.events if event.severity != "info"]
    return [_finding(context, number, event) for number, event in enumerate(faults, 1)]


def _finding(context: Context, number: int, event: KernelEvent) -> Finding:
    epoch, phase = context.place_at(event.t_s)
    times = f" ({event.count} times)" if event.count > 1 else ""
    where = f"GPU {event.gpu}: " if event.gpu is not None else ""
    return Finding(
        id=f"kernel-{number}",
        rule="kernel",
        severity=event.severity,
        gpu=event.gpu,
        start_t_s=event.t_s,
        end_t_s=event.last_t_s if event.last_t_s is not None else event.t_s,
        summary=f"{where}{event.meaning}{times}",
        epoch=epoch,
        phase=phase,
        kernel_events=kernel_events_near([event], event.t_s, event.t_s, event.gpu),
        advice=(Advice(event.action),) if event.action else (),
    )

"""Rule: the kernel named a fault, whether or not utilisation fell."""

from gpu_report.analyse.context import Context
from gpu_report.analyse.kernel_near import kernel_events_near
from gpu_report.model import Advice, Finding, KernelEvent

NOT_OURS = "not the training, which went on"


def kernel_faults(context: Context) -> list[Finding]:
    """Report every warning or fault that the kernel named, whether or not utilisation fell."""
    faults = [event for event in context.run.kernel.events if event.severity != "info"]
    last_s = max((b.row.row_t_s for b in context.boundaries.all if b.told), default=float("-inf"))
    return [_finding(context, number, event, last_s) for number, event in enumerate(faults, 1)]


def _finding(context: Context, number: int, event: KernelEvent, last_s: float) -> Finding:
    epoch, phase = context.place_at(event.t_s)
    times = f" ({event.count} times)" if event.count > 1 else ""
    where = f"GPU {event.gpu}: " if event.gpu is not None else ""
    stranger = _stranger(context, event, last_s)
    return Finding(
        id=f"kernel-{number}",
        rule="kernel",
        severity="warning" if stranger else event.severity,
        gpu=event.gpu,
        start_t_s=event.t_s,
        end_t_s=event.last_t_s if event.last_t_s is not None else event.t_s,
        summary=f"{where}{event.meaning}{times}{stranger}",
        epoch=epoch,
        phase=phase,
        kernel_events=kernel_events_near([event], event.t_s, event.t_s, event.gpu),
        advice=(Advice(event.action),) if event.action and not stranger else (),
    )


def _stranger(context: Context, event: KernelEvent, last_s: float) -> str:
    """Return whose fault it was where it was another program's, empty where it may be the training's own.

    `last_s` is when the last epoch that was told came to its end.

    A fault that names its process ends that process's work on the GPU: a training of other pids that came to the end of
    another epoch afterwards did not have it. (Pids alone do not tell: in a container the kernel counts others.)
    """
    own = {process.pid for process in context.run.inside}
    went_on = last_s > event.t_s
    # what is critical concerns the whole GPU, but for a kill for want of memory, which ends its victim alone
    if event.pid is None or event.pid in own or not went_on or (event.severity == "critical" and event.kind != "oom"):
        return ""
    who = f"{event.process or 'a process'} (pid {event.pid})"
    return f"; it was {NOT_OURS}" if who in event.meaning else f"; it was {who}, {NOT_OURS}"

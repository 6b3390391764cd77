"""The fault of a GPU (an Xid of its driver) that ended a training: it names its process just before its end."""

from collections.abc import Collection
from dataclasses import dataclass

from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.signals.host.kernel_events import kernel_events_near
from gpu_report.gpu_words import gpu_words
from gpu_report.model import Advice, Gpu, KernelEvent, NearbyKernelEvent
from gpu_report.wording import upper_first

XID = "xid"
WHAT = {
    "memory": "A memory error of",
    "hardware": "A hardware fault of",
    "link": "A fault of the PCIe or NVLink link of",
    "application": "An error of the program on",
    "driver": "A driver fault on",
}
ANY = "A fault of"


@dataclass(frozen=True)
class FatalXid:
    """What ended a training, without a verb, with the line of the kernel log, and what to do before it is resumed.

    It may be of the program itself (`is_of_program`), which did what a GPU does not allow.
    """

    what: str
    is_of_program: bool
    kernel: tuple[NearbyKernelEvent, ...]
    advice: tuple[Advice, ...]


def fatal_xid(context: Context, pids: Collection[int], end_s: float) -> FatalXid | None:
    """Return the first Xid that names a process of a training within seconds of its end, None without one.

    The driver names whose work it ended. What it only notes (severity info) is left out, such as that it cleaned up
    behind a program that was stopped.
    """
    near = (each for each in context.run.kernel.events if -th.BEFORE_THE_END_S <= end_s - each.t_s <= th.XID_BEFORE_S)
    processes = context.run.processes
    ours = {*pids, *(processes["pid"][processes["owner"] == "trainer"] if len(processes) else ())}
    mine = [each for each in near if each.kind == XID and each.severity != "info" and each.pid in ours]
    first = min(mine, key=lambda each: each.t_s, default=None)
    if first is None:
        return None
    where = "the GPU" if first.gpu is None else gpu_words(first.gpu)
    what = f"{WHAT.get(first.xid_kind or '', ANY)} {where} (Xid {first.code})"
    of_program = first.xid_kind == "application"
    return FatalXid(what, of_program, kernel_events_near([first], end_s, end_s, first.gpu), _advice(context, first))


def _advice(context: Context, event: KernelEvent) -> tuple[Advice, ...]:
    """Return what to do: what the driver asks for, now that nothing runs; else what the Xid asks for."""
    gpu = None if event.gpu is None else context.run.gpu(event.gpu)
    if gpu is not None and (short := _asked_for(gpu)):
        return (
            Advice(f"{short}. `nvidia-smi --gpu-reset -i {gpu.index}` resets a GPU, and so does a reboot", short=short),
        )
    text = event.action.rstrip(".")
    return (Advice(text, short=text),) if text else ()


def _asked_for(gpu: Gpu) -> str:
    """Return what the driver said at the end that a GPU needs, empty where it asks for nothing."""
    health = {**(gpu.health_start or {}), **(gpu.health_end or {})}
    action = health.get("recovery_action")
    if isinstance(action, str) and action != "none":
        return f"{upper_first(action)} first, as the driver of {gpu_words(gpu.index)} asks"
    return (
        f"Reset {gpu_words(gpu.index)} first: a bad memory row is remapped then"
        if health.get("row_remap_pending")
        else ""
    )

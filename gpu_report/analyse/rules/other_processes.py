"""Rule: another process worked on a GPU that the training used. Utilisation may even rise; the training gets less."""

from collections.abc import Sequence

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.context import Context
from gpu_report.analyse.signals.interval_signals import IntervalSignals, evidence
from gpu_report.analyse.signals.other_processes import Guest
from gpu_report.analyse.timeseries.intervals import Span, intersect
from gpu_report.model import Cause, Evidence, Finding


def other_processes(context: Context) -> list[Finding]:
    """Report every process that worked on a GPU of the training beside it, even one that it started itself."""
    trained = [(p.start_t_s, p.end_t_s) for p in context.phases if p.name in {"train", "validation"}]
    found = [
        guest
        for guest in context.guests
        if guest.gpu in context.activity.used_gpus
        and guest.worked
        and sum(b - a for a, b in intersect([guest.span], trained)) >= th.GUEST_AT_LEAST_S
    ]
    found.sort(key=lambda guest: guest.span)
    return [_finding(context, number, guest) for number, guest in enumerate(found, 1)]


def _finding(context: Context, number: int, guest: Guest) -> Finding:
    start_s, end_s = guest.span
    scene = context.scenes.of(guest.gpu, *guest.span)
    epoch, phase = context.place_at(start_s)
    return Finding(
        id=f"other-process-{number}",
        rule="other-process",
        severity="warning",
        gpu=guest.gpu,
        start_t_s=start_s,
        end_t_s=end_s,
        summary=f"{guest.who} worked on GPU {guest.gpu} beside the training for {end_s - start_s:.0f} s"
        f"{_at_pace(context, guest)}",
        epoch=epoch,
        phase=phase,
        evidence=_evidence(context, guest, scene),
        cause=Cause("other-process", 0.9, f"{guest.who} shared the GPU with the training"),
        kernel_events=tuple(scene.kernel),
    )


def _at_pace(context: Context, guest: Guest) -> str:
    """Return what the guest left of the training's pace, empty where callbacks did not tell it."""
    pace = context.pace
    then, usual = (pace.within([guest.span]), pace.within(_calm(context, guest))) if pace else (None, None)
    return (
        f"; the training went on at {100 * then / usual:.0f} % of its usual pace" if then is not None and usual else ""
    )


def _calm(context: Context, guest: Guest) -> Sequence[Span]:
    """Return the spans of ordinary training in the training that a guest came to."""
    training = context.training_at(guest.span[0], guest.gpu)
    return context.scenes.calm_of(training) if training else context.scenes.calm


def _evidence(context: Context, guest: Guest, scene: IntervalSignals) -> tuple[Evidence, ...]:
    pace, calm = context.pace, _calm(context, guest)
    return evidence(
        ("pace of the training meanwhile", pace.within([guest.span]) if pace else None, "images/s"),
        ("usually", pace.within(calm) if pace else None, "images/s"),
        ("its share of the GPU's time, at most", guest.util_pct, "%"),
        ("its memory", guest.memory_mib, "MiB"),
        ("utilisation meanwhile", scene.gpu_within("gpu_util_pct"), "%"),
        ("usually", scene.gpu_usual("gpu_util_pct"), "%"),
        ("sent to the GPU meanwhile (PCIe)", scene.gpu_within("pcie_rx_mib_s"), "MiB/s"),
        ("usually", scene.gpu_usual("pcie_rx_mib_s"), "MiB/s"),
        ("CPU of the loader's workers meanwhile", scene.within("workers_cpu_pct"), "% of a core"),
        ("usually", scene.usual("workers_cpu_pct"), "% of a core"),
    )

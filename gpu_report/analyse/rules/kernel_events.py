"""Rule: the kernel named a fault, whether or not utilisation fell. What another finding carries stands there alone."""

from collections.abc import Sequence
from dataclasses import replace

from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.signals.host.kernel_events import kernel_events_near
from gpu_report.catalogue import RULES
from gpu_report.gpu_words import gpu_words
from gpu_report.model import Advice, Finding, KernelEvent, NearbyKernelEvent


def kernel_faults(context: Context) -> list[Finding]:
    """Report every warning or fault that the kernel named, whether or not utilisation fell."""
    faults = [event for event in context.run.kernel.events if event.severity != "info"]
    return [_finding(context, event) for event in faults]


def _finding(context: Context, event: KernelEvent) -> Finding:
    times = f" ({event.count} times)" if event.count > 1 else ""
    where = f"{gpu_words(event.gpu)}: " if event.gpu is not None else ""
    return context.finding(
        "kernel",
        event.severity,
        (event.t_s, event.last_t_s if event.last_t_s is not None else event.t_s),
        f"{where}{event.meaning}{times}",
        gpu=event.gpu,
        kernel_events=kernel_events_near([event], event.t_s, event.t_s, event.gpu),
        advice=(Advice(event.action, short=event.action.rstrip(".")),) if event.action else (),
    )


def attach_to_their_finding(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings, each kernel line within the one that it explains, with what it says to do.

    The kernel says one kill or one lost GPU in several lines: those of the same kind, of the same GPU and within
    SAME_EVENT_S of a line that a finding carries go into that finding as well.
    """
    kept = list(findings)
    for line in [f for f in findings if f.rule == "kernel"]:
        at = next(
            (n for n, each in enumerate(kept) if RULES[each.rule].owns_kernel_lines and _carries(each, line)), None
        )
        if at is not None:
            kept[at] = _with_line(kept[at], line)
            kept.remove(line)
    return kept


def _carries(finding: Finding, line: Finding) -> bool:
    return any(_is_same(near, said) for near in finding.kernel_events for said in line.kernel_events)


def _is_same(near: NearbyKernelEvent, said: NearbyKernelEvent) -> bool:
    a, b = near.event, said.event
    return a == b or (a.kind == b.kind and a.gpu == b.gpu and abs(a.t_s - b.t_s) <= th.SAME_EVENT_S)


def _with_line(finding: Finding, line: Finding) -> Finding:
    """Return a finding with a kernel line, and with its advice where it has none of its own."""
    known = {near.event for near in finding.kernel_events}
    more = tuple(near for near in line.kernel_events if near.event not in known)
    return replace(finding, kernel_events=(*finding.kernel_events, *more), advice=finding.advice or line.advice)

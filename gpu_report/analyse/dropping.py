"""Rule: utilisation fell under half of its level and stayed there (DESIGN.md, Words), with what stood beside it."""

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.causes import EXPECTED, explain
from gpu_report.analyse.context import Context
from gpu_report.analyse.drops import Drop
from gpu_report.analyse.trimming import trimmed
from gpu_report.model import Advice, Evidence, Finding, Severity


def drops(context: Context) -> list[Finding]:
    """Report every drop of utilisation (DESIGN.md, Words), numbered in order of time."""
    found = trimmed(context, context.drops, context.options.line_share)
    return [_finding(context, number, part.drop, explained=part.explained) for number, part in enumerate(found, 1)]


def _finding(context: Context, number: int, drop: Drop, *, explained: bool) -> Finding:
    scene = context.scenes.of(drop.gpu, drop.start_t_s, drop.end_t_s)
    kernel_was_read = context.run.kernel.status == "read"
    cause, proof = explain(scene, expected=EXPECTED if explained else None, kernel_was_read=kernel_was_read)
    expected = (explained and cause == EXPECTED) or cause.name == "startup"  # which comes once, and to every training
    epoch, phase = context.place_at(drop.start_t_s)
    return Finding(
        id=f"drop-{number}",
        rule="sustained-low" if drop.sustained else "drop",
        severity=_severity(drop, expected),
        gpu=drop.gpu,
        start_t_s=drop.start_t_s,
        end_t_s=drop.end_t_s,
        summary=f"GPU {drop.gpu} fell from {drop.level_pct:.0f} % to {drop.mean_pct:.0f} % for {drop.duration_s:.0f} s",
        expected=expected,
        epoch=epoch,
        phase=phase,
        at_boundary=context.boundaries.touching(drop.start_t_s, drop.end_t_s) is not None,
        level_pct=drop.level_pct,
        low_pct=drop.mean_pct,
        evidence=(*fall_evidence(context, drop), *proof),
        cause=cause,
        kernel_events=tuple(scene.kernel),
        advice=_kernel_advice(context) if cause.name == "unexplained" else (),
    )


def _severity(drop: Drop, expected: bool) -> Severity:  # noqa: FBT001 - a fact about the drop, not an option
    if expected:
        return "info"
    return "critical" if drop.duration_s >= th.CRITICAL_DROP_S else "warning"


def fall_evidence(context: Context, drop: Drop) -> tuple[Evidence, ...]:
    """Return how far, how long and how much it cost."""
    lost = drop.duration_s * (1 - drop.mean_pct / drop.level_pct)
    found = [
        Evidence("utilisation before it (median)", drop.level_pct, "%"),
        Evidence("utilisation within it (mean)", drop.mean_pct, "%"),
        Evidence("length", drop.duration_s, "s"),
        Evidence("time of full work lost", lost, "s"),
    ]
    boundary = context.boundaries.touching(drop.start_t_s, drop.end_t_s)
    typical = context.boundaries.typical_s(boundary) if boundary else None
    if typical:
        found.append(Evidence("validation and checkpoint of the other epochs take (median)", sum(typical), "s"))
    return tuple(found)


def _kernel_advice(context: Context) -> tuple[Advice, ...]:
    """Return how to see the kernel log next time, where it was not read this time."""
    kernel = context.run.kernel
    return (Advice(kernel.advice),) if kernel.status != "read" and kernel.advice else ()

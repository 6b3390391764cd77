"""Rule: utilisation fell under half of its level and stayed there (DESIGN.md, Words), with what stood beside it."""

from collections.abc import Mapping
from dataclasses import replace
from statistics import median

import numpy as np

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.causes import EXPECTED, explain
from gpu_report.analyse.context import Context
from gpu_report.analyse.drops import Drop
from gpu_report.analyse.inside import FROM_CALLBACKS
from gpu_report.model import Advice, Evidence, Finding, Phase, Severity

AT_THE_END = ("validation", "checkpoint")  # the phases at the end of an epoch


def drops(context: Context) -> list[Finding]:
    """Report every drop of utilisation (DESIGN.md, Words), numbered in order of time."""
    usual_s = {name: _usual_s(context, name) for name in AT_THE_END}
    found = [_trimmed(context, drop, usual_s) for drop in context.drops]
    found.sort(key=lambda drop: (drop.start_t_s, drop.gpu))
    return [_finding(context, number, drop) for number, drop in enumerate(found, 1)]


def _trimmed(context: Context, drop: Drop, usual_s: Mapping[str, float]) -> Drop:
    """Return a drop without the validations and checkpoints at its edges, where they alone do not explain it.

    What remains must still be long enough to be a drop.
    """
    if context.boundaries.explains(drop.start_t_s, drop.end_t_s):
        return drop
    start_s, end_s = drop.start_t_s, drop.end_t_s
    while (phase := _usual_end(context, start_s, usual_s)) is not None:
        start_s = phase.end_t_s
    while (phase := _usual_end(context, end_s - th.EDGE_S, usual_s)) is not None and phase.start_t_s > start_s:
        end_s = phase.start_t_s
    if (start_s, end_s) == (drop.start_t_s, drop.end_t_s):
        return drop
    start_s, end_s = _low_part(context, drop, start_s, end_s)
    enough = end_s - start_s >= context.options.drop_seconds
    return replace(drop, start_t_s=start_s, end_t_s=end_s) if enough else drop


def _usual_s(context: Context, name: str) -> float:
    """Return how long phases of a name usually are in this run, 0 where there are none."""
    lengths = [phase.end_t_s - phase.start_t_s for phase in context.phases if phase.name == name]
    return median(lengths) if lengths else 0.0


def _usual_end(context: Context, t_s: float, usual_s: Mapping[str, float]) -> Phase | None:
    """Return the validation or checkpoint that a moment lies in, if it was told and is about as long as they are here.

    One that is only seen from outside may be made of the very drop.
    """
    phase = context.phase_at(t_s)
    if phase is None or phase.name not in AT_THE_END or phase.source != FROM_CALLBACKS:
        return None
    return phase if phase.end_t_s - phase.start_t_s <= th.SIBLING_FACTOR * usual_s[phase.name] else None


def _low_part(context: Context, drop: Drop, start_s: float, end_s: float) -> tuple[float, float]:
    """Return the stretch from the first to the last reading under the drop's line within [start, end)."""
    track = next(track for track in context.tracks if track.gpu == drop.gpu)
    line = (1 - context.options.drop_percent / 100) * drop.level_pct
    part = track.between(start_s, end_s)
    low = np.flatnonzero(track.util_pct[part] < line)
    if not len(low):
        return start_s, end_s
    first, last = part.start + int(low[0]), part.start + int(low[-1])
    return float(track.t_s[first]), min(float(track.ends_s[last]), end_s)


def _finding(context: Context, number: int, drop: Drop) -> Finding:
    explained = context.boundaries.explains(drop.start_t_s, drop.end_t_s)
    scene = context.scenes.of(drop.gpu, drop.start_t_s, drop.end_t_s)
    kernel_was_read = context.run.kernel.status == "read"
    cause, proof = explain(scene, expected=EXPECTED if explained else None, kernel_was_read=kernel_was_read)
    expected = explained and cause == EXPECTED
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
        evidence=(*_evidence(context, drop), *proof),
        cause=cause,
        kernel_events=tuple(scene.kernel),
        advice=_kernel_advice(context) if cause.name == "unexplained" else (),
    )


def _severity(drop: Drop, expected: bool) -> Severity:  # noqa: FBT001 - a fact about the drop, not an option
    if expected:
        return "info"
    return "critical" if drop.duration_s >= th.CRITICAL_DROP_S else "warning"


def _evidence(context: Context, drop: Drop) -> tuple[Evidence, ...]:
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

"""`profiles[]` of summary.json: the windows of PyTorch's profiler. Times are of one step, in milliseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpu_report.iso_time import iso_utc

if TYPE_CHECKING:
    from gpu_report.model import Analysis, ProfiledSteps, TraceAnalysis, TraceStepTime

ROWS = 20  # of operators and kernels
PARTS = ("compute", "communication", "copy", "data_wait", "cpu_wait")


def profiles(analysis: Analysis) -> list[dict[str, Any]]:
    """Return the windows in order of time."""
    return [_profile(each, analysis.run.start_wall_s) for each in analysis.profiled]


def _profile(profiled: ProfiledSteps, start_wall_s: float) -> dict[str, Any]:
    window, found = profiled.window, profiled.steps
    free = found.cpu_free
    return {
        "start": iso_utc(start_wall_s + window.start_t_s),
        "end": iso_utc(start_wall_s + window.end_t_s),
        "start_s": window.start_t_s,
        "end_s": window.end_t_s,
        "phase": window.phase,
        "epoch": window.epoch,
        "reason": window.reason,
        "trace": f"{window.name}.json.gz",
        "steps": len(found.used_steps),
        "step_ms": _ms(found.step_s),
        "step_ms_without_profiler": _ms(profiled.typical_step_s),
        "gpu_busy_pct": None if found.busy_share is None else 100 * found.busy_share,
        "launch_to_start_ms": _ms(found.launches.gap_s),
        "bound": found.launches.bound,
        "step_ms_if_cpu_were_free": _ms(free.expected_s) if free else None,
        "parts_ms": {part: _mean_ms(found, part) for part in PARTS},
        **_what_ran(found),
        "sync_lines": [
            {"function": line.function, "file": line.file, "line": line.line, "share": line.share}
            for line in profiled.sync_lines[:ROWS]
        ],
    }


def _what_ran(found: TraceAnalysis) -> dict[str, Any]:
    """Return what a step ran: families of operators, operators and kernels, the longest first."""
    count = max(len(found.used_steps), 1)
    return {
        "families": [
            {"name": f.name, "gpu_ms": _ms(f.gpu_s / count), "cpu_ms": _ms(f.cpu_s / count), "share": f.gpu_share}
            for f in found.families
        ],
        "operators": [
            {"name": o.name, "gpu_ms": _ms(o.gpu_s / count), "cpu_ms": _ms(o.cpu_s / count), "calls": o.calls / count}
            for o in sorted(found.operators, key=lambda operator: -max(operator.cpu_s, operator.gpu_s))[:ROWS]
        ],
        "kernels": [
            {"name": k.name, "gpu_ms": _ms(k.gpu_s / count), "calls": k.calls / count} for k in found.kernels[:ROWS]
        ],
    }


def _mean_ms(found: TraceAnalysis, part: str) -> float | None:
    used: tuple[TraceStepTime, ...] = found.used_steps
    return _ms(sum(getattr(step, f"{part}_s") for step in used) / len(used)) if used else None


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else 1000 * seconds

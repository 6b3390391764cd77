"""Inside a step: what PyTorch's profiler saw, a part for each window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_report import schema
from gpu_report.catalogue import WAITING_FOR_PEER
from gpu_report.render.formatting import clean, number, share, step_time
from gpu_report.render.page.views.profiler import ProfilerView, StepPartTotal, StepPartView, StepView
from gpu_report.render.page.views.tables import NamedTable, TextTable
from gpu_report.wording import PROFILER_FAILED, counted, where_it_is

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpu_report.model import Analysis, ProfiledSteps, TraceAnalysis, TraceStepTime

MOST_STEPS = 16  # bars of a window
ROWS = 10  # of a table: what takes less is not worth a look
FAMILY_LEAST = 0.005  # of the GPU's or the CPU's time
NAME_LENGTH = 110  # characters of a kernel's name, which may have a thousand
SHORT_S = 1e-3  # of a wait: below it in microseconds

# Parts of a step: name for people, colour, and which of its seconds they are.
PARTS: tuple[tuple[str, str, Callable[[TraceStepTime], float]], ...] = (
    ("GPU computes", "work", lambda step: step.compute_s),
    ("GPU synchronises gradients (all-reduce)", WAITING_FOR_PEER, lambda step: step.communication_s),
    ("GPU only copies", "input-storage", lambda step: step.copy_s),
    ("GPU waits for data", "input-cpu", lambda step: step.data_wait_s),
    ("GPU waits for the CPU", "launch-bound", lambda step: step.cpu_wait_s),
)
CUT = {
    "": "",
    "time": "The window ended early, after a minute.",
    "events": "The window ended early: the process had taken as much memory as 1.5 million events do.",
}
GAP_WORDS = {
    "launch": "Launch-bound: the CPU launches work more slowly than the GPU does it.",
    "gpu": "GPU-bound: the CPU is ahead, and kernels wait for the GPU.",
    "exchange": "Bound by gradient synchronisation (all-reduce): the GPU waits there longer than for the CPU.",
    "data": "Bound by data loading: the GPU waits for data for most of these steps.",
    "neither": "Neither the CPU nor the GPU waits all the time.",
    "unknown": "",
}


def windows(analysis: Analysis) -> tuple[ProfilerView, ...]:
    """Return the windows of a run, in order of time."""
    return tuple(_window(profiled) for profiled in analysis.profiled)


def failures(analysis: Analysis) -> tuple[str, ...]:
    """Return why windows that were asked for have no trace, in sentences."""
    reasons = dict.fromkeys(window.failed for window in analysis.run.profiled if window.failed)
    return tuple(f"A window has no trace: {PROFILER_FAILED[reason]}." for reason in reasons)


def _window(profiled: ProfiledSteps) -> ProfilerView:
    window, found = profiled.window, profiled.steps
    what = "Validation" if window.phase == "validation" else "Training"
    what += "" if window.epoch is None else f", epoch {window.epoch}"
    return ProfilerView(
        title=f"{what}: {counted(len(found.used_steps), 'step')}",
        lead=GAP_WORDS[found.launches.bound] if found.quality.has_gpu_work else "The profiler saw no GPU work.",
        sentences=tuple(
            filter(None, (_work(found), _gap(found), _slowed(profiled), _limit(found), _doubt(found), CUT[window.cut]))
        ),
        steps=_steps(found),
        totals=_totals(found),
        families=_families(found),
        tables=tuple(each for each in (*_tables(found), _sync_lines(profiled)) if each.table.rows),
        trace=f"{schema.PROFILE_DIR}/{window.name}.json.gz",
    )


def _work(found: TraceAnalysis) -> str:
    if found.worked_s is None:
        return ""
    kernels = number(found.kernels_per_step)
    worked = step_time(found.worked_s)
    return f"A step took {step_time(found.step_s)}. The GPU worked {worked} of it, in {kernels} kernels."


def _gap(found: TraceAnalysis) -> str:
    gap_s = found.launches.gap_s
    return "" if gap_s is None else f"From launch to start a kernel takes {_short(gap_s)} (median)."


def _slowed(profiled: ProfiledSteps) -> str:
    if profiled.slowed_by is None or profiled.typical_step_s is None:
        return "The profiler lengthens CPU times. GPU times are right."
    return (
        f"Without the profiler a step takes {step_time(profiled.typical_step_s)}. "
        "It lengthens CPU times. GPU times are right."
    )


def _limit(found: TraceAnalysis) -> str:
    free = found.cpu_free
    if free is None or found.launches.bound != "launch":
        return ""
    return (
        f"If the CPU took no time, a step would take about {step_time(free.expected_s)}, gaps between kernels included."
    )


def _doubt(found: TraceAnalysis) -> str:
    if found.quality.first_missing:
        return "Kernels of the first steps are missing in the trace: those steps are left out."
    return "Steps differ by more than a fifth in their kernels." if found.quality.kernels_uneven else ""


def _steps(found: TraceAnalysis) -> tuple[StepView, ...]:
    shown = found.used_steps[:MOST_STEPS]
    longest_s = max((step.length_s for step in shown), default=0.0)
    return tuple(_step(number, step, longest_s) for number, step in enumerate(shown, start=1))


def _step(count: int, step: TraceStepTime, longest_s: float) -> StepView:
    parts, at_s = [], 0.0
    for name, kind, seconds_of in PARTS:
        seconds = seconds_of(step)
        if seconds > 0 and longest_s > 0:
            start, width = (round(100 * each / longest_s, 2) for each in (at_s, seconds))
            parts.append(StepPartView(name, kind, start, width, step_time(seconds)))
        at_s += seconds
    return StepView(f"Step {count}", step_time(step.length_s), tuple(parts))


def _totals(found: TraceAnalysis) -> tuple[StepPartTotal, ...]:
    used, step_s = found.used_steps, found.step_s
    means = [(name, kind, sum(map(of, used)) / len(used)) for name, kind, of in PARTS] if used else []
    return tuple(
        StepPartTotal(name, kind, step_time(s), share(s / step_s)) for name, kind, s in means if s > 0 and step_s
    )


def _families(found: TraceAnalysis) -> TextTable:
    steps = max(len(found.used_steps), 1)
    rows = [
        (family.name, *_times(steps, family.gpu_s), share(family.gpu_share), *_times(steps, family.cpu_s))
        for family in found.families
        if max(family.gpu_share, family.cpu_share) >= FAMILY_LEAST
    ]
    columns = "Kind of work", "GPU, a step", "Share of GPU work", "CPU, a step"
    return TextTable(columns, (False, True, True, True), tuple(rows))


def _tables(found: TraceAnalysis) -> Sequence[NamedTable]:
    steps = max(len(found.used_steps), 1)
    return tuple(table(found, steps) for table in (_layers, _kernels, _operators, _syncs, _copies))


def _layers(found: TraceAnalysis, steps: int) -> NamedTable:
    rows = [
        (f"{layer.index} {_name(layer.module)}", *_times(steps, layer.forward_gpu_s, layer.backward_gpu_s))
        for layer in found.layers
    ]
    return _table("Layers of the model", "", ("Layer", "Forward", "Backward"), rows)


def _kernels(found: TraceAnalysis, steps: int) -> NamedTable:
    rows = [
        (_name(kernel.name), _a_step(kernel.calls, steps), *_times(steps, kernel.gpu_s), share(kernel.share))
        for kernel in found.kernels[:ROWS]
    ]
    columns = "Kernel", "A step", "GPU, a step", "Share"
    return _table("Kernels", "Those with the most GPU time.", columns, rows)


def _operators(found: TraceAnalysis, steps: int) -> NamedTable:
    most = sorted(found.operators, key=lambda operator: -operator.cpu_s)[:ROWS]
    rows = [(_name(each.name), _a_step(each.calls, steps), *_times(steps, each.cpu_s, each.gpu_s)) for each in most]
    columns = "Operator", "A step", "CPU, a step", "GPU, a step"
    return _table("Operators", "Those with the most CPU time, without what they call.", columns, rows)


def _syncs(found: TraceAnalysis, steps: int) -> NamedTable:
    rows = [
        (_name(sync.operator or "none"), _name(sync.call), _a_step(sync.count, steps), *_times(steps, sync.wait_s))
        for sync in found.syncs[:ROWS]
    ]
    note = "Where the CPU waits for a result. YOLO itself has some in each step."
    return _table("Waits for the GPU", note, ("Operator", "Call", "A step", "CPU, a step"), rows)


def _sync_lines(profiled: ProfiledSteps) -> NamedTable:
    rows = [(_name(where_it_is(each)), share(each.share)) for each in profiled.sync_lines[:ROWS]]
    note = "The lines that the training was in during these waits, by stack samples every 5 ms."
    return _table("Lines that waited for the GPU", note, ("Line", "Share of samples"), rows)


def _copies(found: TraceAnalysis, steps: int) -> NamedTable:
    rows = [
        (
            f"{copy.kind.direction} {copy.kind.host_memory}".strip(),
            _a_step(copy.count, steps),
            number(copy.bytes / steps / 1e6, 1),
            *_times(steps, copy.gpu_s),
            number(copy.gb_per_s, 1),
        )
        for copy in found.copies[:ROWS]
    ]
    return _table("Copies", "", ("Copy", "A step", "MB a step", "GPU, a step", "GB/s"), rows)


def _times(steps: int, *seconds: float) -> tuple[str, ...]:
    """Return what sums over some steps come to in one of them."""
    return tuple(step_time(each / steps) for each in seconds)


def _table(title: str, note: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> NamedTable:
    numeric = tuple(column not in {"Kernel", "Operator", "Layer", "Call", "Copy", "Line"} for column in columns)
    return NamedTable(title, note, TextTable(columns, numeric, tuple(rows)))


def _name(text: str) -> str:
    cleaned = clean(text)
    return cleaned if len(cleaned) <= NAME_LENGTH else f"{cleaned[: NAME_LENGTH - 1]}…"


def _a_step(count: int, steps: int) -> str:
    return number(count / steps, 0 if count % steps == 0 else 1)


def _short(seconds: float) -> str:
    return f"{number(1e6 * seconds)} µs" if seconds < SHORT_S else step_time(seconds)

"""`TraceWindow`: the used steps of a trace, and the GPU work that they launched. The one argument of its tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from gpu_report.analyse.trace import thresholds as th
from gpu_report.analyse.trace.gpu_work import (
    KERNEL,
    NONE,
    Bools,
    Floats,
    GpuWork,
    Ints,
    call_operators,
    gpu_work,
    take,
)
from gpu_report.analyse.trace.name_masks import names_that
from gpu_report.model import Trace, TraceStep

LAUNCH: Final = r"^(?:cuda|cu|hip)(?:Launch(?:Cooperative)?Kernel|GraphLaunch)"  # a copy of no bytes is no work


@dataclass(frozen=True, eq=False)
class TraceWindow:
    """A trace with its GPU work in order of start, all of it in `all_work` and what used steps launched in `work`.

    `kernels` is how many kernels each step launched, `lost` which calls launched one that is not there, `used` whether
    the step is used, `call_operator` the row of the innermost operator around each call. `marked` says that the
    profiler marked the steps.
    """

    trace: Trace
    steps: tuple[TraceStep, ...]
    marked: bool
    kernels: Ints
    lost: Bools
    used: Bools
    all_work: GpuWork
    work: GpuWork
    call_operator: Ints

    @property
    def used_count(self) -> int:
        """Return how many steps are used."""
        return int(self.used.sum())

    def in_used(self, at_s: Floats) -> Bools:
        """Return which moments lie in used steps."""
        return _used_at(self.steps, self.used, at_s)


def open_window(trace: Trace) -> TraceWindow:
    """Return the window of a trace; all of it is one step where the profiler marked none."""
    steps = trace.steps or ((TraceStep(0, 0.0, trace.duration_s),) if trace.duration_s > 0 else ())
    operators = call_operators(trace)
    work = gpu_work(trace, operators)
    launched_s = _launched_s(trace, work)
    kernels = _count_by_step(steps, launched_s[work.kind == KERNEL])
    launches = names_that(trace, LAUNCH)[trace.calls.name]
    lost = launches & _unpaired_calls(trace)
    launched = _count_by_step(steps, trace.calls.start_s[launches])
    used = _used(kernels, _count_by_step(steps, trace.calls.start_s[lost]) / np.maximum(launched, 1))
    return TraceWindow(
        trace=trace,
        steps=steps,
        marked=bool(trace.steps),
        kernels=kernels,
        lost=lost,
        used=used,
        all_work=work,
        work=work.where(_used_at(steps, used, launched_s)),
        call_operator=operators,
    )


def _launched_s(trace: Trace, work: GpuWork) -> Floats:
    """Return when each piece was launched, its own start where the call is not known."""
    known = work.call != NONE
    launched_s: Floats = np.where(known, take(trace.calls.start_s, work.call, 0), work.start_s)
    return launched_s


def _unpaired_calls(trace: Trace) -> Bools:
    """Return which calls had no GPU do anything."""
    done = np.concatenate([table.correlation for table in (trace.kernels, trace.copies, trace.memsets)])
    return ~np.isin(trace.calls.correlation, done)


def _used(kernels: Ints, lost_share: Floats) -> Bools:
    """Return which steps are whole: all but first ones that lost kernels, and a last one in which the trace ends.

    Others with fewer kernels are another kind of step: one that only adds to gradients.
    """
    used = np.ones(len(kernels), dtype=bool)
    few = kernels < (1 - th.KERNELS_AGREE) * np.median(kernels) if len(kernels) else used
    for step in range(len(kernels) - 1):
        if not (few[step] and lost_share[step] > th.KERNELS_LOST):
            break
        used[step] = False
    used[-1:] &= ~few[-1:]
    return used


def _count_by_step(steps: tuple[TraceStep, ...], at_s: Floats) -> Ints:
    return np.bincount(_step_at(steps, at_s) + 1, minlength=len(steps) + 1)[1:]


def _step_at(steps: tuple[TraceStep, ...], at_s: Floats) -> Ints:
    """Return the step in which each moment lies, NONE outside; between two steps it is the one before."""
    starts_s = np.array([step.start_s for step in steps])
    step = np.searchsorted(starts_s, at_s, side="right") - 1
    return np.where(at_s <= (steps[-1].end_s if steps else 0.0), step, NONE)


def _used_at(steps: tuple[TraceStep, ...], used: Bools, at_s: Floats) -> Bools:
    step = _step_at(steps, at_s)
    inside: Bools = np.append(used, False)[step]  # NONE is the last one
    return inside

"""Time by family, operator and kernel, of the used steps."""

import numpy as np

from gpu_report.analyse.trace.families import NAMES, Families
from gpu_report.analyse.trace.gpu_work import KERNEL, NONE, Bools, Ints, sums_by_row
from gpu_report.analyse.trace.operator_tree import self_cpu_s
from gpu_report.analyse.trace.window import TraceWindow
from gpu_report.model import FamilyTime, KernelTime, OperatorTime


def family_times(window: TraceWindow, families: Families) -> tuple[FamilyTime, ...]:
    """Return the families with any time, by time of the GPU and then of the CPU."""
    operators, used = window.trace.operators, _used(window)
    gpu_s = sums_by_row(families.work, window.work.length_s, len(NAMES))
    pieces = np.bincount(families.work, minlength=len(NAMES))
    cpu_s = sums_by_row(families.operator[used], self_cpu_s(operators)[used], len(NAMES))
    rows = [
        FamilyTime(
            name=name,
            gpu_s=float(gpu_s[at]),
            gpu_share=share(gpu_s[at], gpu_s.sum()),
            gpu_pieces=int(pieces[at]),
            cpu_s=float(cpu_s[at]),
            cpu_share=share(cpu_s[at], cpu_s.sum()),
        )
        for at, name in enumerate(NAMES)
        if gpu_s[at] > 0 or cpu_s[at] > 0
    ]
    return tuple(sorted(rows, key=lambda row: (-row.gpu_s, -row.cpu_s)))


def operator_times(window: TraceWindow, families: Families) -> tuple[OperatorTime, ...]:
    """Return the operators by name, by time of the GPU and then of the CPU."""
    operators, used = window.trace.operators, _used(window)
    count = len(window.trace.names)
    cpu_s = sums_by_row(operators.name[used], self_cpu_s(operators)[used], count)
    calls = np.bincount(operators.name[used], minlength=count)
    known = window.work.operator != NONE
    gpu_s = sums_by_row(operators.name[window.work.operator[known]], window.work.length_s[known], count)
    family = _main_family(operators.name[used], families.operator[used])
    rows = (
        OperatorTime(
            window.trace.names[at], families.name(family[at]), int(calls[at]), float(cpu_s[at]), float(gpu_s[at])
        )
        for at in np.flatnonzero(calls).tolist()
    )
    return tuple(sorted(rows, key=lambda row: (-row.gpu_s, -row.cpu_s)))


def kernel_times(window: TraceWindow, families: Families) -> tuple[KernelTime, ...]:
    """Return the kernels by name, by their time; copies and memsets are in their sum."""
    work = window.work
    kernels = work.kind == KERNEL
    count = len(window.trace.names)
    gpu_s = sums_by_row(work.name[kernels], work.length_s[kernels], count)
    calls = np.bincount(work.name[kernels], minlength=count)
    family = _main_family(work.name[kernels], families.work[kernels])
    all_s = float(work.length_s.sum())
    rows = (
        KernelTime(
            window.trace.names[at], families.name(family[at]), int(calls[at]), float(gpu_s[at]), share(gpu_s[at], all_s)
        )
        for at in np.flatnonzero(calls).tolist()
    )
    return tuple(sorted(rows, key=lambda row: -row.gpu_s))


def share(part: float, whole: float) -> float:
    """Return a part of a whole, 0 to 1; 0 of nothing."""
    return float(part / whole) if whole > 0 else 0.0


def _used(window: TraceWindow) -> Bools:
    return window.in_used(window.trace.operators.start_s)


def _main_family(name: Ints, family: Ints) -> dict[int, int]:
    """Return the family that most events of each name have."""
    pairs, counts = np.unique(name * len(NAMES) + family, return_counts=True)
    ascending = pairs[np.argsort(counts, kind="stable")]  # the last one of a name stays
    return {pair // len(NAMES): pair % len(NAMES) for pair in ascending.tolist()}

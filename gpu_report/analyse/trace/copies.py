"""Copies between the host and the GPU, by direction and by the kind of the host's memory."""

import numpy as np

from gpu_report.analyse.trace.gpu_work import COPY, NONE, take
from gpu_report.analyse.trace.window import TraceWindow
from gpu_report.model import CopyTime


def copy_times(window: TraceWindow) -> tuple[CopyTime, ...]:
    """Return the copies of the used steps, by kind, longest first.

    From pageable memory the driver first copies to memory of its own, for which the call takes CPU time.
    """
    work = window.work.where(window.work.kind == COPY)
    calls = window.trace.calls
    called_s = take(calls.end_s - calls.start_s, work.call, 0)
    of_name = [window.trace.copy_kinds[name] for name in work.name.tolist()]
    kinds = sorted(set(of_name), key=lambda kind: (kind.direction, kind.host_memory))
    index = np.array([kinds.index(kind) for kind in of_name], dtype=np.int64)
    rows = (
        CopyTime(
            kind=kind,
            count=int((index == at).sum()),
            bytes=int(np.maximum(work.bytes[index == at], 0).sum()),
            gpu_s=float(work.length_s[index == at].sum()),
            cpu_s=float(called_s[(index == at) & (work.call != NONE)].sum()),
        )
        for at, kind in enumerate(kinds)
    )
    return tuple(sorted(rows, key=lambda row: -row.gpu_s))

"""What the GPUs waited for: the table of its lines of code, and what the flame graph is drawn from."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

import numpy as np

from gpu_report.catalogue import WAITING_FOR_PEER, phase_words
from gpu_report.model import Analysis, CodeFrame, CodeLine, CodeTime
from gpu_report.render.formatting import clean, duration, lines_title, share
from gpu_report.render.page.views.report import CodeTimeView
from gpu_report.render.page.views.tables import TextTable
from gpu_report.render.samples.column_codec import MILLISECOND_DECIMALS, Scale
from gpu_report.render.samples.columns import Blob, pack_table
from gpu_report.wording import line_words, role_words, upper_first

Json = dict[str, Any]
SHORTEST_WAIT_S = 0.5  # what would read 0 s is not mentioned
WHOLE, SECONDS = Scale(0), Scale(MILLISECOND_DECIMALS)


def code_time(analysis: Analysis) -> CodeTimeView | None:
    """Return the section on lines of code, None where no GPU was idle in any that was noted."""
    if not analysis.code_lines:
        return None
    kinds = {frame.kind for time in analysis.code_time for stack in time.stacks for frame in stack}
    mains = [time for time in analysis.code_time if time.role != "workers"]
    by_idle = bool(analysis.gpus)
    spent = [(time, time.idle_gpu_s if by_idle else time.seconds) for time in mains]
    total = sum(float(seconds[time.after_startup].sum()) for time, seconds in spent)
    startup_s = sum(float(seconds[~time.after_startup].sum()) for time, seconds in spent)
    return CodeTimeView(
        title="What the GPU waited for" if by_idle else "Where the time went, by line of code",
        lines_title=lines_title(analysis),
        by_idle=by_idle,
        roles=tuple((time.role, role_words(time.role)) for time in analysis.code_time),
        phases=tuple((name, upper_first(phase_words(name))) for name in _phases(analysis.code_time)),
        lines=_table(analysis.code_lines, total, by_idle=by_idle),
        note=_note(analysis, total, startup_s) if by_idle else _note_of_cpu(total, startup_s),
        has_ranks="ranks" in kinds,
        has_loader="loader" in kinds,
        has_later=startup_s > 0,
    )


def flame_data(analysis: Analysis, blob: Blob) -> Json:
    """Return the frames and stacks that the flame graph is drawn from, and where its columns lie in `blob`."""
    frames: dict[CodeFrame, int] = {}
    roles = [_role(time, frames, blob) for time in analysis.code_time]
    return {"frames": [_frame(frame) for frame in frames], "roles": roles}


def _role(time: CodeTime, frames: dict[CodeFrame, int], blob: Blob) -> Json:
    columns = {
        "bucket": (time.bucket.tolist(), WHOLE),
        "phase": (time.phase.tolist(), WHOLE),
        "stack": (time.stack.tolist(), WHOLE),
        "seconds": (np.round(time.seconds, 3).tolist(), SECONDS),
        "idle_gpu_s": (np.round(time.idle_gpu_s, 3).tolist(), SECONDS),
    }
    return {
        "role": time.role,
        "bucket_s": round(time.bucket_s, 6),
        "phases": list(time.phases),
        "stacks": [[frames.setdefault(frame, len(frames)) for frame in stack] for stack in time.stacks],
        "columns": blob.put(pack_table(columns)),
    }


def _frame(frame: CodeFrame) -> list[Any]:
    file = frame.file.replace("\\", "/")
    return [clean(frame.function), clean(PurePath(file).name), frame.line, clean(file), frame.kind]


def _phases(all_time: Sequence[CodeTime]) -> list[str]:
    return [name for name in dict.fromkeys(name for time in all_time for name in time.phases) if name]


def _table(lines: Sequence[CodeLine], total_s: float, *, by_idle: bool) -> TextTable:
    several = len({line.process for line in lines}) > 1
    rows = tuple(_row(line, line.ranked_s(by_idle=by_idle), total_s, several=several) for line in lines)
    process = ("Process",) if several else ()
    columns = ("Line of code", *process, "Idle GPU time" if by_idle else "Time", "Share", "Mostly during")
    return TextTable(columns, (False, *(False for _ in process), True, True, False), rows)


def _row(line: CodeLine, seconds: float, total_s: float, *, several: bool) -> tuple[str, ...]:
    of_all = seconds / total_s if total_s else None
    process = (role_words(line.process),) if several else ()
    return (
        line_words(line),
        *process,
        duration(seconds, aligned=True),
        share(of_all),
        phase_words(line.phase) if line.phase else "",
    )


def _note_of_cpu(total_s: float, startup_s: float) -> str:
    """Return what the lines are of where no GPU was read."""
    return f"Lines that the main process was in{' after start-up' if startup_s else ''}: {duration(total_s)} in all."


def _note(analysis: Analysis, total_s: float, startup_s: float) -> str:
    idle = f"{' after start-up: ' if startup_s else ', '}{duration(total_s)}"
    of = "the GPUs were" if len(analysis.gpus) > 1 else "the GPU was"
    waited_s = sum(row.gpu_seconds for row in analysis.ledger if row.name == WAITING_FOR_PEER)
    # whoever looks for that wait here finds nothing, and takes it for work
    waits = (
        f"nvidia-smi shows a GPU that waits for another rank as busy: {duration(waited_s)} of that are not in here. "
        'Choose "All time" to see where. '
        if waited_s >= SHORTEST_WAIT_S
        else ""
    )
    several = any(time.role.startswith("rank") for time in analysis.code_time)
    ranks = f"A rank is the training process of one GPU. {waits}" if several or waits else ""
    return (
        f"These lines of code ran while {of} idle{idle} in all. {ranks}Each reading of utilisation covers a fifth of "
        "a second or more: lines that take turns within one reading share its idle time."
    )

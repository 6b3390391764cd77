"""A training of which nobody reported the end, but whose GPU was full when its process went: probably out of memory."""

from dataclasses import dataclass

import numpy as np

from gpu_report.analyse.causes.confidence import HINTED, POSSIBLE
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import compared_with, evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.training_end.exception_words import gpu_memory_advice
from gpu_report.analyse.rules.training_end.final_gpu_memory import share_just_before
from gpu_report.analyse.signals.gpu.gpu_memory import GpuMemory
from gpu_report.analyse.timeline.activity import OWN
from gpu_report.analyse.timeline.phases import finished
from gpu_report.analyse.timeseries.gpu_series import GpuSeries
from gpu_report.gpu_words import gpu_words
from gpu_report.model import Advice, Cause, Finding, RecordedEvent
from gpu_report.wording import gib

RAISED = 1  # Python's exit code after an exception
WHY = "its memory was full, and a moment later its process was gone; a good end frees memory first"


@dataclass(frozen=True)
class _FullGpu:
    """A GPU that was full at its last reading before its process had gone, and what was left in use then."""

    memory: GpuMemory
    t_s: float
    full_mib: float
    left_mib: float


def full_gpu_at_exit(context: Context) -> list[Finding]:
    """Report a log without callbacks that ends with a full GPU and its process gone; nothing where it ended well."""
    if context.rank_groups or _ended_well(context):
        return []
    cases = [case for series in context.used_series if (case := _gone(context, series)) is not None]
    return [_finding(context, max(cases, key=lambda case: case.t_s))] if cases else []


def full_just_before(context: Context, event: RecordedEvent) -> str:
    """Return in words that a GPU was full when an exception ended a command, empty where none was."""
    if event.fields.get("exit_code") != RAISED:
        return ""
    shares = {each.gpu: share_just_before(context.gpu_memory(each), event.t_s) or 0.0 for each in context.used_series}
    fullest = max(shares, key=lambda gpu: shares[gpu], default=None)
    if fullest is None or shares[fullest] < th.FULL_SHARE:
        return ""
    return f", probably out of memory: {gpu_words(fullest)} was {100 * shares[fullest]:.0f} % full"


def _ended_well(context: Context) -> bool:
    """Tell whether the command, or the training by its results.csv, is known to have come to its end."""
    run = context.run
    ended = [event.fields.get("exit_code") for event in run.command_ends]
    rows = [row for row in run.epoch_rows if row.run == run.epoch_rows[-1].run]
    args = next((yolo.args for yolo in run.yolo_runs if rows and yolo.number == rows[0].run), {})
    return 0 in ended or run.recording.exit_code == 0 or bool(rows and finished(args, rows))


def _gone(context: Context, series: GpuSeries) -> _FullGpu | None:
    """Return when a GPU was full and then empty until the log's end, None where that was not so."""
    memory = context.gpu_memory(series)
    known = np.flatnonzero(np.isfinite(memory.used_mib))
    t_s, used = memory.t_s[known], memory.used_mib[known]
    full = np.flatnonzero(used >= th.FULL_SHARE * (memory.capacity_mib or np.inf))
    if not len(full) or full[-1] + 1 >= len(used):
        return None
    last, after = int(full[-1]), int(full[-1]) + 1
    is_empty = bool((used[after:] < th.EMPTY_SHARE * (memory.capacity_mib or np.inf)).all())
    is_close = t_s[after] - t_s[last] <= max(th.LAST_MINUTE_S, 2 * series.tick_s)
    if not is_empty or not is_close or not _process_gone(context, series.gpu, float(t_s[last]), series.tick_s):
        return None
    return _FullGpu(memory, float(t_s[after]), float(used[last]), float(used[after]))


def _process_gone(context: Context, gpu: int, t_s: float, tick_s: float) -> bool:
    """Tell whether the training's process left a GPU about then; true where no processes were recorded."""
    table = context.run.processes
    mine = table[(table["gpu"] == gpu) & (table["owner"] == OWN)]
    return not len(mine) or bool(((mine["change"] == "gone") & (mine["t_s"] >= t_s - tick_s)).any())


def _advice(context: Context, t_s: float) -> Advice:
    training = context.training_at(t_s)
    args = training.args if training else {}
    return gpu_memory_advice({**args, **training.settings} if training else {}, args)


def _finding(context: Context, case: _FullGpu) -> Finding:
    gpu, is_seen = case.memory.gpu, bool(len(context.run.processes))
    epoch = context.epoch_at(case.t_s)
    return context.finding(
        "run-ended",
        "warning",
        (case.t_s, case.t_s),
        f"The training probably ran out of memory on {gpu_words(gpu)}, which was full as it ended",
        epoch=epoch.epoch if epoch else None,
        evidence=evidence(
            (f"memory of {gpu_words(gpu)} in use at the last reading", gib(case.full_mib), "GiB"),
            compared_with("capacity", gib(case.memory.capacity_mib), "GiB"),
            ("in use at the next one", gib(case.left_mib), "GiB"),
        ),
        cause=Cause("run-ended", POSSIBLE if is_seen else HINTED, WHY),
        advice=(_advice(context, case.t_s),),
    )

"""What GPU memory was like when a training ended: how full, whose it was, and what it last grew by."""

import numpy as np

from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import compared_with, evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.signals.gpu.gpu_memory import GpuMemory
from gpu_report.analyse.signals.host.other_processes import OtherProcess
from gpu_report.analyse.signals.thresholds import STEP_MIB
from gpu_report.gpu_words import gpu_words
from gpu_report.model import Evidence
from gpu_report.wording import MIB_PER_GIB, gib


def memory_just_before(context: Context, end_s: float) -> tuple[Evidence, ...]:
    """Return how full the fullest of the used GPUs was shortly before the end."""
    shares = {each.gpu: share_just_before(context.gpu_memory(each), end_s) for each in context.used_series}
    known = {gpu: share for gpu, share in shares.items() if share is not None}
    if not known:
        return ()
    gpu = max(known, key=lambda gpu: known[gpu])
    return (Evidence(f"memory of {gpu_words(gpu)} in use just before", 100 * known[gpu], "%"),)


def share_just_before(memory: GpuMemory, end_s: float) -> float | None:
    """Return how much of what a GPU can hold was in use just before a moment, None where that is not known."""
    used = memory.used_mib[memory.between(end_s - th.BEFORE_THE_END_S, end_s)]
    if memory.capacity_mib is None or not np.isfinite(used).any():
        return None
    return float(np.nanmax(used)) / memory.capacity_mib


def held_at_the_end(context: Context, end_s: float) -> tuple[Evidence, ...]:
    """Return of the fullest GPU who held its memory just before the end, and what it grew by in the minute before."""
    used = context.used_series
    memories = [memory for memory in (context.gpu_memory(t) for t in used) if share_just_before(memory, end_s)]
    if not memories:
        return ()
    fullest = max(memories, key=lambda memory: share_just_before(memory, end_s) or 0.0)
    return (*_held_by(context, fullest, end_s), *_last_growth(fullest, end_s))


def _held_by(context: Context, memory: GpuMemory, end_s: float) -> tuple[Evidence, ...]:
    """Return at the fullest moment just before the end what was in use, and whose it was."""
    rows = memory.between(end_s - th.BEFORE_THE_END_S, end_s)
    at = rows.start + int(np.nanargmax(memory.used_mib[rows]))
    others = None if memory.others_mib is None else float(memory.others_mib[at])
    own = None if others is None or not np.isfinite(others) else float(memory.used_mib[at]) - others
    there = [other for other in context.other_processes if other.gpu == memory.gpu and _covers(other, memory.t_s[at])]
    named = [
        Evidence(f"memory of {other.who}, at most", gib(_held_lately(context, other, end_s)), "GiB") for other in there
    ]
    return (
        *evidence(
            (f"memory of {gpu_words(memory.gpu)} in use just before", gib(float(memory.used_mib[at])), "GiB"),
            compared_with("capacity", gib(memory.capacity_mib), "GiB"),
            ("of it used by the training", gib(own), "GiB"),
            ("of it used by other processes", gib(others) if others else None, "GiB"),
        ),
        *[fact for fact in named if fact.value is not None],
    )


def _held_lately(context: Context, other: OtherProcess, end_s: float) -> float | None:
    """Return what another process held in the last minute, at most: an earlier peak is none of this end's."""
    table = context.run.processes
    rows = table[(table["gpu"] == other.gpu) & (table["pid"] == other.pid) & (table["t_s"] <= end_s)]
    looks = rows.dropna(subset="memory_used_mib")
    before = looks[looks["t_s"] <= end_s - th.LAST_MINUTE_S].tail(1)  # a row stands for all the time to the next one
    within = looks[looks["t_s"] > end_s - th.LAST_MINUTE_S]
    held = [*before["memory_used_mib"], *within["memory_used_mib"]]
    return max(held) if held else other.memory_mib


def _covers(other: OtherProcess, t_s: float) -> bool:
    return other.span[0] <= t_s < other.span[1]


def _last_growth(memory: GpuMemory, end_s: float) -> tuple[Evidence, ...]:
    """Return the largest step of a GPU's memory in the last minute, and the last one where that is another."""
    rows = memory.between(end_s - th.LAST_MINUTE_S, end_s)
    known = np.isfinite(memory.used_mib[rows])
    t_s, steps = memory.t_s[rows][known][1:], np.diff(memory.used_mib[rows][known])
    grown = np.flatnonzero(steps >= STEP_MIB)
    if not len(grown):
        return ()
    largest, last = int(np.argmax(steps)), int(grown[-1])
    facts = _step("its largest increase in the last minute", steps[largest], end_s - t_s[largest])
    return facts if last == largest else (*facts, *_step("its last step", steps[last], end_s - t_s[last]))


def _step(what: str, mib: float, before_s: float) -> tuple[Evidence, ...]:
    return (Evidence(what, float(mib) / MIB_PER_GIB, "GiB"), compared_with("before the end", float(before_s), "s"))

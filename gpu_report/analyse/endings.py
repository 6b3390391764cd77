"""Rule: how the training ended, where that was no good end."""

from dataclasses import replace

import numpy as np

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.context import Context
from gpu_report.analyse.memory import MIB_PER_GIB, GpuMemory, gib, gpu_memory
from gpu_report.analyse.presence import Guest
from gpu_report.analyse.scene import evidence
from gpu_report.model import Cause, Evidence, Finding, InsideRun, RecordedEvent

OUT_OF_MEMORY = "OutOfMemoryError"


def bad_endings(context: Context) -> list[Finding]:
    """Report a training that an exception, a signal or a failing command ended; at most one finding for each."""
    crashed = [run for run in context.run.inside if run.rank == 0 and run.ended == "exception"]
    found = [_crash(context, number, run) for number, run in enumerate(crashed, 1)]
    ended = [event for event in context.run.events if event.kind == "command_ended"]
    bad = [event for event in ended if event.fields.get("signal") or event.fields.get("exit_code")]
    return found or [_command(context, number, event) for number, event in enumerate(bad, 1)]


def _crash(context: Context, number: int, run: InsideRun) -> Finding:
    end_s = run.phases[-1].end_t_s if run.phases else context.run.duration_s
    if run.error == OUT_OF_MEMORY:
        ended = _finding(context, number, end_s, "The training ended: CUDA was out of memory", "CUDA was out of memory")
        return replace(ended, evidence=(*ended.evidence, *_out_of_memory(context, end_s)))
    what = f" ({run.error})" if run.error else ""
    return _finding(
        context, number, end_s, f"The training ended with an exception{what}", f"an exception{what} ended it"
    )


def _command(context: Context, number: int, event: RecordedEvent) -> Finding:
    signal, code = event.fields.get("signal"), event.fields.get("exit_code")
    how = f"{signal} ended the command" if signal else f"the command ended with exit code {code}"
    return _finding(context, number, event.t_s, f"{how[:1].upper()}{how[1:]}", how)


def _finding(context: Context, number: int, end_s: float, summary: str, why: str) -> Finding:
    epoch, phase = context.epoch_at(end_s), context.phase_at(end_s - th.BEFORE_THE_END_S)
    return Finding(
        id=f"ended-{number}",
        rule="run-ended",
        severity="critical",
        gpu=None,
        start_t_s=max(end_s - th.BEFORE_THE_END_S, 0.0),
        end_t_s=end_s,
        summary=summary,
        epoch=epoch.epoch if epoch else phase.epoch if phase else None,
        phase=phase.name if phase else None,
        evidence=_memory(context, end_s),
        cause=Cause("run-ended", 0.95, why),
    )


def _memory(context: Context, end_s: float) -> tuple[Evidence, ...]:
    """Return how full each used GPU was shortly before the end."""
    found = []
    for track in context.tracks:
        memory = gpu_memory(context, track)
        share = _share_just_before(memory, end_s)
        if track.gpu in context.activity.used_gpus and share is not None:
            found.append(Evidence(f"memory of GPU {track.gpu} in use just before", 100 * share, "%"))
    return tuple(found)


def _share_just_before(memory: GpuMemory, end_s: float) -> float | None:
    """Return how much of what a GPU can hold was in use just before a moment, None where that is not known."""
    used = memory.used_mib[memory.between(end_s - th.BEFORE_THE_END_S, end_s)]
    if memory.capacity_mib is None or not np.isfinite(used).any():
        return None
    return float(np.nanmax(used)) / memory.capacity_mib


def _out_of_memory(context: Context, end_s: float) -> tuple[Evidence, ...]:
    """Return of the fullest GPU who held its memory just before the end, and what it grew by in the minute before."""
    used = [track for track in context.tracks if track.gpu in context.activity.used_gpus]
    memories = [memory for memory in (gpu_memory(context, t) for t in used) if _share_just_before(memory, end_s)]
    if not memories:
        return ()
    fullest = max(memories, key=lambda memory: _share_just_before(memory, end_s) or 0.0)
    return (*_held_by(context, fullest, end_s), *_last_growth(fullest, end_s))


def _held_by(context: Context, memory: GpuMemory, end_s: float) -> tuple[Evidence, ...]:
    """Return at the fullest moment just before the end what was in use, and whose it was."""
    rows = memory.between(end_s - th.BEFORE_THE_END_S, end_s)
    at = rows.start + int(np.nanargmax(memory.used_mib[rows]))
    others = None if memory.others_mib is None else float(memory.others_mib[at])
    own = None if others is None or not np.isfinite(others) else float(memory.used_mib[at]) - others
    there = [guest for guest in context.guests if guest.gpu == memory.gpu and _covers(guest, memory.t_s[at])]
    named = [Evidence(f"memory of {guest.who}, at most", gib(guest.memory_mib), "GiB") for guest in there]
    return (
        *evidence(
            (f"memory of GPU {memory.gpu} in use just before", gib(float(memory.used_mib[at])), "GiB"),
            ("it can hold", gib(memory.capacity_mib), "GiB"),
            ("of it the training's own", gib(own), "GiB"),
            ("of it other processes'", gib(others) if others else None, "GiB"),
        ),
        *[fact for fact in named if fact.value is not None],
    )


def _covers(guest: Guest, t_s: float) -> bool:
    return guest.span[0] <= t_s < guest.span[1]


def _last_growth(memory: GpuMemory, end_s: float) -> tuple[Evidence, ...]:
    """Return the largest step of a GPU's memory in the last minute, and the last one where that is another."""
    rows = memory.between(end_s - th.LAST_MINUTE_S, end_s)
    known = np.isfinite(memory.used_mib[rows])
    t_s, steps = memory.t_s[rows][known][1:], np.diff(memory.used_mib[rows][known])
    grown = np.flatnonzero(steps >= th.STEP_MIB)
    if not len(grown):
        return ()
    largest, last = int(np.argmax(steps)), int(grown[-1])
    facts = _step("its largest step in the last minute", steps[largest], end_s - t_s[largest])
    return facts if last == largest else (*facts, *_step("its last step", steps[last], end_s - t_s[last]))


def _step(what: str, mib: float, before_s: float) -> tuple[Evidence, ...]:
    return (Evidence(what, float(mib) / MIB_PER_GIB, "GiB"), Evidence("that long before the end", float(before_s), "s"))

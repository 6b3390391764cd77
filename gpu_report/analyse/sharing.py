"""Rule: another process worked on a GPU that the training used. Utilisation may even rise; the training gets less."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.context import Context
from gpu_report.analyse.scene import Scene, evidence
from gpu_report.analyse.scenes import FOREIGN, OWN, Scenes
from gpu_report.analyse.spans import Span, intersect
from gpu_report.analyse.track import Track
from gpu_report.model import Cause, Evidence, Finding


@dataclass(frozen=True)
class Guest:
    """A process on a GPU beside the training's: when, its largest memory, and its share of the GPU's time, if told."""

    gpu: int
    pid: int
    name: str
    span: Span
    memory_mib: float | None
    util_pct: float | None


def other_processes(context: Context) -> list[Finding]:
    """Report every process that worked on a GPU of the training beside it, even one that it started itself."""
    trained = [(p.start_t_s, p.end_t_s) for p in context.phases if p.name in {"train", "validation"}]
    scenes = Scenes(context, ())
    found = []
    for track in context.tracks:
        if track.gpu not in context.activity.used_gpus:
            continue
        for guest in guests(context, track):
            beside = intersect([guest.span], trained)
            if _worked(guest) and sum(b - a for a, b in beside) >= th.GUEST_AT_LEAST_S:
                found.append((guest, scenes.of(guest.gpu, *guest.span)))
    found.sort(key=lambda pair: pair[0].span)
    return [_finding(context, number, guest, scene) for number, (guest, scene) in enumerate(found, 1)]


def guests(context: Context, track: Track) -> list[Guest]:
    """Return the guests of a GPU. When they came and went is told by its memory between two looks."""
    table = context.run.processes
    rows = table[table["gpu"] == track.gpu]
    found = []
    for pid in _guest_pids(context, rows):
        mine = rows[rows["pid"] == pid]
        memory = max(mine["memory_used_mib"].dropna().tolist(), default=None)
        used = max(mine["gpu_util_pct"].dropna().tolist(), default=None)
        gone = mine[mine["change"] == "gone"]["t_s"].tolist()
        came_s, went_s = float(mine["t_s"].iloc[0]), gone[-1] if gone else context.run.duration_s
        span = (_step(track, came_s, memory, up=True), _step(track, went_s, memory, up=False) if gone else went_s)
        found.append(Guest(track.gpu, int(pid), str(mine["name"].iloc[0]), span, memory, used))
    return [guest for guest in found if guest.span[0] < guest.span[1]]


def _guest_pids(context: Context, rows: pd.DataFrame) -> list[int]:
    """Return whoever is not of the training, and its own processes but for its ranks and the largest one.

    A process of which nobody knows whose it is, is no guest.
    """
    foreign = rows[rows["owner"].isin(FOREIGN)]["pid"].tolist()
    own = rows[rows["owner"] == OWN].dropna(subset="memory_used_mib").sort_values("memory_used_mib")["pid"].tolist()
    mine = {*(process.pid for process in context.run.inside), *own[-1:]}
    return [int(pid) for pid in dict.fromkeys([*foreign, *own]) if pid not in mine]


def _worked(guest: Guest) -> bool:
    """Tell whether it did more than hold memory; where the driver does not say, it is taken to have worked."""
    return guest.util_pct is None or guest.util_pct >= th.GUEST_UTIL_PCT


def _step(track: Track, look_s: float, memory_mib: float | None, *, up: bool) -> float:
    """Return when the GPU's memory stepped by about a process's before a look, else the middle of the time since."""
    since_s = look_s - th.PROCESSES_EVERY_S - track.tick_s
    rows = track.rows[(track.rows["t_s"] > since_s) & (track.rows["t_s"] <= look_s + track.tick_s)]
    used, t_s = rows["memory_used_mib"].to_numpy(dtype=float), rows["t_s"].to_numpy(dtype=float)
    if memory_mib and len(used) > 1:
        steps = np.diff(used) if up else -np.diff(used)
        at = int(np.argmax(np.nan_to_num(steps)))
        if steps[at] >= th.GUEST_STEP_SHARE * memory_mib:
            return float(t_s[at + 1]) if up else float(t_s[at])
    return look_s - th.PROCESSES_EVERY_S / 2


def _finding(context: Context, number: int, guest: Guest, scene: Scene) -> Finding:
    start_s, end_s = guest.span
    who = f"{guest.name or 'a process'} (pid {guest.pid})"
    epoch, phase = context.place_at(start_s)
    text = f"{who} worked on GPU {guest.gpu} beside the training for {end_s - start_s:.0f} s"
    return Finding(
        id=f"other-process-{number}",
        rule="other-process",
        severity="warning",
        gpu=guest.gpu,
        start_t_s=start_s,
        end_t_s=end_s,
        summary=text,
        epoch=epoch,
        phase=phase,
        evidence=_evidence(guest, scene),
        cause=Cause("other-process", 0.9, f"{who} shared the GPU with the training"),
        kernel_events=tuple(scene.kernel),
    )


def _evidence(guest: Guest, scene: Scene) -> tuple[Evidence, ...]:
    return evidence(
        ("its share of the GPU's time, at most", guest.util_pct, "%"),
        ("its memory", guest.memory_mib, "MiB"),
        ("utilisation meanwhile", scene.gpu_within("gpu_util_pct"), "%"),
        ("usually", scene.gpu_usual("gpu_util_pct"), "%"),
        ("sent to the GPU meanwhile (PCIe)", scene.gpu_within("pcie_rx_mib_s"), "MiB/s"),
        ("usually", scene.gpu_usual("pcie_rx_mib_s"), "MiB/s"),
        ("CPU of the loader's workers meanwhile", scene.within("workers_cpu_pct"), "% of a core"),
        ("usually", scene.usual("workers_cpu_pct"), "% of a core"),
    )

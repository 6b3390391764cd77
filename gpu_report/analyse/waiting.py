"""Rule: a GPU reads as busy and does nothing, because its rank waits for another one (DDP)."""

import numpy as np

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.context import Context
from gpu_report.analyse.drops import stretches
from gpu_report.analyse.scene import Scene, evidence
from gpu_report.analyse.scenes import Scenes
from gpu_report.analyse.spans import Span
from gpu_report.analyse.track import Bools, Floats, Track
from gpu_report.model import Cause, Evidence, Finding, Interval


def waiting_for_peer(context: Context) -> list[Finding]:
    """Report where a rank's GPU spins at full utilisation and idle power for 10 s or more, and whom it waits for."""
    used = [track for track in context.tracks if track.gpu in context.activity.used_gpus]
    if len(used) < 2:
        return []
    pairs = zip(context.tracks, context.usable, strict=True)
    found = [interval for track, usable in pairs if track in used for interval in spinning(track, usable)]
    found.sort(key=lambda interval: (interval.start_t_s, interval.gpu))
    scenes = Scenes(context, [(interval.start_t_s, interval.end_t_s) for interval in found])
    return [_finding(context, scenes, number, interval) for number, interval in enumerate(found, 1)]


def spinning(track: Track, usable: Bools) -> list[Interval]:
    """Return where utilisation is full and power, at its usual work far higher, is not: a kernel that only waits."""
    power, power_t = _known(track, "power_w")
    if not len(power):
        return []
    working = np.interp(track.t_s[usable], power_t, power) if usable.any() else power
    usual = float(np.median(working))
    at_power = power[np.clip(np.searchsorted(power_t, track.t_s), 0, len(power) - 1)]
    idle = usable & (track.util_pct >= th.SPINNING_UTIL_PCT) & (at_power <= th.SPINNING_POWER_SHARE * usual)
    found = [(track.t_s[a], track.ends_s[b - 1]) for a, b in stretches(track, idle, usable)]
    return [
        Interval(track.gpu, float(start), float(end), track.mean_pct(float(start), float(end)))
        for start, end in found
        if end - start >= th.LOW_AT_LEAST_S - th.READING_SLACK * track.tick_s
    ]


def _known(track: Track, name: str) -> tuple[Floats, Floats]:
    values, t_s = track.rows[name].to_numpy(dtype=float), track.rows["t_s"].to_numpy(dtype=float)
    known = np.isfinite(values)
    return values[known], t_s[known]


def _finding(context: Context, scenes: Scenes, number: int, interval: Interval) -> Finding:
    span = interval.start_t_s, interval.end_t_s
    scene = scenes.of(interval.gpu, *span)
    late = _late(context, interval.gpu, span)
    power = scene.gpu_within("power_w")
    peer = f"GPU {late}" if late is not None else "another rank"
    epoch, phase = context.place_at(span[0])
    seconds = f"{interval.duration_s:.0f} s"
    return Finding(
        id=f"waiting-{number}",
        rule="waiting-for-peer",
        severity="warning",
        gpu=interval.gpu,
        start_t_s=span[0],
        end_t_s=span[1],
        summary=f"GPU {interval.gpu} read {interval.mean_pct:.0f} % and waited {seconds} for {peer}",
        epoch=epoch,
        phase=phase,
        evidence=_evidence(scene, power),
        cause=Cause("waiting-for-peer", 0.9, _explanation(scene, peer)),
        kernel_events=tuple(scene.kernel),
    )


def _late(context: Context, gpu: int, span: Span) -> int | None:
    """Return the GPU that did least of the others: the rank that all wait for."""
    others = [t for t in context.tracks if t.gpu != gpu and t.gpu in context.activity.used_gpus]
    means = {t.gpu: mean for t in others if np.isfinite(mean := t.mean_pct(*span))}
    quiet = {gpu: mean for gpu, mean in means.items() if mean < th.SPINNING_UTIL_PCT}
    return min(quiet, key=lambda other: quiet[other], default=None)


def _explanation(scene: Scene, peer: str) -> str:
    stopped = scene.within("trainer_stopped")
    why = "; a signal had stopped a process of the training" if stopped is not None and stopped >= th.STOPPED else ""
    return f"it was at full utilisation and idle power: its rank spun until the one on {peer} came{why}"


def _evidence(scene: Scene, power: float | None) -> tuple[Evidence, ...]:
    return evidence(
        ("power meanwhile", power, "W"),
        ("usually", scene.gpu_usual("power_w"), "W"),
        ("tensor activity meanwhile", scene.gpu_within("tensor_active_pct"), "%"),
        ("usually", scene.gpu_usual("tensor_active_pct"), "%"),
        ("processes stopped by a signal (mean)", scene.within("trainer_stopped"), ""),
    )

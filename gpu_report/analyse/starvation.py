"""Rule: a GPU that mostly waits throughout training, outside any drop: what holds it back all the time."""

from collections.abc import Sequence

import numpy as np

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.activity import outside
from gpu_report.analyse.causes import explain
from gpu_report.analyse.context import Context
from gpu_report.analyse.scene import Scene
from gpu_report.analyse.spans import Span
from gpu_report.analyse.track import Bools, Track
from gpu_report.model import Evidence, Finding


def starved_gpus(context: Context) -> list[Finding]:
    """Report each used GPU whose ordinary training is under ROOM_PCT busy, with what the host did meanwhile."""
    pairs = zip(context.tracks, context.usable, strict=True)
    means = [(track.gpu, _mean_pct(track, use, context.scenes.calm)) for track, use in pairs]
    low = [(gpu, mean) for gpu, mean in means if mean is not None and mean < th.ROOM_PCT]
    waited = _data_wait(context)
    return [
        _finding(number, context.scenes.of_training(gpu), mean, waited) for number, (gpu, mean) in enumerate(low, 1)
    ]


def _mean_pct(track: Track, usable: Bools, calm: Sequence[Span]) -> float | None:
    """Return mean utilisation in ordinary training, None where there is too little of it to judge."""
    mine = usable & ~outside(track, calm)
    seconds = float(track.hold_s[mine].sum())
    if seconds < th.STARVED_AT_LEAST_S:
        return None
    return float((track.hold_s * track.util_pct)[mine].sum()) / seconds


def _finding(number: int, scene: Scene, mean_pct: float, waited: tuple[Evidence, ...]) -> Finding:
    cause, proof = explain(scene)
    return Finding(
        id=f"starved-{number}",
        rule="starved",
        severity="warning",
        gpu=scene.gpu,
        start_t_s=scene.start_t_s,
        end_t_s=scene.end_t_s,
        summary=f"GPU {scene.gpu} was busy {mean_pct:.0f} % of its ordinary training: {cause.explanation}",
        evidence=(Evidence("utilisation in ordinary training (mean)", mean_pct, "%"), *waited, *proof),
        cause=cause,
    )


def _data_wait(context: Context) -> tuple[Evidence, ...]:
    """Return the share of training that the trainer waited for data, where callbacks told it."""
    told = [epoch for epoch in context.inside.told.values() if epoch.end_t_s is not None]
    trained_s = float(np.sum([epoch.end_t_s - epoch.start_t_s for epoch in told if epoch.end_t_s is not None]))
    if trained_s <= 0:
        return ()
    waited_s = sum(epoch.data_wait_s for epoch in told)
    return (Evidence("of training the trainer waited for data", 100 * waited_s / trained_s, "%"),)

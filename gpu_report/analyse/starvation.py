"""Rule: a GPU that mostly waits throughout training, outside any drop: what holds it back all the time."""

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.activity import outside
from gpu_report.analyse.causes import explain
from gpu_report.analyse.context import Context
from gpu_report.analyse.ordinary import is_disturbed
from gpu_report.analyse.scene import Scene, evidence
from gpu_report.analyse.spans import Span, Spans, Touching, as_array
from gpu_report.analyse.track import Bools, Track
from gpu_report.model import Finding


def starved_gpus(context: Context) -> list[Finding]:
    """Report each used GPU that is under ROOM_PCT busy in ordinary training, or whose trainer waits for data as much.

    With it stands what the host did meanwhile.
    """
    pairs = zip(context.tracks, context.usable, strict=True)
    ordinary = as_array(context.ordinary)
    means = [(track.gpu, _mean_pct(track, use, ordinary)) for track, use in pairs]
    waited = _data_wait(context)
    waits = waited is not None and waited >= th.DATA_WAIT_SHARE
    low = [(gpu, mean) for gpu, mean in means if mean is not None and (mean < th.ROOM_PCT or waits)]
    low = low if context.scenes.calm else []
    of = context.scenes.of_training
    return [_finding(number, of(gpu), _training(context), mean, waited) for number, (gpu, mean) in enumerate(low, 1)]


def _training(context: Context) -> Span:
    """Return the time from the beginning of the first training to the end of the last."""
    trained = [phase for phase in context.phases if phase.name == "train"]
    if not trained:
        return context.scenes.calm[0][0], context.scenes.calm[-1][1]
    return trained[0].start_t_s, max(phase.end_t_s for phase in trained)


def _mean_pct(track: Track, usable: Bools, ordinary: Spans) -> float | None:
    """Return mean utilisation in ordinary training, None where there is too little of it to judge."""
    mine = usable & ~outside(track, ordinary)
    seconds = float(track.hold_s[mine].sum())
    if seconds < th.STARVED_AT_LEAST_S:
        return None
    return float((track.hold_s * track.util_pct)[mine].sum()) / seconds


def _finding(number: int, scene: Scene, span: Span, mean_pct: float, waited: float | None) -> Finding:
    """Return the finding; without a cause, what is between starved and healthy is a note."""
    cause, proof = explain(scene)
    numbers = evidence(
        ("mean utilisation in ordinary training (no first epoch, no disturbed one)", mean_pct, "%"),
        ("of ordinary training the trainer waited for data", None if waited is None else 100 * waited, "%"),
    )
    return Finding(
        id=f"starved-{number}",
        rule="starved",
        severity="warning" if cause.confidence > 0 or mean_pct < th.STARVED_PCT else "info",
        gpu=scene.gpu,
        start_t_s=span[0],
        end_t_s=span[1],
        summary=f"GPU {scene.gpu} was busy {mean_pct:.0f} % of its ordinary training: {cause.explanation}",
        evidence=(*numbers, *(each for each in proof if each.text != "utilisation")),  # told already, of all of it
        cause=cause,
    )


def _data_wait(context: Context) -> float | None:
    """Return the share (0 to 1) of ordinary epochs that the trainer waited for data, None where nobody told it.

    The first epoch of a process waits for its first batch, one with a drop in it for what made the drop.
    """
    firsts = {(b.row.run, b.row.start_t_s) for b in context.boundaries.all if b.first}
    near = Touching([(drop.start_t_s, drop.end_t_s) for drop in context.drops], lambda span: span)
    told = [
        (epoch.end_t_s - epoch.start_t_s, epoch.data_wait_s)
        for key, epoch in context.inside.told.items()
        if epoch.end_t_s is not None and key not in firsts and not is_disturbed((epoch.start_t_s, epoch.end_t_s), near)
    ]
    trained_s = sum(length_s for length_s, _ in told)
    return sum(waited_s for _, waited_s in told) / trained_s if trained_s > 0 else None

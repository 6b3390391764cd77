"""What YOLO was doing at every second, seen from outside: rows of results.csv and the samples themselves."""

import itertools
from collections.abc import Sequence

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.activity import Activity, Span
from gpu_report.analyse.boundaries import Boundaries, Boundary
from gpu_report.model import Phase, Run, YoloRun

FROM_SAMPLES = "utilisation"
FROM_ROWS = "results.csv"
FROM_BOTH = "results.csv, edges from utilisation"


def find_phases(run: Run, activity: Activity, boundaries: Boundaries) -> tuple[Phase, ...]:
    """Return the phases in order, without overlap. Where no epochs are known, only startup and idle are."""
    phases = [Phase("startup", None, start, end, FROM_SAMPLES) for start, end in activity.startups]
    phases += [Phase("idle", None, start, end, FROM_SAMPLES) for start, end in activity.idle]
    for boundary in boundaries.all:
        phases += _epoch_phases(boundary)
    for yolo in run.yolo_runs:
        phases += _after_the_last(run, yolo, boundaries)
    return _without_overlap(phases, run.duration_s)


def final_evaluations(phases: Sequence[Phase], boundaries: Boundaries) -> list[Span]:
    """Return the final evaluations that are short enough to be nothing else: they are no training."""
    longest = max((b.before_s or 0.0 for b in boundaries.all), default=0.0)
    allowed = max(th.FINAL_EVALUATION_S, th.FINAL_FACTOR * longest)
    found = [(p.start_t_s, p.end_t_s) for p in phases if p.name == "final evaluation"]
    return [(start, end) for start, end in found if end - start <= allowed]


def _epoch_phases(boundary: Boundary) -> list[Phase]:
    """Return train, validation and checkpoint of an epoch; without a dip validation is not told from training."""
    row = boundary.row
    if boundary.dip is None:
        return [Phase("train", row.epoch, row.start_t_s, row.row_t_s, FROM_ROWS)]
    begin, end = min(boundary.dip[0], row.row_t_s), max(boundary.dip[1], row.row_t_s)
    return [
        Phase("train", row.epoch, row.start_t_s, begin, FROM_BOTH),
        Phase("validation", row.epoch, begin, row.row_t_s, FROM_BOTH),
        Phase("checkpoint", row.epoch, row.row_t_s, end, FROM_BOTH),
    ]


def _after_the_last(run: Run, yolo: YoloRun, boundaries: Boundaries) -> list[Phase]:
    """Return what follows the last row of a YOLO run: the final evaluation, or an epoch that never ended.

    A command that ended well before its last epoch was asked for has stopped early, which is an end like any other.
    """
    rows = [b.row for b in boundaries.all if b.row.run == yolo.number]
    if not rows:
        return []
    last = rows[-1]
    later = [b.row.start_t_s for b in boundaries.all if b.row.start_t_s > last.row_t_s]
    end = min(later, default=run.duration_s)
    if last.epoch == yolo.args.get("epochs") or (run.recording.exit_code == 0 and not later):
        return [Phase("final evaluation", None, last.row_t_s, end, FROM_ROWS)]
    return [Phase("train", last.epoch + 1, last.row_t_s, end, FROM_ROWS)]


# Where two claim the same second the first of these wins: what was seen on the GPU before what rows imply.
PRECEDENCE = ("idle", "startup", "checkpoint", "validation", "train", "final evaluation")


def _without_overlap(phases: Sequence[Phase], duration_s: float) -> tuple[Phase, ...]:
    """Cut the phases at each other's edges; a sweep, since a long run has thousands."""
    whole = [p for p in phases if p.end_t_s > p.start_t_s]
    edges = sorted({0.0, duration_s, *(e for p in whole for e in (p.start_t_s, p.end_t_s) if 0 <= e <= duration_s)})
    begins = sorted(whole, key=lambda phase: phase.start_t_s)
    found: list[Phase] = []
    open_phases: list[Phase] = []
    at = 0
    for start, end in itertools.pairwise(edges):
        while at < len(begins) and begins[at].start_t_s <= start:
            open_phases.append(begins[at])
            at += 1
        open_phases = [p for p in open_phases if p.end_t_s > start]
        owner = min(open_phases, key=lambda phase: PRECEDENCE.index(phase.name), default=None)
        if owner is not None:
            _append(found, Phase(owner.name, owner.epoch, start, end, owner.source))
    return tuple(found)


def _append(found: list[Phase], phase: Phase) -> None:
    last = found[-1] if found else None
    if last and (last.name, last.epoch, last.end_t_s) == (phase.name, phase.epoch, phase.start_t_s):
        found[-1] = Phase(last.name, last.epoch, last.start_t_s, phase.end_t_s, last.source)
    else:
        found.append(phase)

"""What YOLO was doing at every second, seen from outside: rows of results.csv and the samples themselves."""

import itertools
from collections.abc import Sequence

from gpu_report.analyse.activity import Activity
from gpu_report.analyse.boundaries import Boundary
from gpu_report.model import Phase, Run

FROM_SAMPLES = "utilisation"
FROM_ROWS = "results.csv"
FROM_BOTH = "results.csv, edges from utilisation"


def find_phases(run: Run, activity: Activity, boundaries: Sequence[Boundary]) -> tuple[Phase, ...]:
    """Return the phases in order, without overlap. Where no epochs are known, only startup and idle are."""
    phases = [Phase("startup", None, start, end, FROM_SAMPLES) for start, end in activity.startups]
    phases += [Phase("idle", None, start, end, FROM_SAMPLES) for start, end in activity.idle]
    for boundary in boundaries:
        phases += _epoch_phases(boundary)
    phases += _after_the_last(run, boundaries)
    return _without_overlap(phases, run.duration_s)


def _epoch_phases(boundary: Boundary) -> list[Phase]:
    """Return train, validation and checkpoint of an epoch; without a dip validation is not told from training."""
    row = boundary.row
    if boundary.dip_start_s is None or boundary.dip_end_s is None:
        return [Phase("train", row.epoch, row.start_t_s, row.row_t_s, FROM_ROWS)]
    begin = min(boundary.dip_start_s, row.row_t_s)
    phases = [Phase("train", row.epoch, row.start_t_s, begin, FROM_BOTH)]
    phases.append(Phase("validation", row.epoch, begin, row.row_t_s, FROM_BOTH))
    phases.append(Phase("checkpoint", row.epoch, row.row_t_s, max(boundary.dip_end_s, row.row_t_s), FROM_BOTH))
    return phases


def _after_the_last(run: Run, boundaries: Sequence[Boundary]) -> list[Phase]:
    """Return what follows the last row of each YOLO run: the final evaluation, or an epoch that never ended."""
    phases = []
    for yolo in run.yolo_runs:
        rows = [b.row for b in boundaries if b.row.run == yolo.number]
        if not rows:
            continue
        last = max(rows, key=lambda row: row.row_t_s)
        later = [b.row.start_t_s for b in boundaries if b.row.start_t_s > last.row_t_s]
        end = min(later, default=run.duration_s)
        if last.epoch == yolo.args.get("epochs"):
            phases.append(Phase("final evaluation", None, last.row_t_s, end, FROM_ROWS))
        else:
            phases.append(Phase("train", last.epoch + 1, last.row_t_s, end, FROM_ROWS))
    return phases


# Where two claim the same second the first of these wins: what was seen on the GPU before what rows imply.
PRECEDENCE = ("idle", "startup", "checkpoint", "validation", "train", "final evaluation")


def _without_overlap(phases: Sequence[Phase], duration_s: float) -> tuple[Phase, ...]:
    edges = sorted({0.0, duration_s, *(e for p in phases for e in (p.start_t_s, p.end_t_s) if 0 <= e <= duration_s)})
    ranked = sorted(phases, key=lambda phase: PRECEDENCE.index(phase.name))
    found: list[Phase] = []
    for start, end in itertools.pairwise(edges):
        owner = next((p for p in ranked if p.start_t_s <= start and p.end_t_s >= end), None)
        if owner is None:
            continue
        last = found[-1] if found else None
        if last and (last.name, last.epoch) == (owner.name, owner.epoch) and last.end_t_s == start:
            found[-1] = Phase(last.name, last.epoch, last.start_t_s, end, last.source)
        else:
            found.append(Phase(owner.name, owner.epoch, start, end, owner.source))
    return tuple(found)

"""What YOLO was doing at every second: as it reported itself, else as its files and the samples tell from outside."""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from gpu_report.analyse.timeline import thresholds as th
from gpu_report.analyse.timeline.activity import Activity, unfinished
from gpu_report.analyse.timeline.callbacks import CallbackView
from gpu_report.analyse.timeline.epoch_end_fit import EpochFit, Pause, fit_epoch_ends, unknown_epoch_ends
from gpu_report.analyse.timeline.epoch_ends import EpochEnds
from gpu_report.analyse.timeline.fitness import fitness
from gpu_report.analyse.timeline.siblings import SiblingLengths
from gpu_report.analyse.timeseries.gpu_series import Bools, GpuSeries
from gpu_report.analyse.timeseries.intervals import Span, minus
from gpu_report.model import FROM_CALLBACKS, FROM_TENSORBOARD, EpochRow, Phase, Run, YoloRun

FROM_SAMPLES = "utilisation"
FROM_ROWS = "results.csv"
FROM_BOTH = "results.csv, edges from utilisation"
FROM_FILES = "results.csv and file times"
# A row that may be further off is not beside the validation and checkpoint that readings show, of about a second each.
PLACED_S = 2.0
FROM_ARGS = "args.yaml, end from utilisation"


class SeenPhases(NamedTuple):
    """Phases as seen from outside, in order; in spans that are `too_coarse` training holds validations unseen."""

    all: tuple[Phase, ...]
    too_coarse: tuple[Span, ...]


def find_phases(
    run: Run, activity: Activity, epoch_ends: EpochEnds, all_series: Sequence[GpuSeries], usable: Sequence[Bools]
) -> SeenPhases:
    """Return the phases in order, without overlap. Where no epochs are known, only startup and idle are."""
    began = {yolo.started_t_s for yolo in run.yolo_runs}
    phases = [
        Phase("startup", None, start, end, FROM_ARGS if start in began else FROM_SAMPLES)
        for start, end in activity.startups
    ]
    phases += [Phase("idle", None, start, end, FROM_SAMPLES) for start, end in activity.idle]
    too_coarse: list[Span] = []
    for yolo in run.yolo_runs:
        rows = [epoch_end.row for epoch_end in epoch_ends.all if epoch_end.row.run == yolo.number]
        fit = _fit(yolo, rows, epoch_ends, all_series, usable)
        phases += [
            phase
            for row, pause in zip(rows, fit.pauses, strict=True)
            for phase in _epoch_phases(yolo, row, pause, fit.uncertainty_s)
        ]
        phases += _after_the_last(run, yolo, epoch_ends)
        seen = any(row.trained_t_s is None for row in rows)
        if seen and fit.too_coarse and yolo.args.get("val") is not False:
            too_coarse.append((rows[0].start_t_s, rows[-1].row_t_s))
    return SeenPhases(_without_overlap(phases, run.duration_s), tuple(too_coarse))


def joined(inside: CallbackView, seen: Sequence[Phase], activity: Activity, duration_s: float) -> tuple[Phase, ...]:
    """Return the phases that YOLO reported, idle around them, and what was seen where a YOLO run reported nothing."""
    if not inside.spans:
        return tuple(seen)
    idle = [Phase("idle", None, start, end, FROM_CALLBACKS) for start, end in activity.idle]
    rest = [phase for phase in seen if phase.name != "idle" and not _of_reported(phase, inside)]
    cut = [
        replace(phase, start_t_s=start, end_t_s=end)
        for phase in rest
        for start, end in minus([phase.span], [*inside.spans, *activity.idle])
    ]
    return _without_overlap([*inside.phases, *idle, *cut], duration_s)


def _of_reported(phase: Phase, inside: CallbackView) -> bool:
    """Tell whether a phase seen from outside is of a YOLO run that reported its own: it begins or ends within one."""
    return inside.covers(phase.start_t_s) or inside.covers(phase.end_t_s)


def _fit(
    yolo: YoloRun,
    rows: Sequence[EpochRow],
    epoch_ends: EpochEnds,
    all_series: Sequence[GpuSeries],
    usable: Sequence[Bools],
) -> EpochFit:
    """Return what readings tell of the ends of a YOLO run's epochs: nothing where these are hardly known themselves."""
    if (yolo.uncertainty_s or 0.0) > PLACED_S:
        return unknown_epoch_ends(len(rows), too_coarse=True)
    firsts = [epoch_end.first for epoch_end in epoch_ends.all if epoch_end.row.run == yolo.number]
    return fit_epoch_ends(rows, firsts, _goes_on(yolo, rows), all_series, usable)


def _goes_on(yolo: YoloRun, rows: Sequence[EpochRow]) -> list[bool]:
    """Tell for each row whether training follows upon its checkpoint at once."""
    closes = mosaic_closes(yolo.args)
    last = {row.segment: row for row in rows}
    return [row is not last[row.segment] and row.epoch + 1 != closes for row in rows]


def mosaic_closes(args: Mapping[str, object]) -> int | None:
    """Return the first epoch without mosaic, for which YOLO makes its loader anew; None where there is none."""
    epochs, closing = args.get("epochs"), args.get("close_mosaic")
    return epochs - closing + 1 if isinstance(epochs, int) and isinstance(closing, int) and closing > 0 else None


def final_evaluations(phases: Sequence[Phase], epoch_ends: EpochEnds) -> list[Span]:
    """Return the final evaluations: those reported, and those seen that are short enough to be nothing else.

    Where no validation was seen, as in coarse readings, each is taken to have FINAL_OF_EPOCH of its epoch at most.
    """
    longest = max((b.validation_s or 0.0 for b in epoch_ends.all), default=0.0)
    epoch_s = min((b.row.row_t_s - b.row.start_t_s for b in epoch_ends.all if not longest), default=0.0)
    allowed = max(th.FINAL_EVALUATION_S, th.FINAL_FACTOR * longest, th.FINAL_OF_EPOCH * epoch_s)
    return [
        p.span
        for p in phases
        if p.name == "final evaluation" and (p.source == FROM_CALLBACKS or p.end_t_s - p.start_t_s <= allowed)
    ]


def usual_validations(phases: Sequence[Phase], epoch_ends: EpochEnds) -> list[Span]:
    """Return the validations that are as long as their siblings are, whoever saw them."""
    found = [phase for phase in phases if phase.name == "validation"]
    firsts = [epoch_ends.is_in_first(phase.start_t_s) for phase in found]
    lengths = SiblingLengths([phase.end_t_s - phase.start_t_s for phase in found], firsts)
    usual = (lengths.of(at, th.LONGER_TOLERATED_S, th.FIRST_VALIDATION_EXTRA_S) for at in range(len(found)))
    return [
        phase.span
        for phase, each in zip(found, usual, strict=True)
        if each is None or phase.end_t_s - phase.start_t_s <= each.longest_s
    ]


def _epoch_phases(yolo: YoloRun, row: EpochRow, rest: Pause, known_to_s: float) -> list[Phase]:
    """Return train, validation and checkpoint of an epoch, as far as they are distinguished and take place at all.

    Where readings tell where training ended, they do to `known_to_s`; YOLO's own TensorBoard events do exactly.
    """
    last = row.epoch == yolo.args.get("epochs")
    validates, saves = (last or yolo.args.get(name) is not False for name in ("val", "save"))
    begin, train_source, uncertainty_s = row.row_t_s, FROM_ROWS, None
    if validates and row.trained_t_s is not None:
        begin, train_source, uncertainty_s = row.trained_t_s, FROM_TENSORBOARD, 0.0
    elif validates and math.isfinite(rest.validation_s):
        begin, train_source = max(row.row_t_s - rest.validation_s, row.start_t_s), FROM_BOTH
        uncertainty_s = known_to_s
    saved, save_source = _saved(yolo, row, rest)
    phases = [
        Phase("train", row.epoch, row.start_t_s, begin, train_source, uncertainty_s=uncertainty_s),
        Phase("validation", row.epoch, begin, row.row_t_s, train_source, uncertainty_s=uncertainty_s),
        Phase("checkpoint", row.epoch, row.row_t_s, saved if saves else row.row_t_s, save_source),
    ]
    return [phase for phase in phases if phase.end_t_s > phase.start_t_s]


def _saved(yolo: YoloRun, row: EpochRow, rest: Pause) -> tuple[float, str]:
    """Return when an epoch's checkpoint was written, and where that is known from."""
    if row.saved_t_s is not None:
        return row.saved_t_s, FROM_FILES if row.trained_t_s is None else FROM_TENSORBOARD
    if math.isfinite(rest.checkpoint_s):
        return row.row_t_s + rest.checkpoint_s, FROM_BOTH
    if yolo.checkpoint_s is not None:
        return row.row_t_s + yolo.checkpoint_s, FROM_FILES
    return row.row_t_s, FROM_ROWS


def _after_the_last(run: Run, yolo: YoloRun, epoch_ends: EpochEnds) -> list[Phase]:
    """Return what follows the last row of a YOLO run: the final evaluation, or an epoch that never ended."""
    rows = [b.row for b in epoch_ends.all if b.row.run == yolo.number]
    began = unfinished(run)
    if not rows and yolo.number not in began:
        return []
    last_s, epoch = (rows[-1].row_t_s, rows[-1].epoch) if rows else (began[yolo.number], 0)
    starts = (*(b.row.start_t_s for b in epoch_ends.all if b.row.run != yolo.number), *began.values())
    later = [start for start in starts if start > last_s]
    end = min(later, default=run.duration_s)
    ended_well = run.recording.exit_code == 0 and not later
    if rows and (ended_well or finished(yolo.args, rows)):
        return [Phase("final evaluation", None, last_s, end, FROM_ROWS)]
    return [Phase("train", epoch + 1, last_s, end, FROM_ROWS if rows else FROM_SAMPLES)]


def finished(args: Mapping[str, object], rows: Sequence[EpochRow]) -> bool:
    """Tell whether the last row is the last that was to come: by the number of epochs, the time, or the patience.

    Patience is counted from the first epoch of the best fitness; while that is 0, it does not begin (`EarlyStopping`).
    """
    last = rows[-1]
    budget, patience = args.get("time"), args.get("patience")
    if isinstance(budget, int | float) and budget > 0:
        started = min(row.start_t_s for row in rows if row.segment == last.segment)
        return last.row_t_s - started >= budget * 3600
    if isinstance(patience, int) and patience > 0:
        best, epoch = max((fitness(row.metrics), -row.epoch) for row in rows)
        if best > 0 and last.epoch + epoch >= patience:
            return True
    return last.epoch == args.get("epochs")


# Where two claim the same second the first of these wins: what was seen on the GPU before what rows imply.
PRECEDENCE = ("idle", "startup", "checkpoint", "validation", "train", "final evaluation", "export", "predict")


def _without_overlap(phases: Sequence[Phase], duration_s: float) -> tuple[Phase, ...]:
    """Cut the phases at each other's edges; nearly all of the thousands of a long run overlap none."""
    found: list[Phase] = []
    for group in _overlapping(phases):
        for phase in _swept(group) if len(group) > 1 else group:
            start, end = max(phase.start_t_s, 0.0), min(phase.end_t_s, duration_s)
            if start < end:
                whole = (start, end) == phase.span
                _append(found, phase if whole else replace(phase, start_t_s=start, end_t_s=end))
    return tuple(found)


def _overlapping(phases: Sequence[Phase]) -> Iterator[list[Phase]]:
    """Yield the phases in order of time, those that overlap one another together."""
    group: list[Phase] = []
    end_s = -math.inf
    for phase in sorted((p for p in phases if p.end_t_s > p.start_t_s), key=lambda phase: phase.start_t_s):
        if group and phase.start_t_s >= end_s:
            yield group
            group = []
        group.append(phase)
        end_s = max(end_s, phase.end_t_s)
    if group:
        yield group


def _swept(phases: Sequence[Phase]) -> Iterator[Phase]:
    """Yield the stretches between the edges of some phases, given in order of their starts, each of one phase."""
    edges = sorted({edge for phase in phases for edge in phase.span})
    open_phases: list[Phase] = []
    at = 0
    for start, end in itertools.pairwise(edges):
        while at < len(phases) and phases[at].start_t_s <= start:
            open_phases.append(phases[at])
            at += 1
        open_phases = [phase for phase in open_phases if phase.end_t_s > start]
        owner = min(open_phases, key=lambda phase: PRECEDENCE.index(phase.name))
        yield replace(owner, start_t_s=start, end_t_s=end)


def _append(found: list[Phase], phase: Phase) -> None:
    last = found[-1] if found else None
    if last and last.end_t_s == phase.start_t_s and _same(last, phase):
        found[-1] = replace(last, end_t_s=phase.end_t_s)
    else:
        found.append(phase)


def _same(one: Phase, other: Phase) -> bool:
    """Tell whether two phases are of one kind, epoch and source."""
    return (one.name, one.epoch, one.source, one.detail) == (other.name, other.epoch, other.source, other.detail)

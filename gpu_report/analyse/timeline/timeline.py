"""The whole timeline of a run: what YOLO's callbacks reported of it, else what its files and the GPUs show."""

from collections.abc import Sequence
from typing import NamedTuple

from gpu_report.analyse.timeline.activity import Activity, find_activity
from gpu_report.analyse.timeline.callbacks import CallbackView, callback_view, with_callbacks
from gpu_report.analyse.timeline.epoch_ends import EpochEnds, bare_epoch_ends, with_pauses
from gpu_report.analyse.timeline.phases import find_phases, joined, mosaic_closes
from gpu_report.analyse.timeline.trainings import Training, find_trainings
from gpu_report.analyse.timeseries.gpu_series import GpuSeries
from gpu_report.analyse.timeseries.intervals import Span, minus
from gpu_report.model import Phase, Run


class Timeline(NamedTuple):
    """When a run worked, its epochs' ends, its phases and its trainings, each in order of time.

    `too_coarse` is when readings were too far apart to tell training from validation, and nothing else tells.
    """

    callbacks: CallbackView
    activity: Activity
    epoch_ends: EpochEnds
    phases: tuple[Phase, ...]
    trainings: tuple[Training, ...]
    too_coarse: tuple[Span, ...]


def find_timeline(run: Run, series: Sequence[GpuSeries]) -> Timeline:
    """Return the timeline of a run whose GPUs have these readings."""
    callbacks, seen = callback_view(run), find_activity(run, series)
    awake = [seen.usable(each) for each in series]
    # where callbacks reported every epoch, nobody asks for what is seen from outside
    rows = () if all(callbacks.covers(row.row_t_s) for row in run.epoch_rows) else run.epoch_rows
    bare = bare_epoch_ends(rows)
    seen_phases = find_phases(run, seen, bare, series, awake)
    seen_ends = with_pauses(bare, series, awake, seen_phases.all)
    activity = callbacks.activity(seen, run.duration_s, others=_some_reported_nothing(run, callbacks))
    closes = {yolo.number: mosaic_closes(yolo.args) for yolo in run.yolo_runs}
    epoch_ends = with_callbacks(seen_ends, callbacks).with_mosaic(closes)
    epoch_ends = epoch_ends.with_profiled([window.span for window in run.profiled if window.ran])
    phases = joined(callbacks, seen_phases.all, activity, run.duration_s)
    too_coarse = minus(seen_phases.too_coarse, callbacks.spans)
    trainings = find_trainings(run, series, activity, epoch_ends, phases)
    return Timeline(callbacks, activity, epoch_ends, phases, trainings, tuple(too_coarse))


def _some_reported_nothing(run: Run, callbacks: CallbackView) -> bool:
    """Tell whether a YOLO run was watched that reported nothing by callbacks."""
    reported = {epoch_end.row.run for epoch_end in callbacks.epoch_ends} | {process.run for process in run.inside}
    return any(yolo.number not in reported for yolo in run.yolo_runs)

"""The table of where the GPU time went and the findings agree: what holds a training back has its idle time."""

from dataclasses import replace

import numpy as np
import pytest
from support.runs import make_run
from support.samples import run_of

from gpu_report.analyse import analyse
from gpu_report.analyse.build_context import build_context
from gpu_report.analyse.results.idle_rows import idle_rows
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.model import Cause, Finding, Interval, Options


@pytest.mark.parametrize(("cause", "is_booked"), [("cpu-limit", True), ("launch-bound", True), ("input-cpu", False)])
def test_idle_time_is_booked_under_what_holds_training_back_all_the_time(cause, is_booked):
    context = build_context(run_of("n-cpu-quota"), Options())
    (series,) = context.series
    start_s, end_s = context.all_train_spans[0]
    context.signals._loading[series.gpu] = interval_cover([(start_s, start_s + 0.1)])  # hardly a wait for the loader
    starved = Finding("starved-1", "starved", "warning", series.gpu, start_s, end_s, "", cause=Cause(cause, 0.9, ""))
    rows = idle_rows(context, series, [starved], [Interval(series.gpu, start_s, end_s, 5.0)])
    middle = series.t_s.searchsorted((start_s + end_s) / 2)
    assert (rows.names[rows.numbers[middle]] == cause) is is_booked


@pytest.mark.parametrize(("rule", "is_booked"), [("data-wait-growing", True), ("environment", False)])
def test_moments_of_waiting_go_to_what_epochs_waited_for(rule, is_booked):
    """What is said of whole epochs names no GPU; nor does what is said of a disk, which is no wait."""
    context = build_context(run_of("n-cpu-quota"), Options())
    (series,) = context.series
    start_s, end_s = context.all_train_spans[0]
    context.signals._loading[series.gpu] = interval_cover([(start_s, end_s)])
    found = Finding("found-1", rule, "warning", None, start_s, end_s, "", cause=Cause("input-storage", 0.9, ""))
    rows = idle_rows(context, series, [found], [])
    middle = series.t_s.searchsorted((start_s + end_s) / 2)
    assert (rows.names[rows.numbers[middle]] == "input-storage") is is_booked


def test_a_gpu_that_is_cut_into_mig_devices_has_no_time_beside_them():
    """Before Hopper neither reports utilisation: that is no time without samples."""
    run = make_run([[90.0] * 60, [90.0] * 60], quantities={"memory_used_mib": [9000.0] * 60})
    device = replace(run.gpus[1], index=1000, parent_index=0, mig_index=0)
    samples = run.samples.assign(gpu=np.where(run.samples["gpu"] == 1, 1000, 0), gpu_util_pct=np.nan)
    analysis = analyse(replace(run, gpus=(run.gpus[0], device), samples=samples))
    assert sum(row.gpu_seconds for row in analysis.ledger) == pytest.approx(run.duration_s)
    assert [gpu.of_others for gpu in analysis.gpus] == [True, False]
    assert analysis.coverage == 1.0

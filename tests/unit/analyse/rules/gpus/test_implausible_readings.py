"""A GPU that reads as busy with nobody on it, at idle power."""

import dataclasses

import pandas as pd
import pytest
from support.runs import PROCESSES, make_run, readings

from gpu_report.analyse import analyse
from gpu_report.model import RecordedEvent

NAN = float("nan")
SECONDS = 120
TRAINING = (12.0, 0, 41, "python train.py", 40_000.0, "appeared", "trainer", NAN)
LIMIT_W = 700.0


def stuck(util=100.0, power=121.0, seconds=40, rows=(TRAINING,), limit_w=LIMIT_W, events=()):
    """Return a run that trains on GPU 0 while GPU 1 reads `util` at `power` for the last so many seconds."""
    second = [0.0] * (SECONDS - seconds) + [util] * seconds
    run = make_run([readings((0, 10), (90, 110)), second], rows=[(1, 60), (2, 115)], events=events)
    samples = run.samples.copy()
    samples["power_w"] = 500.0
    samples.loc[samples["gpu"] == 1, "power_w"] = power
    gpus = tuple(dataclasses.replace(gpu, power_limit_w=limit_w) for gpu in run.gpus)
    table = pd.DataFrame([dict(zip(PROCESSES, row, strict=True)) for row in rows], columns=PROCESSES)
    return dataclasses.replace(run, samples=samples, gpus=gpus, processes=table)


def found(run):
    return [finding for finding in analyse(run).findings if finding.rule == "not-credible"]


def test_a_reading_without_a_process_and_without_power_is_not_credible():
    (finding,) = found(stuck())
    assert (finding.gpu, finding.start_t_s, finding.end_t_s) == (1, 80.0, 120.0)
    assert finding.severity == "warning"
    assert "no process on it" in finding.summary
    assert {(e.text, e.value) for e in finding.evidence} >= {("power meanwhile", 121.0), ("its limit", 700.0)}


def test_without_a_limit_power_close_to_the_least_is_idle():
    power = [80.0] * 60 + [300.0] * 20 + [85.0] * 40
    assert len(found(stuck(power=power, limit_w=None))) == 1
    assert found(stuck(power=[80.0] * 60 + [300.0] * 20 + [120.0] * 40, limit_w=None)) == []
    assert found(stuck(power=[80.0] * 80 + [85.0] * 40, limit_w=None)) == []  # it may always work at 85 W


@pytest.mark.parametrize(
    "run",
    [
        stuck(seconds=29),
        stuck(util=94.0),
        stuck(power=176.0),
        stuck(power=NAN),
        stuck(util=NAN),
        stuck(rows=()),
        stuck(rows=(TRAINING, (60.0, 1, 77, "python3", 900.0, "appeared", "other", NAN))),
        stuck(rows=(TRAINING, (100.0, 1, 77, "", 900.0, "appeared", "not visible", NAN))),
        stuck(events=(RecordedEvent(1.0, "nvml_error", 1, {"quantity": "processes", "reason": "no permission"}),)),
    ],
    ids=[
        "not for long",
        "just under",
        "with power",
        "power not recorded",
        "utilisation not recorded",
        "processes not recorded",
        "somebody's process",
        "a process came within it",
        "processes could not be read",
    ],
)
def test_what_is_credible_or_not_known(run):
    assert found(run) == []


def test_what_a_process_left_behind_counts_from_when_it_had_gone():
    there = (20.0, 1, 77, "python3", 900.0, "appeared", "other", 90.0)
    gone = (80.0, 1, 77, "python3", NAN, "gone", "other", NAN)
    (finding,) = found(stuck(seconds=80, rows=(TRAINING, there, gone)))
    assert (finding.start_t_s, finding.end_t_s) == (80.0, 120.0)


def test_a_gpu_in_mig_devices_has_its_processes_on_them():
    run = stuck()
    part = dataclasses.replace(run.gpus[0], index=2, parent_index=1, mig_index=0)
    assert found(dataclasses.replace(run, gpus=(*run.gpus, part))) == []


def test_a_rank_that_waits_is_not_told_twice():
    """It reads 100 % at idle power as well, but its process is there."""
    run = stuck(rows=(TRAINING, (13.0, 1, 42, "python train.py", 40_000.0, "appeared", "trainer", NAN)))
    samples = run.samples.copy()
    late = (samples["gpu"] == 1) & (samples["t_s"] < 80)
    samples.loc[late, ["gpu_util_pct", "power_w"]] = [85.0, 500.0]
    findings = analyse(dataclasses.replace(run, samples=samples)).findings
    rules = {finding.rule for finding in findings if finding.gpu == 1}
    assert "waiting-for-peer" in rules
    assert "not-credible" not in rules

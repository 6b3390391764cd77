"""Played trainings without callbacks whose CPU is full while the GPU is busy for most of the time (round 17)."""

from dataclasses import replace

import pandas as pd
import pytest
from support.matching import is_alarm
from support.played_folder import write_played
from support.played_training import Played

from gpu_report import schema
from gpu_report.analyse import analyse
from gpu_report.load import load_run

# 16 workers on 16 cores; the rows are those of images far too large for their size in training.
FULL = Played(
    epochs=6, train_s=1100, validation_s=45, train_pct=65, train_w=200, interval_s=10.0, workers=16, main_cpu_pct=66
)


def alarms(folder, played, cpu_pct, pressure_pct):
    write_played(folder, played)
    rows = pd.read_csv(folder / schema.HOST_CSV)
    rows["cpu_pct"], rows["cpu_pressure_pct"] = cpu_pct, pressure_pct
    rows.to_csv(folder / schema.HOST_CSV, index=False)
    found = analyse(load_run(folder))
    return found.verdict.text, [each for each in found.findings if is_alarm(each)]


def test_full_cores_that_processes_wait_for_are_a_cause_however_busy_the_gpu_is(tmp_path):
    said, (finding,) = alarms(tmp_path / "run", replace(FULL, worker_cpu_pct=94), 99, 38)
    assert (finding.rule, finding.cause.name) == ("starved", "input-cpu")
    assert said.startswith("Give the training more CPU cores.")


def test_workers_that_never_rest_are_a_cause_while_other_cores_are_free(tmp_path):
    said, (finding,) = alarms(tmp_path / "run", replace(FULL, workers=2, worker_cpu_pct=98), 20, 0)
    assert (finding.rule, finding.cause.name) == ("starved", "input-cpu")
    assert "2 data-loader workers could not keep up" in said


@pytest.mark.parametrize(
    ("change", "cpu_pct", "pressure_pct"),
    [({"worker_cpu_pct": 60}, 65, 5), ({"worker_cpu_pct": 94, "train_pct": 90}, 99, 38)],
    ids=["workers rest", "the gpu is busy"],
)
def test_a_busy_cpu_alone_is_none(tmp_path, change, cpu_pct, pressure_pct):
    assert alarms(tmp_path / "run", replace(FULL, **change), cpu_pct, pressure_pct)[1] == []

"""Trainings whose CPU is too slow for all of the time, or since some minutes after the beginning (round 18), played."""

import json
from dataclasses import replace

import pandas as pd
import pytest
from support.played_folder import write_played
from support.played_training import Played

from gpu_report import schema
from gpu_report.analyse import analyse
from gpu_report.load import load_run

PLAYED = Played(epochs=8, train_s=300, validation_s=20, inside=True, interval_s=2.0, images=32_000, batch=32)


# A pod of 3.2 cores on a node of 64, with a MIG slice: 8 workers and the main process share them.
LIMITED = replace(PLAYED, cores=64, worker_cpu_pct=37, main_cpu_pct=67, data_wait_share=0.31, has_utilisation=False)


def limited(folder, played, cores, pressure_pct):
    write_played(folder, played)
    rows = pd.read_csv(folder / schema.HOST_CSV)
    rows["cgroup_cpu_pressure_pct"] = pressure_pct
    rows["main_cores"] = rows["worker_cores"] = played.cores
    rows.to_csv(folder / schema.HOST_CSV, index=False)
    run = json.loads((folder / schema.RUN_JSON).read_text())
    run["host"]["cpu_limit"] = cores
    (folder / schema.RUN_JSON).write_text(json.dumps(run))
    return analyse(load_run(folder))


def test_a_cpu_limit_of_a_container_is_to_be_raised_and_no_rank_is_spoken_of(tmp_path):
    found = limited(tmp_path / "run", LIMITED, 3.2, 62)
    assert found.verdict.text.startswith("Raise the CPU limit of 3.2 cores (`limits.cpu`, `--cpus`)")
    assert "rank" not in found.verdict.text
    assert not any(one.argument == "workers" for each in found.findings for a in each.advice for one in a.settings)
    (limit,) = found.speedup_limits
    assert (limit.cause, limit.epoch_s_at_best / limit.epoch_s_now) == ("cpu-limit", pytest.approx(0.69, abs=0.01))


def test_a_limit_that_leaves_enough_is_no_cause(tmp_path):
    """The same use of 3.6 cores, of 12 that may be used, and no process waits for one."""
    found = limited(tmp_path / "run", replace(LIMITED, data_wait_share=0.01), 12, 2)
    assert not any(each.severity != "info" for each in found.findings)

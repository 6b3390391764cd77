"""Trainings whose CPU is too slow for all of the time, or since some minutes after the beginning (round 18), played."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from support.played_folder import write_played
from support.played_training import Played
from support.played_yolo import MONO_S, PID, WALL_S, line

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


# Since minute 11 of two hours and a half the clock is at 63 %, with workers that can no longer keep up.
HOT_S = 680.0
HOT = replace(PLAYED, epochs=20, train_of=lambda epoch: 300 if epoch < 3 else 325, worker_cpu_pct=64)


def heated(folder, wait_s, since_mhz=2660, worker_pct=100):
    """Play a training whose epochs from the third on wait for data, at another clock and load of the workers."""
    training = write_played(folder, HOT)
    path = folder / schema.HOST_CSV
    rows = pd.read_csv(path)
    hot = rows["mono_s"] - MONO_S >= HOT_S
    rows["cpu_clock_mhz"], rows["cpu_heat_throttles_per_s"] = np.where(hot, since_mhz, 4250), np.where(hot, 6.5, 0.0)
    works = hot & (rows["workers_cpu_pct"] > 100)
    rows.loc[works, "busiest_worker_cpu_pct"], rows.loc[works, "workers_cpu_pct"] = worker_pct, 8 * worker_pct
    rows.loc[works, "cpu_pct"] = 50
    rows.to_csv(path, index=False)
    _report(folder / schema.INSIDE_DIR / f"{PID}.jsonl", training, wait_s)
    found = analyse(load_run(folder))
    return found, [each for each in found.findings if each.rule == "data-wait-growing"]


def _report(path, training, wait_s):
    """Write batches every 20 s, and what epochs since the third waited."""
    told = [json.loads(each) for each in path.read_text().splitlines()]
    for each in told:
        if each["kind"] == "epoch" and each["epoch"] >= 3:
            each["data_wait_s"] += wait_s
    for epoch in training.epochs:
        length_s, waits_s = epoch.validation_s - epoch.train_s, wait_s * (epoch.number >= 3)
        of = {"epoch": epoch.number, "attempt": 1, "start_wall_s": WALL_S + epoch.start_s}
        of["start_mono_s"] = MONO_S + epoch.start_s
        for done in np.arange(20, length_s, 20) / length_s:
            waits = {"data_wait_s": waits_s * done, "first_wait_s": 0.02, "longest_wait_s": 0.1}
            told.append(line(epoch.train_s + done * length_s, "batches", **of, batches=int(1000 * done), **waits))
    told.sort(key=lambda each: each["mono_s"])
    path.write_text("".join(f"{json.dumps(each)}\n" for each in told))


def test_a_cpu_that_is_hot_from_early_on_is_compared_with_the_minutes_before(tmp_path):
    found, (finding,) = heated(tmp_path / "run", 25)
    assert found.verdict.text.startswith("Improve the cooling of the CPU: heat slowed it")
    assert "clock fell from 4,250 to 2,660 MHz" in finding.summary
    assert finding.lost_gpu_s == pytest.approx(18 * 25, rel=0.15)


@pytest.mark.parametrize(
    "healthy",
    [{"wait_s": 0.3, "worker_pct": 98}, {"wait_s": 25, "since_mhz": 4100}, {"wait_s": 25, "worker_pct": 64}],
    ids=["nothing waits", "the clock holds", "workers have time"],
)
def test_no_cpu_is_blamed_for_less(tmp_path, healthy):
    assert not any("the CPU got slower" in each.summary for each in heated(tmp_path / "run", **healthy)[1])

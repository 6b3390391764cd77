"""Played trainings without callbacks whose CPU is full while the GPU is busy for most of the time (round 17)."""

import json
from dataclasses import replace

import pandas as pd
import pytest
from support.matching import is_alarm
from support.played_folder import write_played
from support.played_training import Card, Played

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
    [
        ({"worker_cpu_pct": 60}, 65, 5),
        ({"worker_cpu_pct": 94, "train_pct": 90}, 99, 38),
        ({"worker_cpu_pct": 94, "train_s": 40, "epochs": 40}, 99, 38),
    ],
    ids=["workers rest", "the gpu is busy", "a queue lasts"],
)
def test_a_busy_cpu_alone_is_none(tmp_path, change, cpu_pct, pressure_pct):
    assert alarms(tmp_path / "run", replace(FULL, **change), cpu_pct, pressure_pct)[1] == []


# A log of nvidia-smi has no more than this: no callbacks, no host, and a batch of 16 on a card of 80 GiB.
LOG = replace(FULL, card=Card("NVIDIA H100 PCIe", 81559, 350.0), memory_mib=9200, host=False, processes=False)


def test_a_gpu_that_nobody_saw_waiting_is_not_fine_and_a_much_larger_batch_is_a_guess(tmp_path):
    write_played(tmp_path / "run", LOG)
    described = json.loads((tmp_path / "run" / schema.RUN_JSON).read_text()) | {"command": None}
    (tmp_path / "run" / schema.RUN_JSON).write_text(json.dumps(described))
    found = analyse(load_run(tmp_path / "run"))
    said = [each.text for each in found.verdict.sentences if each.kind in {"work", "guess", "record"}]
    assert said[0].startswith("No clear fix found: the GPU was busy 6")
    assert "of whose memory it uses 12 %" in said[1]
    assert said[2] == "To check: train one epoch with `batch=64`; faster means yes."
    assert said[3].startswith("To see what it waited for, record")

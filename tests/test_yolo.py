"""Real trainings on the CPU, under the recorder, beside a fake GPU."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from support.yolo import SMALL_MODEL

from gpu_report.analyse import analyse
from gpu_report.load import load_run
from gpu_report.render.run.summary_json import build_summary

pytestmark = pytest.mark.yolo

EPOCHS = 4
TRAIN = f"""
import json, sys, time
from ultralytics import YOLO
truth = []
model = YOLO("{SMALL_MODEL}")
model.add_callback("on_train_start", lambda t: truth.append(["start", time.time()]))
model.add_callback("on_val_end", lambda v: truth.append(["val_end", time.time()]))
model.add_callback("on_fit_epoch_end", lambda t: truth.append(["fit_end", time.time()]))
model.train(data="data.yaml", epochs=int(sys.argv[1]), imgsz=64, batch=8, workers=0, device="cpu", plots=False,
            project=sys.argv[2], name="train")
json.dump(truth, open("truth.json", "w"))
"""


def summary_of(run):
    return build_summary(analyse(load_run(run)))


def test_the_epochs_of_a_script_stand_in_the_report_at_the_right_times(run_cli, yolo_home, offline, tmp_path):
    (yolo_home / "train.py").write_text(TRAIN)
    run = tmp_path / "run"
    command = [
        "record",
        "--interval",
        "0.2",
        "--output",
        run,
        "--",
        sys.executable,
        "train.py",
        EPOCHS,
        yolo_home / "runs",
    ]
    done = run_cli(*command, env=offline, cwd=yolo_home, timeout=200)
    assert done.returncode == 0, done.stderr
    truth = json.loads((yolo_home / "truth.json").read_text())
    summary = summary_of(run)
    # from outside an epoch ends with its row, from inside with its checkpoint
    end = "fit_end" if summary["epochs"][0]["source"] == "callbacks" else "val_end"
    ends = [t for name, t in truth if name == end][:EPOCHS]  # one more comes from the final evaluation
    begun = json.loads((run / "run.json").read_text())["start"]["wall_s"]
    assert [e["epoch"] for e in summary["epochs"]] == [1, 2, 3, 4]
    assert [e["end_s"] + begun for e in summary["epochs"]] == pytest.approx(ends, abs=0.1)
    (train_start,) = [t for name, t in truth if name == "start"]
    assert summary["epochs"][0]["start_s"] + begun == pytest.approx(train_start, abs=0.1)
    assert summary["environment"]["args"]["epochs"] == EPOCHS
    assert summary["environment"]["yolo_runs"][0]["anchor"] == "recorded"
    assert summary["epochs"][0]["loss"] > 0


def test_the_exit_code_of_the_yolo_command_line_is_passed_on(run_cli, yolo_home, offline, tmp_path):
    """One that succeeds is in test_yolo_inside.py."""
    yolo = shutil.which("yolo", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    wrong = run_cli(
        "record",
        "--output",
        tmp_path / "wrong",
        "--",
        yolo,
        "detect",
        "train",
        "no_such_argument=1",
        env=offline,
        cwd=yolo_home,
        timeout=100,
    )
    assert wrong.returncode == 1
    assert "no_such_argument" in wrong.stderr + wrong.stdout


def test_a_recorder_beside_a_training_it_did_not_start_finds_its_epochs(
    run_cli, start_cli, yolo_home, offline, tmp_path
):
    (yolo_home / "train.py").write_text(TRAIN)
    beside = start_cli(
        "record",
        "--interval",
        "0.2",
        "--output",
        tmp_path / "run",
        "--yolo",
        yolo_home / "runs" / "train",
        env=offline,
        cwd=tmp_path,
    )
    import subprocess  # noqa: PLC0415

    from conftest import clean_environment  # noqa: PLC0415

    subprocess.run(
        [sys.executable, "train.py", "2", yolo_home / "runs"],
        cwd=yolo_home,
        env=clean_environment(offline),
        check=True,
        capture_output=True,
        timeout=200,
    )
    assert beside.stop().returncode == 0
    assert [e["epoch"] for e in summary_of(tmp_path / "run")["epochs"]] == [1, 2]


TRACES = f"""
import sys, tracemalloc
from ultralytics import YOLO

def note(trainer):
    if not tracemalloc.is_tracing():
        tracemalloc.start(25)

model = YOLO("{SMALL_MODEL}")
model.add_callback("on_fit_epoch_end", note)
model.train(data="data.yaml", epochs=3, imgsz=64, batch=8, workers=0, device="cpu", plots=False,
            project=sys.argv[1])
"""


def test_tracing_that_a_callback_begins_is_told_with_its_line(run_cli, yolo_home, offline, tmp_path):
    (yolo_home / "traces.py").write_text(TRACES)
    run = tmp_path / "run"
    command = ["record", "--output", run, "--", sys.executable, "traces.py", yolo_home / "runs"]
    done = run_cli(*command, env=offline, cwd=yolo_home, timeout=200)
    assert done.returncode == 0, done.stderr
    (inside,) = load_run(run).inside
    assert "slow_modes" not in inside.settings
    ((t_s, modes),) = inside.slow_modes_now
    assert modes == {"tracemalloc"}
    assert inside.epochs[0].end_t_s <= t_s <= inside.epochs[1].end_t_s
    assert [(at.name, at.line) for at in inside.setting_locations] == [("tracemalloc", 7)]

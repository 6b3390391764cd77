"""PyTorch's profiler in a real YOLO26 training on the CPU: planned, asked for meanwhile, and what the report says."""

import subprocess
import sys

import pytest
from conftest import clean_environment, cli_command, wait_for
from support.yolo import SMALL_MODEL

from gpu_report.load import load_run

pytestmark = pytest.mark.yolo

TRAIN = f"""
from ultralytics import YOLO
model = YOLO("{SMALL_MODEL}")
shown = []
model.add_callback("on_train_epoch_end", lambda trainer: shown.append(sum(map(len, hooks(trainer.model)))))
hooks = lambda model: [each for m in model.modules() for each in (m._forward_hooks, m._forward_pre_hooks)]
model.train(data="data.yaml", epochs=7, imgsz=64, batch=1, workers=0, device="cpu", plots=False, project="runs")
assert not any(shown), shown  # names of layers are taken back
"""


def test_a_planned_window_and_one_that_is_asked_for(run_cli, yolo_home, offline, tmp_path):
    (yolo_home / "train.py").write_text(TRAIN)
    run = tmp_path / "run"
    words = ("record", "--profile=full", "--interval", "0.5", "--output", run, "--", sys.executable, "train.py")
    with (tmp_path / "log").open("w") as log:
        recorder = subprocess.Popen(
            cli_command(*words), env=clean_environment(offline), cwd=yolo_home, stdout=log, stderr=log
        )
        wait_for(lambda: list(run.glob("profile/*.json.gz")), 120)
        asked = run_cli("profile", "--steps", "2", run, timeout=150)
        code = recorder.wait(200)
    assert code == 0, (tmp_path / "log").read_text()
    assert asked.returncode == 0, asked.stderr
    first, *_, last = load_run(run).profiled
    assert (first.reason, first.epoch, first.steps, first.full, first.failed) == ("planned", 2, 8, True, "")
    assert (last.reason, last.failed) == ("asked", "")
    assert last.steps in {1, 2}  # an epoch of eight that ends meanwhile ends the window
    assert asked.stdout.strip().endswith(f"{last.name}.json.gz")
    names = load_run(run).traces[first.name].names
    assert any(name.startswith("layer 0 Conv") for name in names)
    text = run_cli("render", "report.html", "--run", run).stderr
    assert "trace" not in text
    assert "The profiler saw no GPU work." in (tmp_path / "report.html").read_text()


def test_nobody_to_ask_is_an_error(run_cli, tmp_path):
    (tmp_path / "old").mkdir()
    done = run_cli("profile", tmp_path / "old")
    assert done.returncode == 4
    assert "nobody is recording into" in done.stderr

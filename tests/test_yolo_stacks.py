"""The line of code where the GPU waited: real trainings on the CPU beside a GPU that the fake library plays."""

import sys

import pytest
from support.yolo import MODEL

from gpu_report.analyse import analyse
from gpu_report.load import load_run

pytestmark = pytest.mark.yolo

# The training itself tells the fake GPU how busy it is: nothing runs on one here.
SCRIPT = f"""
import os, sys, time
from ultralytics import YOLO
from ultralytics.data import dataset

def gpu(util):
    beside = os.environ["FAKE_NVML_STATE"] + ".new"
    with open(beside, "w") as file:
        file.write(f"count=1\\nring=0\\nutil={{util}}\\npower_w={{50 + 4 * util}}\\n")
    os.replace(beside, os.environ["FAKE_NVML_STATE"])

def log_images(seconds):
    gpu(2)
    time.sleep(seconds)  # as a slow server would take
    gpu(90)

batches = []

def on_batch(trainer):
    batches.append(trainer.epoch)
    time.sleep(0.3)
    if len(batches) == 70 and sys.argv[2] == "callback":
        log_images(13)

get = dataset.YOLODataset.__getitem__

def read_slowly(self, index):
    if os.path.exists("slow"):
        time.sleep(1.5)  # until what was loaded ahead is used up
        gpu(2)
        time.sleep(14)  # one image from a server that hangs
        gpu(90)
    return get(self, index)

def stall(trainer):
    if trainer.epoch == 8 and sys.argv[2] == "loader":
        open("slow", "w").close()
    elif trainer.epoch == 9 and os.path.exists("slow"):
        os.remove("slow")

dataset.YOLODataset.__getitem__ = read_slowly
gpu(90)
model = YOLO("{MODEL}")
model.add_callback("on_train_batch_end", on_batch)
model.add_callback("on_train_epoch_start", stall)
model.add_callback("on_pretrain_routine_start", lambda trainer: setattr(trainer.args, "workers", 2))
model.train(data="data.yaml", imgsz=64, batch=2, device="cpu", plots=False, val=False, project=sys.argv[1], epochs=12)
"""


def record(run_cli, fake_nvml, yolo_home, offline, tmp_path, kind, *options):
    (yolo_home / f"{kind}.py").write_text(SCRIPT)
    fake_nvml.write("count=1\nring=0\nutil=90\npower_w=410\n")
    folder = tmp_path / "run"
    command = (
        "record",
        "--interval",
        "0.5",
        *options,
        "--output",
        folder,
        "--",
        sys.executable,
        f"{kind}.py",
        tmp_path,
        kind,
    )
    done = run_cli(*command, env=offline, cwd=yolo_home, timeout=180)
    assert done.returncode == 0, done.stderr
    return folder


def the_drop(folder):
    (drop,) = [f for f in analyse(load_run(folder)).findings if f.rule == "drop" and not f.expected]
    return drop


def test_a_callback_that_sleeps_is_named_by_its_line(run_cli, fake_nvml, yolo_home, offline, tmp_path):
    folder = record(run_cli, fake_nvml, yolo_home, offline, tmp_path, "callback")
    drop = the_drop(folder)
    assert drop.cause.name == "trainer-blocked"
    first, *_ = drop.where
    line = 1 + SCRIPT.splitlines().index("    time.sleep(seconds)  # as a slow server would take")
    assert (first.process, first.function, first.line) == ("main", "log_images", line)
    assert first.file.endswith("callback.py")
    assert first.share > 0.9


def test_a_loaders_worker_that_sleeps_is_named_by_its_line(run_cli, fake_nvml, yolo_home, offline, tmp_path):
    folder = record(run_cli, fake_nvml, yolo_home, offline, tmp_path, "loader")
    drop = the_drop(folder)
    assert drop.cause.name == "input-stalled"
    first, *_ = drop.where
    line = 1 + SCRIPT.splitlines().index("        time.sleep(14)  # one image from a server that hangs")
    assert (first.process, first.function, first.line) == ("workers", "read_slowly", line)

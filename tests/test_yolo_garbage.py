"""A training whose callback calls Python's garbage collector after each batch, beside a thread that often wakes."""

import sys

import pytest
from support.runs import on_played_gpu
from support.yolo import SMALL_MODEL

from gpu_report.analyse import analyse
from gpu_report.load import load_run
from gpu_report.wording import where_it_is

pytestmark = pytest.mark.yolo

MEMORY = """
import gc

def free_memory(trainer):
    gc.collect()
"""
TRAIN = f"""
import sys, threading, time
from memory import free_memory
from ultralytics import YOLO

visits = [{{"patient": number, "codes": [number]}} for number in range(300_000)]

def wakes():
    while True:
        time.sleep(0.003)  # as one that pins memory: it may get Python's lock before the recorder does

threading.Thread(target=wakes, daemon=True).start()
model = YOLO("{SMALL_MODEL}")
model.add_callback("on_train_batch_end", free_memory)
model.train(data="data.yaml", epochs=5, imgsz=64, batch=2, workers=0, device="cpu", plots=False, val=False,
            project=sys.argv[1])
"""


def test_a_callback_that_collects_garbage_is_what_to_change(run_cli, yolo_home, offline, fake_nvml, tmp_path):
    (yolo_home / "memory.py").write_text(MEMORY)
    (yolo_home / "train.py").write_text(TRAIN)
    fake_nvml.write("count=1\nring=0\nutil=15\npower_w=110\n")
    command = "record", "--interval", "0.2", "--output", tmp_path / "run", "--", sys.executable, "train.py", tmp_path
    done = run_cli(*command, env=offline, cwd=yolo_home, timeout=250)
    assert done.returncode == 0, done.stderr
    analysis = analyse(on_played_gpu(load_run(tmp_path / "run")))
    said = [each.text for each in analysis.verdict.sentences]
    assert said[0] == "Remove `gc.collect()` in `free_memory` (memory.py:5), or call it once an epoch."
    assert said[3].startswith("Python's garbage collector ran ")
    (limit,) = [each for each in analysis.speedup_limits if each.cause == "main-process"]
    assert (where_it_is(limit.location), limit.basis) == ("free_memory (memory.py:5)", "without that function")
    assert limit.epoch_s_at_best < limit.epoch_s_now / 2

"""The line of code where the GPU waited: real trainings on the CPU beside a GPU that the fake library plays."""

import sys

import pytest
from support.yolo import MODEL

from gpu_report.analyse import analyse
from gpu_report.load import load_run

pytestmark = pytest.mark.yolo

# The training itself tells the fake GPU how busy it is: nothing runs on one here.
SCRIPT = f"""
import ctypes, os, signal, sys, threading, time
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

lock = threading.Lock()

def exports(seconds):
    with lock:
        time.sleep(seconds)  # keeps the lock meanwhile

def feeds(seconds, path="slow.npy"):
    with open(path, "wb"):
        time.sleep(seconds)

def reads_an_image(seconds):
    path = f"image-{{os.getpid()}}-{{time.monotonic_ns()}}.npy"
    os.mkfifo(path)
    threading.Thread(target=feeds, args=(seconds, path), daemon=True).start()
    open(path, "rb").read()  # one image from a server that hangs, too

def in_c():
    ctypes.PyDLL(None).sleep(13)  # an extension that does not let go of the interpreter's lock

def waits():
    threading.Thread(target=exports, args=(13,), name="exporter", daemon=True).start()
    time.sleep(0.5)
    lock.acquire()  # until the exporter is done

def reads():
    os.mkfifo("slow.npy")
    threading.Thread(target=feeds, args=(13,), daemon=True).start()
    open("slow.npy", "rb").read()  # as from a slow server

def is_killed():
    time.sleep(6)  # then the OOM killer comes
    os.kill(os.getpid(), signal.SIGKILL)

FAULTS = dict(in_c=in_c, waits=waits, reads=reads, is_killed=is_killed)
batches = []

def on_batch(trainer):
    batches.append(trainer.epoch)
    time.sleep(0.3)
    if len(batches) == 70 and sys.argv[2] == "callback":
        log_images(13)
    elif len(batches) == 70 and sys.argv[2] in FAULTS:
        gpu(2)
        FAULTS[sys.argv[2]]()
        gpu(90)

get = dataset.YOLODataset.__getitem__

def read_slowly(self, index):
    if os.path.exists("slow"):
        time.sleep(1.5)  # until what was loaded ahead is used up
        gpu(2)
        if sys.argv[2] == "reader":
            reads_an_image(14)
        else:
            time.sleep(14)  # one image from a server that hangs
        gpu(90)
    return get(self, index)

def stall(trainer):
    if trainer.epoch == 8 and sys.argv[2] in ("loader", "reader"):
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


def line_of(text):
    """Return the number of a line of the script."""
    return 1 + SCRIPT.splitlines().index(text)


def record(run_cli, fake_nvml, yolo_home, offline, tmp_path, kind, *options, code=0):
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
    assert done.returncode == code, done.stderr
    return folder


def the_drop(folder):
    (drop,) = [f for f in analyse(load_run(folder)).findings if f.rule == "drop" and not f.expected]
    return drop


def test_a_callback_that_sleeps_is_named_by_its_line(run_cli, fake_nvml, yolo_home, offline, tmp_path):
    folder = record(run_cli, fake_nvml, yolo_home, offline, tmp_path, "callback")
    drop = the_drop(folder)
    assert drop.cause.name == "trainer-blocked"
    first, *_ = drop.where
    line = line_of("    time.sleep(seconds)  # as a slow server would take")
    assert (first.process, first.function, first.line) == ("main", "log_images", line)
    assert first.file.endswith("callback.py")
    innermost = {stack[-1].function for time in analyse(load_run(folder)).code_time for stack in time.stacks}
    assert ("sleep()" in innermost) is (sys.version_info >= (3, 11))
    assert first.share > 0.9


def test_a_loaders_worker_that_sleeps_is_named_by_its_line(run_cli, fake_nvml, yolo_home, offline, tmp_path):
    folder = record(run_cli, fake_nvml, yolo_home, offline, tmp_path, "loader")
    drop = the_drop(folder)
    assert drop.cause.name == "input-stalled"
    first, *_ = drop.where
    line = line_of("            time.sleep(14)  # one image from a server that hangs")
    assert (first.process, first.function, first.line) == ("workers", "read_slowly", line)


def test_c_code_that_keeps_pythons_lock_is_named_by_the_line_that_called_it(
    run_cli, fake_nvml, yolo_home, offline, tmp_path
):
    folder = record(run_cli, fake_nvml, yolo_home, offline, tmp_path, "in_c")
    drop = the_drop(folder)
    first, *_ = drop.where
    line = line_of("    ctypes.PyDLL(None).sleep(13)  # an extension that does not let go of the interpreter's lock")
    assert (first.process, first.function, first.line) == ("main", "in_c", line)
    assert first.share > 0.8
    (held,) = [number.value for number in drop.evidence if "GIL" in number.text]
    assert held > 9


@pytest.mark.long  # a minute and more; what it adds is held by tests of the parts, too
def test_a_lock_that_another_thread_keeps_is_named_with_who_keeps_it(run_cli, fake_nvml, yolo_home, offline, tmp_path):
    folder = record(run_cli, fake_nvml, yolo_home, offline, tmp_path, "waits")
    run = load_run(folder)
    (drop,) = [f for f in analyse(run).findings if f.rule == "drop" and not f.expected]
    assert (drop.where[0].function, drop.where[0].line) == (
        "waits",
        line_of("    lock.acquire()  # until the exporter is done"),
    )
    (main,) = [process for process in run.stacks if process.role == "main"]
    (exporter,) = [thread for thread in main.threads if thread.name == "exporter"]
    assert main.stacks[exporter.number[0]][0].line == line_of("        time.sleep(seconds)  # keeps the lock meanwhile")
    (wait,) = [wait for wait in run.waits if wait.role == "main" and wait.duration_s > 9]
    assert wait.channel.startswith("futex")


def test_a_file_that_does_not_come_is_named_with_its_path(run_cli, fake_nvml, yolo_home, offline, tmp_path):
    folder = record(run_cli, fake_nvml, yolo_home, offline, tmp_path, "reads")
    drop = the_drop(folder)
    assert drop.where[0].line == line_of('    open("slow.npy", "rb").read()  # as from a slow server')
    assert (drop.cause.name, drop.cause.confidence) == ("trainer-blocked", 0.95)
    assert f"read of {yolo_home / 'slow.npy'}" in drop.cause.explanation
    (waited,) = [number.value for number in drop.evidence if "slow.npy" in number.text]
    assert waited > 9


def test_a_training_that_is_killed_says_where_it_was_last_seen(run_cli, fake_nvml, yolo_home, offline, tmp_path):
    folder = record(run_cli, fake_nvml, yolo_home, offline, tmp_path, "is_killed", code=137)
    (end,) = [finding for finding in analyse(load_run(folder)).findings if finding.rule == "run-ended"]
    line = line_of("    time.sleep(6)  # then the OOM killer comes")
    assert (end.where[0].function, end.where[0].line) == ("is_killed", line)
    assert f"last seen in is_killed (is_killed.py:{line})" in end.summary


@pytest.mark.long  # a minute and more; what it adds is held by tests of the parts, too
def test_a_loaders_worker_that_reads_is_named_with_its_file(run_cli, fake_nvml, yolo_home, offline, tmp_path):
    run = load_run(record(run_cli, fake_nvml, yolo_home, offline, tmp_path, "reader"))
    (drop,) = [f for f in analyse(run).findings if f.rule == "drop" and not f.expected]
    line = line_of('    open(path, "rb").read()  # one image from a server that hangs, too')
    assert (drop.where[0].process, drop.where[0].function, drop.where[0].line) == ("workers", "reads_an_image", line)
    longest = max((wait for wait in run.waits if wait.role == "worker" and wait.file), key=lambda wait: wait.duration_s)
    assert longest.duration_s > 9
    assert longest.call == "read"
    assert longest.file.startswith(f"{yolo_home}/image-")

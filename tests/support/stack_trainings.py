"""Real trainings on the CPU, with a fault of a kind, beside a GPU that the fake library plays."""

import sys

from gpu_report.analyse import analyse
from gpu_report.load import load_run
from support.yolo import MODEL

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
    """Record the training with a fault of a kind, and return the run folder."""
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
    """Return the only unexpected drop of a recording."""
    (drop,) = [f for f in analyse(load_run(folder)).findings if f.rule == "drop" and not f.expected]
    return drop

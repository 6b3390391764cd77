"""Real trainings on the CPU, with a fault of a kind, beside a GPU that the fake library plays."""

import subprocess
import sys

from conftest import FakeNvml, clean_environment, cli_command, offline_environment

from gpu_report.analyse import analyse
from gpu_report.load import load_run
from support.runs import on_played_gpu
from support.yolo import MODEL, make_data_set

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

def log_images():
    time.sleep(13)  # as a slow server would take

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

QUIET = 30  # batches of 0.4 s before each fault: what the training is like without
asked = sys.argv[2].split(",")
batches = []

def on_batch(trainer):
    batches.append(trainer.epoch)
    time.sleep(0.3)
    number, left = divmod(len(batches), QUIET)
    if left or number > len(asked):
        return
    if asked[number - 1] in ("loader", "reader"):
        stalls_workers()
        return
    gpu(2)
    globals()[asked[number - 1]]()
    gpu(90)

get = dataset.YOLODataset.__getitem__

def read_slowly(self, index):
    left = float(open("slow").read()) - time.time() if os.path.exists("slow") else 0
    if left > 0 and "reader" in asked:
        reads_an_image(left)
    elif left > 0:
        time.sleep(left)  # one image from a server that hangs
    return get(self, index)

def stalls_workers():
    with open("slow.new", "w") as file:
        file.write(str(time.time() + 20))  # batches that are loaded already take 2 to 5 s of it
    os.replace("slow.new", "slow")
    threading.Thread(target=idles, args=(len(batches),), daemon=True).start()

def idles(done):
    while time.time() < float(open("slow").read()):  # the GPU does, where no batch came for a while
        time.sleep(1)
        gpu(2 if len(batches) == done else 90)
        done = len(batches)
    gpu(90)

dataset.YOLODataset.__getitem__ = read_slowly
gpu(90)
model = YOLO("{MODEL}")
model.add_callback("on_train_batch_end", on_batch)
model.add_callback("on_pretrain_routine_start", lambda trainer: setattr(trainer.args, "workers", 2))
epochs = 2 + QUIET * (1 + len(asked)) // 8  # of eight batches
given = dict(data="data.yaml", imgsz=64, batch=2, device="cpu", plots=False, val=False, epochs=epochs)
model.train(project=sys.argv[1], **given)
"""


def line_of(text):
    """Return the number of a line of the script."""
    return 1 + SCRIPT.splitlines().index(text)


def record(folder, library, *faults, code=0):
    """Record a training with faults one after the other, in an empty folder, and return the run."""
    home = folder / "Übung-训练"
    make_data_set(home)
    (home / "train.py").write_text(SCRIPT)
    fake = FakeNvml(library, folder / "nvml-state.txt", folder / "nvml-trace.txt")
    fake.write("count=1\nring=0\nutil=90\npower_w=410\n")
    words = ("record", "--interval", "0.5", "--output", folder / "run", "--")
    done = subprocess.run(
        cli_command(*words, sys.executable, "train.py", folder, ",".join(faults)),
        env=clean_environment(offline_environment(fake, folder)),
        cwd=home,
        timeout=240,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return on_played_gpu(load_run(folder / "run"))


def drops(run):
    """Return the unexpected drops of a recording, as they came."""
    found = [f for f in analyse(run).findings if f.rule == "drop" and not f.expected]
    return sorted(found, key=lambda drop: drop.start_t_s)

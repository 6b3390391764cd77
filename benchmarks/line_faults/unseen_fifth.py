"""A fifth set, on one GPU and two, thought up when the rules stood after the fourth, and recorded before any report."""

import ctypes
import json
import os
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

import torch
from ends import Once
from torch import distributed

FOLDER = Path("/tmp/unseen-fifth")
OUTSIDE = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
RANK = int(os.environ.get("RANK", "-1"))
HOG = (
    "import os, sys, torch\na = torch.randn(8192, 8192, device='cuda', dtype=torch.bfloat16)\n"
    "while os.path.exists(f'/proc/{sys.argv[1]}'):\n for _ in range(50): a @ a\n torch.cuda.synchronize()"
)

# Each is installed with the model before it trains.


def limit_memory(model):
    """A memory limit that the training reaches after a while, as in a container that was given too little."""
    group = Path("/sys/fs/cgroup/unseen-fifth")
    Path("/sys/fs/cgroup/cgroup.subtree_control").write_text("+memory")
    group.mkdir(exist_ok=True)
    (group / "cgroup.procs").write_text(str(os.getpid()))

    def lower(trainer):
        used = int((group / "memory.current").read_text())
        (group / "memory.high").write_text(str(int(used * 0.97)))
        threading.Timer(16, (group / "memory.high").write_text, ["max"]).start()

    model.add_callback("on_train_batch_end", Once(15, lower))


def start_hog(pid, gpu):
    environment = {**OUTSIDE, "CUDA_VISIBLE_DEVICES": str(gpu)}
    subprocess.Popen(["setsid", "--fork", sys.executable, "-c", HOG, str(pid)], env=environment)


def train_beside_leftover(model):
    """A job of yesterday that nobody stopped works on the same GPU all the time."""
    start_hog(os.getpid(), json.loads(os.environ.get("ARGUMENTS", "{}")).get("device", 0))
    time.sleep(8)


def assert_on_device(model):
    """A class that does not exist is looked up on the GPU."""

    def look_up(trainer):
        weights = torch.ones(4, device=trainer.device)
        weights[torch.tensor([9], device=trainer.device)].sum().item()  # slow: device-assert

    model.add_callback("on_train_batch_end", Once(12, look_up))


def crash_in_c(model):
    """A library in C reads where nothing is."""

    def crash(trainer):
        ctypes.string_at(0)  # slow: segfault

    model.add_callback("on_train_batch_end", Once(12, crash))


def leave_files_open(model):
    """A log file a batch that nobody closes."""
    FOLDER.mkdir(exist_ok=True)
    model.add_callback("on_train_start", lambda trainer: resource.setrlimit(resource.RLIMIT_NOFILE, (600, 600)))
    files = []

    def log(trainer):
        files.append(open(FOLDER / f"{len(files)}.log", "w"))  # slow: open-files  # noqa: SIM115

    model.add_callback("on_train_batch_end", log)


def print_much(model):
    """What is printed goes through a pipe to a program that is slow to read (campaign.sh)."""

    def show(trainer):
        print("0123456789" * 9_000, flush=True)  # slow: pipe-stdout

    model.add_callback("on_train_batch_end", show)


def import_late(model):
    """A module of one's own that prepares its tables when it is imported, before YOLO does anything."""
    FOLDER.mkdir(exist_ok=True)
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import slow_tables  # noqa: F401


def crash_and_restart(model):
    """A training that fails again and again after some batches, and that a script starts anew."""

    def fail(trainer):
        raise RuntimeError("annotation 4711 has no box")  # slow: crash-loop

    model.add_callback("on_train_batch_end", Once(6, fail))


def raise_on_rank_one(model):
    """One rank of two fails."""

    def fail(trainer):
        raise ValueError("mask and image differ in size")  # slow: rank-raises

    if RANK == 1:
        model.add_callback("on_train_batch_end", Once(12, fail))


def meet_alone(model):
    """One rank waits for all others at a place to which they never come."""

    def meet(trainer):
        distributed.barrier()  # slow: rank-hang
        torch.cuda.synchronize()

    if RANK == 1:
        model.add_callback("on_train_batch_end", Once(12, meet))


def leftover_on_one(model):
    """A job of yesterday works on one of two GPUs all the time."""
    if RANK == 0:
        start_hog(os.getppid(), gpu=1)
    time.sleep(8)


N, S, M = "yolo26n", "yolo26s", "yolo26m"
TWO = dict(device=[0, 1], batch=64, workers=8)
FIFTH = {
    "memory-high": ("memory-pressure", False, limit_memory, dict(model=S, batch=32, workers=8)),
    "left-over": ("other-process", True, train_beside_leftover, dict(model=S, batch=48, workers=8)),
    "device-assert": ("run-ended", False, assert_on_device, dict(model=S, batch=32, workers=8)),
    "segfault": ("run-ended", False, crash_in_c, dict(model=S, batch=32, workers=8)),
    "open-files": ("run-ended", False, leave_files_open, dict(model=N, batch=32, workers=8)),
    "pipe-stdout": ("trainer-blocked", True, print_much, dict(model=S, batch=32, workers=8)),
    "heavy-augment": (
        "input-cpu",
        True,
        None,
        dict(model=N, batch=32, workers=4, imgsz=1280, mixup=1.0, cutmix=0.0, degrees=30.0, shear=5.0),
    ),
    "few-cores": ("cpu-limit", True, None, dict(model=N, batch=32, workers=8)),  # taskset: campaign.sh
    "slow-import": ("slow-start", False, import_late, dict(model=S, batch=32, workers=8)),
    "crash-loop": ("run-ended", False, crash_and_restart, dict(model=N, batch=32, workers=8)),  # a loop: campaign.sh
    "ranks-small-batch": ("launch-bound", True, None, dict(model=N, device=[0, 1], batch=8, workers=8)),
    "rank-raises": ("run-ended", False, raise_on_rank_one, dict(model=S, **TWO)),
    "rank-hang": ("waiting-for-peer", False, meet_alone, dict(model=S, **TWO)),
    "rank-left-over": ("other-process", True, leftover_on_one, dict(model=M, **TWO)),
    "ranks-healthy": (
        None,
        True,
        None,
        dict(model=M, device=[0, 1], batch=128, workers=8, val=True, save=True, plots=True),
    ),
    "healthy-pair": (None, True, None, dict(model=M, batch=64, workers=8, val=True, save=True, plots=True)),
}

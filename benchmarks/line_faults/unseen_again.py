"""A second set, on one GPU and two, thought up when the rules stood after the first, and recorded before any report."""

import copy
import fcntl
import gc
import io
import os
import sqlite3
import subprocess
import sys
import threading
import time
import zipfile
import zlib
from pathlib import Path

import numpy as np
import torch
import yaml
from torch import distributed
from ultralytics.data.base import BaseDataset

RANK = int(os.environ.get("RANK", "-1"))
FOLDER = Path("/tmp/unseen-again")

# Each is installed with the model before it trains.


def gather_objects(model):
    """Send what each rank predicted to all others, as Python objects, after each batch."""
    predicted = [{"image": n, "box": [float(n)] * 4, "name": str(n)} for n in range(12_000)]

    def gather(trainer):
        everywhere = [None] * distributed.get_world_size()
        distributed.all_gather_object(everywhere, predicted)  # slow: rank-gather

    model.add_callback("on_train_batch_end", gather)


def evaluate_on_rank_zero(model):
    """Count matches on one rank after each epoch, while the other one waits at the next batch."""

    def evaluate(trainer):
        if RANK == 0:
            boxes = np.random.default_rng(0).random((900, 4)).tolist()
            for _ in range(9):
                sum(abs(a[0] - b[0]) < 0.01 for a in boxes for b in boxes)  # slow: rank-evaluate

    model.add_callback("on_train_epoch_end", evaluate)


def broadcast_settings(model):
    """Read the settings on one rank and send them to the other, for each batch."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / "settings.yaml"
    if RANK == 0:
        path.write_text(yaml.safe_dump({f"class{n}": {"weight": n / 7, "names": ["a", "b"]} for n in range(260)}))

    def share(trainer):
        found = [yaml.safe_load(path.read_text()) if RANK == 0 else None]  # slow: rank-broadcast
        distributed.broadcast_object_list(found)

    model.add_callback("on_train_batch_end", share)


def profile_everything(model):
    """Leave PyTorch's profiler on."""

    def start(trainer):
        trainer.profiler = torch.profiler.profile(record_shapes=True, with_stack=True, profile_memory=True)
        trainer.profiler.start()

    model.add_callback("on_train_start", start)


def open_archive(model):
    """Look each sample up in an archive of many files that is opened anew."""
    FOLDER.mkdir(exist_ok=True)
    path, get = FOLDER / "notes.zip", BaseDataset.__getitem__
    with zipfile.ZipFile(path, "w") as archive:
        for n in range(25_000):
            archive.writestr(f"{n}.txt", "0")

    def with_note(self, index):
        with zipfile.ZipFile(path) as archive:  # slow: zip-index
            archive.read(f"{index}.txt")
        return get(self, index)

    BaseDataset.__getitem__ = with_note


def keep_snapshots(model):
    """Pack the averaged weights after every tenth batch, to go back to them."""

    def keep(trainer):
        trainer.batches_done = getattr(trainer, "batches_done", 0) + 1
        if trainer.batches_done % 10 == 0:
            packed = io.BytesIO()
            torch.save(copy.deepcopy(trainer.ema.ema).cpu().state_dict(), packed)
            trainer.snapshot = zlib.compress(packed.getvalue())  # slow: snapshots

    model.add_callback("on_train_batch_end", keep)


def ask_database(model):
    """Ask a database for each sample that another program locks most of the time."""
    FOLDER.mkdir(exist_ok=True)
    path, get = FOLDER / "labels.db", BaseDataset.__getitem__
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as made:
        made.execute("create table labels (n integer)")
    code = (
        f"import sqlite3, time\nbase = sqlite3.connect({str(path)!r}, isolation_level=None)\n"
        f"import os\nwhile os.getppid() != 1:\n base.execute('begin exclusive')\n time.sleep(0.15)\n"
        f" base.execute('commit')\n time.sleep(0.05)"
    )
    subprocess.Popen([sys.executable, "-c", code])

    def asked(self, index):
        base = sqlite3.connect(path, timeout=60)
        base.execute("select * from labels").fetchall()  # slow: busy-database
        base.close()
        return get(self, index)

    BaseDataset.__getitem__ = asked


def count_pairs(numbers):
    sum(a > b for a in numbers for b in numbers)


def join_threads(model):
    """Compute in threads after each batch, and wait for them."""
    numbers = np.random.default_rng(0).random(500).tolist()

    def compute(trainer):
        threads = [threading.Thread(target=count_pairs, args=(numbers,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()  # slow: thread-join

    model.add_callback("on_train_batch_end", compute)


def collect_always(model):
    """Let Python look for garbage after each few objects, with many of them there."""
    model.held = [{"n": n, "box": [n]} for n in range(60_000)]
    model.add_callback("on_train_start", lambda trainer: gc.set_threshold(20, 1, 1))


def lock_registry(model):
    """Write each tenth batch into a registry that another program locks."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / "registry"
    code = (
        f"import fcntl, os, time\nfile = open({str(path)!r}, 'w')\nwhile os.getppid() != 1:\n"
        f" fcntl.flock(file, fcntl.LOCK_EX)\n time.sleep(1.5)\n fcntl.flock(file, fcntl.LOCK_UN)\n time.sleep(0.05)"
    )
    subprocess.Popen([sys.executable, "-c", code])
    time.sleep(1)

    def write(trainer):
        trainer.batches_done = getattr(trainer, "batches_done", 0) + 1
        if trainer.batches_done % 10 == 0:
            with open(path, "a") as file:
                fcntl.flock(file, fcntl.LOCK_EX)  # slow: file-lock
                file.write("a batch\n")

    model.add_callback("on_train_batch_end", write)


N, S, M = "yolo26n", "yolo26s", "yolo26m"
TWO = dict(device=[0, 1], batch=64, workers=8)
AGAIN = {
    "rank-gather": ("main-process", True, gather_objects, dict(model=S, **TWO)),
    "rank-link": ("waiting-for-peer", True, None, dict(model="yolo26x", **TWO)),  # NCCL by sockets: campaign.sh
    "rank-evaluate": ("main-process", True, evaluate_on_rank_zero, dict(model=S, **TWO)),
    "rank-broadcast": ("main-process", True, broadcast_settings, dict(model=S, **TWO)),
    "profiler-on": ("main-process", True, profile_everything, dict(model=N, batch=32)),
    "no-caching": ("main-process", True, None, dict(model=S, batch=32)),  # an environment variable: campaign.sh
    "zip-index": ("input-cpu", True, open_archive, dict(model=N, batch=64, workers=8)),
    "snapshots": ("main-process", True, keep_snapshots, dict(model=S, batch=32)),
    "busy-database": ("input-latency", True, ask_database, dict(model=N, batch=32, workers=8)),
    "thread-join": ("main-process", True, join_threads, dict(model=N, batch=32)),
    "gc-always": ("main-process", True, collect_always, dict(model=N, batch=32)),
    "file-lock": ("trainer-blocked", True, lock_registry, dict(model=S, batch=32)),
}

"""A third set, for an H100, thought up when the rules stood after the second, and recorded before any report."""

import glob
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import torch
from ultralytics.data.base import BaseDataset

FOLDER = Path("/tmp/unseen-third")

# Each is installed with the model before it trains.


def before_each_sample(function):
    """Let `function(dataset, index)` run in the worker before each sample is read."""
    get = BaseDataset.__getitem__

    def slow(self, index):
        function(self, index)
        return get(self, index)

    BaseDataset.__getitem__ = slow


def look_for_nan(model):
    """Look into the result of each layer for what is not a number, as one does who hunts a NaN."""

    def look(layer, given, result):
        if isinstance(result, torch.Tensor) and not torch.isfinite(result).all():  # slow: nan-hooks
            raise ValueError(f"{layer} gave what is not a number")

    def install(trainer):
        for layer in trainer.model.modules():
            layer.register_forward_hook(look)

    model.add_callback("on_train_start", install)


def step_by_hand(model):
    """An optimizer of one's own: a few operations for each parameter, one after the other."""

    @torch.no_grad()
    def step(optimizer):
        for group in optimizer.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                kept = optimizer.state[p].setdefault("kept", [torch.zeros_like(p) for _ in range(3)])
                for n, value in enumerate(kept):
                    value.mul_(0.9).add_(p.grad, alpha=0.1 / (n + 1))
                    p.sub_(value / value.norm().add(1e-8), alpha=1e-6)  # slow: loop-optimizer

    def install(trainer):  # where the scheduler has put a function of its own in its place already
        trainer.optimizer.step = partial(step, trainer.optimizer)

    model.add_callback("on_train_start", install)


def predict_examples(model):
    """Show what the model sees on some pictures, one by one, after every fifth batch."""
    batches = []

    def predict(trainer):
        batches.append(1)
        if len(batches) % 5 == 0:
            seen = trainer.ema.ema.eval()
            for _ in range(12):
                seen(torch.zeros(1, 3, 320, 320, device=trainer.device))  # slow: callback-predict

    model.add_callback("on_train_batch_end", predict)


def pool_in_worker(model):
    """Work on the tiles of each picture in threads, which all want Python's lock."""
    tiles = np.random.default_rng(0).random((4, 40_000)).tolist()

    def smooth(tile):
        return [round(a + b, 3) for a, b in itertools.pairwise(tile)]

    def work(dataset, index):
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(smooth, tiles))  # slow: pool-in-worker

    before_each_sample(work)


def list_folder(model):
    """Find what belongs to a sample by listing a folder of many files."""
    (FOLDER / "parts").mkdir(parents=True, exist_ok=True)
    for n in range(20_000):
        (FOLDER / "parts" / f"{n}.txt").touch()

    def find(dataset, index):
        for path in glob.glob(f"{FOLDER}/parts/{index}*"):  # slow: list-folder
            os.stat(path)

    before_each_sample(find)


def upload_behind(model):
    """Upload in a thread, one at a time: the next one waits until the last one is through."""
    pool, last = ThreadPoolExecutor(1), []

    def upload(trainer):
        last.append(pool.submit(time.sleep, 0.4))
        if len(last) > 1:
            last.pop(0).result()  # slow: async-upload

    model.add_callback("on_train_batch_end", upload)


def take_gpu_memory(model):
    """Let somebody else's program, none of the training's, take the GPU's memory."""
    code = (
        "import os, sys, time, torch\nheld = []\nwhile os.path.exists(f'/proc/{sys.argv[1]}'):\n"
        " size = 4 << 30 if len(held) < 17 else 64 << 20\n"
        " try: held.append(torch.empty(size, dtype=torch.uint8, device=0))\n"
        " except torch.OutOfMemoryError: pass\n"
        " time.sleep(0.1)"
    )
    command = ["setsid", "--fork", sys.executable, "-c", code, str(os.getpid())]
    others = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    model.add_callback("on_train_start", lambda trainer: subprocess.Popen(command, env=others))


def fill_shared_memory(model):
    """What a worker gets from the kernel where /dev/shm is full."""
    began = time.time()
    main = os.getpid()

    def killed(dataset, index):
        if os.getpid() != main and time.time() - began > 30:
            os.kill(os.getpid(), signal.SIGBUS)

    before_each_sample(killed)


def fork_with_lock(model):
    """A lock that a thread held when the workers were forked is never given back in them."""
    began, lock, main = time.time(), threading.Lock(), os.getpid()
    lock.acquire()

    def describe(dataset, index):
        if os.getpid() != main and time.time() - began > 30 and index % 7 == 0:
            lock.acquire()  # slow: fork-deadlock

    before_each_sample(describe)


N, S = "yolo26n", "yolo26s"
THIRD = {
    "nan-hooks": ("main-process", True, look_for_nan, dict(model=N, batch=32)),
    "loop-optimizer": ("main-process", True, step_by_hand, dict(model=N, batch=16, optimizer="SGD")),
    "callback-predict": ("main-process", True, predict_examples, dict(model=N, batch=32)),
    "pool-in-worker": ("input-cpu", True, pool_in_worker, dict(model=N, batch=32, workers=8)),
    "list-folder": ("input-cpu", True, list_folder, dict(model=N, batch=32, workers=8)),
    "async-upload": ("trainer-blocked", True, upload_behind, dict(model=S, batch=32)),
    "auto-batch": ("startup", False, None, dict(model=S, batch=-1)),
    "gpu-memory-taken": ("run-ended", False, take_gpu_memory, dict(model=S, batch=32)),
    "shm-full": ("run-ended", False, fill_shared_memory, dict(model=S, batch=32, workers=4)),
    "fork-deadlock": ("input-stalled", False, fork_with_lock, dict(model=N, batch=32, workers=4)),
}

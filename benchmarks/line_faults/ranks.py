"""Faults of one rank of two: the others wait for it; each at the line marked `# slow: NAME`."""

import os
import time

import callbacks
import numpy as np
from ultralytics.data.base import BaseDataset

RANK = int(os.environ.get("RANK", "-1"))


def sleep_once(trainer):
    time.sleep(13)  # slow: rank-sleep


def score_pairs(trainer):
    scores = np.random.default_rng(0).random(700).tolist()
    for _ in range(8):
        sum(a > b for a in scores for b in scores)  # slow: rank-compute


def on_rank_one(event, function):
    """Install a callback that only rank 1 runs."""
    return lambda model: model.add_callback(event, function) if RANK == 1 else None


def fetch_samples_slowly(model):
    """Let each worker of rank 1 wait for its samples, as one does whose part of the data lies on a slow server."""
    get = BaseDataset.__getitem__

    def fetched(self, index):
        time.sleep(0.12)  # slow: rank-fetch
        return get(self, index)

    if RANK == 1:
        BaseDataset.__getitem__ = fetched


def write_on_rank_zero(trainer):
    if RANK == 0:
        callbacks.export_curves(trainer)


TWO = dict(device=[0, 1], batch=64, workers=8)
RANKS = {
    "rank-compute": (
        "main-process",
        True,
        on_rank_one("on_train_batch_end", score_pairs),
        dict(model="yolo26s", **TWO),
    ),
    "rank-fetch": ("input-latency", True, fetch_samples_slowly, dict(model="yolo26n", **TWO)),
    # Not by torchrun: ultralytics starts the ranks itself.
    "ranks-cb-disk": (
        "trainer-blocked",
        True,
        lambda model: model.add_callback("on_train_epoch_end", write_on_rank_zero),
        dict(model="yolo26s", **TWO),
    ),
}

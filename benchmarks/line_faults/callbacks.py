"""Callbacks that keep the main process: what users write, each too slow at the line marked `# slow: NAME`."""

import contextlib
import ctypes
import gc
import os
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import numpy as np
import torch

SERVER = "http://127.0.0.1:8765/log"  # `server.py` answers after 3 s
SLOW_DISK = Path(os.environ.get("SLOW_DISK", "/tmp/slow"))
export_lock = threading.Lock()


class Batches:
    """Counts the batches that are done."""

    def __init__(self):
        self.done = 0

    def every(self, count):
        self.done += 1
        return self.done % count == 0


batches = Batches()
READS = (torch.mean, torch.std, torch.min, torch.max)


# Kinds that the rules know.


def upload_images(trainer):
    time.sleep(13)  # slow: cb-sleep


def throttle(trainer):
    if batches.every(3):
        time.sleep(0.6)  # slow: cb-sleep-often


def rank_detections(trainer):
    scores = np.random.default_rng(0).random(700).tolist()
    for _ in range(150):
        sum(a > b for a in scores for b in scores)  # slow: cb-compute


def export_curves(trainer):
    with open(SLOW_DISK / f"curves-{trainer.epoch}.bin", "wb") as file:
        file.write(np.random.default_rng(0).bytes(8 << 20))  # slow: cb-disk


def log_to_server(trainer):
    if batches.every(15):
        urllib.request.urlopen(SERVER, data=b"loss=1").read()  # slow: cb-http


def encode_mask(trainer):
    ctypes.PyDLL(None).sleep(13)  # slow: cb-gil


def publish(trainer):
    threading.Thread(target=export, name="exporter", daemon=True).start()
    time.sleep(0.2)
    with export_lock:  # slow: cb-lock
        trainer.epochs_published = trainer.epoch


def export():
    with export_lock:
        time.sleep(13)


def plot_results(validator):
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(4, 4, figsize=(24, 24))
    for axis in axes.flat:
        axis.plot(np.random.default_rng(1).random(4000))
    figure.savefig(Path(validator.save_dir) / "grid.png", dpi=300)  # slow: val-plot
    pyplot.close(figure)


# Kinds that no rule was written for.


def watch_weights(trainer):
    for parameter in (*trainer.model.parameters(), *trainer.ema.ema.parameters()):
        np.histogram(parameter.detach().float().cpu().numpy(), bins=512, range=(-1, 1))  # slow: watch-weights


def print_norms(trainer):
    told = {}
    for name, value in trainer.ema.ema.state_dict().items():
        numbers = value.float()
        told[name] = [read(numbers).item() for read in READS]  # slow: print-norms


def log_temperature(trainer):
    with contextlib.suppress(OSError):
        for _ in range(2):
            subprocess.run(["nvidia-smi", "-q"], capture_output=True, check=False)  # slow: run-nvidia-smi


def evaluate_apart(trainer):
    code = "import time\nend = time.time() + 12\nwhile time.time() < end: pass"
    subprocess.run([sys.executable, "-c", code], check=False)  # slow: run-evaluation


history = []


def smooth_losses(trainer):
    history.extend(np.random.default_rng(trainer.epoch).random(20_000).tolist())
    trainer.smoothed = statistics.median(history) + statistics.fmean(history)  # slow: growing-history


def free_memory(trainer):
    gc.collect()  # slow: free-memory
    torch.cuda.empty_cache()


def renew_loader(trainer):
    if trainer.epoch:
        trainer.train_loader.reset()

"""Faults thought up after the rules for those of callbacks.py and samples.py stood; each at `# slow: NAME`."""

import gc
import logging
import multiprocessing
import os
import queue
import signal
import threading
import time

import cv2
import numpy as np
from ultralytics.data.dataset import YOLODataset
from ultralytics.models.yolo.detect import DetectionTrainer
from ultralytics.utils import LOGGER


def count_words(_):
    """Keep the interpreter's lock in a thread of one's own."""
    while True:
        sum(n * n for n in range(10_000))  # slow: busy-thread


def start_thread(trainer):
    threading.Thread(target=count_words, args=(trainer,), name="statistics", daemon=True).start()


cache = []


def fill_heap(model):
    cache.extend({"id": n, "box": [n, n, n], "name": str(n)} for n in range(1_500_000))


def annotate(trainer):
    cache.append([{"loss": float(n)} for n in range(2000)])
    gc.collect()  # slow: large-heap


def collate(batch):
    """Blur the batch once more, in the worker."""
    for sample in batch:
        image = sample["img"].permute(1, 2, 0).contiguous().numpy()
        for _ in range(8):
            cv2.GaussianBlur(np.kron(image, np.ones((6, 6, 1), np.uint8)), (31, 31), 5)  # slow: w-collate
    return collate_before(batch)


collate_before = YOLODataset.collate_fn


def blur_batches(model):
    YOLODataset.collate_fn = staticmethod(collate)


preprocess_before = DetectionTrainer.preprocess_batch


def equalise(trainer, batch):
    """Equalise the histogram of each image, in the main process."""
    images = batch["img"].numpy()
    for image in images:
        for _ in range(30):
            np.sort(image, axis=None)  # slow: m-preprocess
    return preprocess_before(trainer, batch)


def equalise_batches(model):
    DetectionTrainer.preprocess_batch = equalise


class ToServer(logging.Handler):
    """Send each line of the log to a server that is slow."""

    def emit(self, record):
        time.sleep(0.7)  # slow: log-handler


def log_to_server(model):
    LOGGER.addHandler(ToServer())
    model.add_callback("on_train_batch_end", lambda _: LOGGER.info("a batch"))


results = queue.Queue(maxsize=4)


def write_results():
    while True:
        results.get()
        time.sleep(0.5)


def put_result(trainer):
    results.put(trainer.epoch)  # slow: full-queue


def start_writer(model):
    threading.Thread(target=write_results, name="writer", daemon=True).start()
    model.add_callback("on_train_batch_end", put_result)


def slow_validation(index, dataset):
    if not dataset.augment:
        time.sleep(0.15)  # slow: val-sleep


def warm_up(trainer):
    time.sleep(3)  # slow: epoch-start


def square(n):
    return sum(i * i for i in range(n))


def evaluate_in_pool(trainer):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(square, [9_000_000] * 12)  # slow: cb-pool


def stop_worker(trainer):
    """Stop one of the loader's workers for a while, as a debugger does."""
    pid = trainer.train_loader.iterator._workers[0].pid
    os.kill(pid, signal.SIGSTOP)
    threading.Timer(14, os.kill, (pid, signal.SIGCONT)).start()

"""A fourth set, of thirteen kinds, thought up when the rules stood after the third, and recorded before any report."""

import fcntl
import gzip
import os
import subprocess
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import Pipe, Process
from pathlib import Path

import cv2
import numpy as np
import torch
from ends import Once
from ultralytics import YOLO
from ultralytics.data.base import BaseDataset
from ultralytics.data.dataset import YOLODataset

FOLDER = Path("/tmp/unseen-fourth")
OUTSIDE = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
DATA = sys.argv[3] if len(sys.argv) > 3 else ""

# Each is installed with the model before it trains.


def with_each_sample(function):
    """Let `function(sample, index)` run in the worker with each sample that was read."""
    get = BaseDataset.__getitem__

    def slow(self, index):
        sample = get(self, index)
        function(sample, index)
        return sample

    BaseDataset.__getitem__ = slow


def wait_for_user(model):
    """A question to whoever started it, who is somewhere else for a while."""
    os.makedirs(FOLDER, exist_ok=True)
    terminal = FOLDER / "terminal"
    if not terminal.exists():
        os.mkfifo(terminal)

    def ask(trainer):
        subprocess.Popen(["sh", "-c", f"sleep 15; echo yes > {terminal}"])
        with open(terminal) as answers:  # slow: terminal-read
            answers.readline()

    model.add_callback("on_train_batch_end", Once(20, ask))


def unpack_with_program(model):
    """Each sample has notes beside it that a program unpacks."""
    os.makedirs(FOLDER, exist_ok=True)
    notes = np.random.default_rng(0).integers(0, 64, 6_000_000, dtype=np.uint8).tobytes()
    (FOLDER / "notes.gz").write_bytes(gzip.compress(notes, 1))

    def unpack(sample, index):
        subprocess.check_output(["gzip", "-dc", FOLDER / "notes.gz"])  # slow: program-per-sample

    with_each_sample(unpack)


def map_features(model):
    """Features of each sample, in a large file on a slow disk that is mapped into memory."""
    size = 2 << 30
    with open("/tmp/slow-backing/features.bin", "wb") as file:
        file.truncate(size)
    features = np.memmap("/tmp/slow/features.bin", dtype=np.uint8, mode="r")

    def add(sample, index):
        for at in np.random.default_rng().integers(0, size - 4096, 3):
            features[at : at + 4096].sum()  # slow: memory-map

    with_each_sample(add)


class Store(BaseHTTPRequestHandler):
    """A store of images, far away."""

    def do_GET(self):
        time.sleep(0.05)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(bytes(100_000))

    def log_message(self, *_):
        pass


def fetch_over_http(model):
    server = Process(target=ThreadingHTTPServer(("127.0.0.1", 8766), Store).serve_forever, daemon=True)
    server.start()

    def fetch(sample, index):
        for _ in range(2):
            urllib.request.urlopen(f"http://127.0.0.1:8766/{index}").read()  # slow: http-images

    with_each_sample(fetch)


def keep_pictures(model):
    """What somebody wrote to look at the augmented pictures, and left there."""
    os.makedirs(FOLDER, exist_ok=True)

    def keep(sample, index):
        image = np.ascontiguousarray(sample["img"].numpy().transpose(1, 2, 0))
        cv2.imwrite(f"{FOLDER}/{index}.png", image, [cv2.IMWRITE_PNG_COMPRESSION, 9])  # slow: debug-pictures

    with_each_sample(keep)


def weigh_boxes(model):
    """A loss of one's own that looks at each box of each image by itself."""

    def crowding(batch):
        total = 0.0
        for image in range(len(batch["img"])):
            boxes = batch["bboxes"][batch["batch_idx"] == image]
            for box in boxes:
                total += torch.exp(-torch.cdist(box[None, :2], boxes[:, :2])).sum().item()  # slow: loss-loop
        return total / max(len(batch["bboxes"]), 1)

    def install(trainer):
        loss = trainer.model.loss

        def crowded(batch, preds=None):
            total, items = loss(batch, preds)
            return total * (1 + 1e-6 * crowding(batch)), items

        trainer.model.loss = crowded

    model.add_callback("on_train_start", install)


def give_way(model):
    """A lower priority than the programs of others that want all cores."""
    os.nice(5)
    code = "import os, sys\nwhile os.path.exists(f'/proc/{sys.argv[1]}'): sum(range(1000000))"
    for _ in range(os.cpu_count()):
        # nice: the training's children begin with its priority, and others have the usual one
        hog = ["setsid", "--fork", "nice", "-n", "-5", sys.executable, "-c", code, str(os.getpid())]
        subprocess.Popen(hog, env=OUTSIDE)


def lock_labels(model):
    """The labels are read under a lock that another job holds for half a minute."""
    os.makedirs(FOLDER, exist_ok=True)
    hold = "import fcntl, sys, time; file = open(sys.argv[1], 'w'); fcntl.flock(file, fcntl.LOCK_EX); time.sleep(35)"
    subprocess.Popen(["setsid", "--fork", sys.executable, "-c", hold, FOLDER / "lock"], env=OUTSIDE)
    time.sleep(1)
    get = YOLODataset.get_labels

    def locked(self):
        with open(FOLDER / "lock", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # slow: start-lock
            return get(self)

    YOLODataset.get_labels = locked


def upload_at_exit(model):
    """A thread that uploads after the training, and that Python waits for."""

    def upload():
        for _ in range(60):
            time.sleep(0.5)  # slow: exit-thread

    model.add_callback("on_train_end", lambda trainer: threading.Thread(target=upload).start())


def train_each_fold(model):
    """Four trainings of one epoch before it, as one does for cross-validation."""
    for fold in range(4):
        arguments = dict(data=DATA, epochs=1, batch=32, workers=8, device=0, val=False, plots=False, save=False)
        YOLO("yolo26n.yaml").train(**arguments, cache="ram", project="/tmp/project/folds", name=f"fold{fold}")


def train_beside(model):
    """A second training of the same command on the same GPU, for most of its time."""
    code = (
        "from ultralytics import YOLO\n"
        f"YOLO('yolo26s.yaml').train(data={DATA!r}, epochs=40, batch=48, workers=4, device=0, val=False, plots=False,"
        " save=False, cache='ram', project='/tmp/project/beside', name='run')"
    )
    model.add_callback("on_train_start", lambda trainer: subprocess.Popen([sys.executable, "-c", code]))


def seek_in_video(model):
    """Samples are pictures of a video, each somewhere in it."""
    os.makedirs(FOLDER, exist_ok=True)
    base = np.random.default_rng(0).integers(0, 255, (1080, 1920, 3), dtype=np.uint8)
    writer = cv2.VideoWriter(f"{FOLDER}/video.mp4", cv2.VideoWriter_fourcc(*"mp4v"), 25, (1920, 1080))
    for n in range(120):
        writer.write(np.roll(base, 7 * n, 1))
    writer.release()
    opened = {}

    def read(sample, index):
        video = opened.setdefault(os.getpid(), cv2.VideoCapture(f"{FOLDER}/video.mp4"))
        video.set(cv2.CAP_PROP_POS_FRAMES, (index * 37) % 120)  # slow: video-seek
        video.read()

    with_each_sample(read)


def ask_service(model):
    """A process of one's own gives what belongs to each sample, to a training without workers."""
    ours, theirs = Pipe()

    def serve():
        while True:
            index = theirs.recv()
            time.sleep(0.015)
            theirs.send(index)

    Process(target=serve, daemon=True).start()

    def ask(sample, index):
        ours.send(index)
        ours.recv()  # slow: no-worker-service

    with_each_sample(ask)


N, S, M = "yolo26n", "yolo26s", "yolo26m"
FOURTH = {
    "terminal-read": ("trainer-blocked", False, wait_for_user, dict(model=S, batch=32)),
    "program-per-sample": ("input-cpu", True, unpack_with_program, dict(model=N, batch=64, workers=8)),
    "memory-map": ("input-storage", True, map_features, dict(model=S, batch=32, workers=8)),
    "http-images": ("input-latency", True, fetch_over_http, dict(model=S, batch=32, workers=8)),
    "debug-pictures": ("input-cpu", True, keep_pictures, dict(model=N, batch=64, workers=6)),
    "loss-loop": ("main-process", True, weigh_boxes, dict(model=N, batch=48)),
    "give-way": ("cpu-limit", True, give_way, dict(model=S, batch=64, workers=8)),
    "start-lock": ("slow-start", False, lock_labels, dict(model=S, batch=32)),
    "exit-thread": ("trainer-blocked", False, upload_at_exit, dict(model=S, batch=32, epochs=4)),
    "train-each-fold": ("startup", True, train_each_fold, dict(model=N, batch=32, epochs=1)),
    "train-beside": ("other-process", True, train_beside, dict(model=S, batch=48, workers=6)),
    "video-seek": ("input-cpu", True, seek_in_video, dict(model=N, batch=64, workers=6)),
    "no-worker-service": ("input-latency", True, ask_service, dict(model=N, batch=16, workers=0)),
    "healthy-full": (None, True, None, dict(model=M, batch=32, workers=8, val=True, save=True, plots=True)),
}

"""What YOLO and our callbacks in it tell of a played training: args.yaml, results.csv and inside/<pid>.jsonl."""

from typing import Any

from support.played_training import Epoch, Played, Training

WALL_S, MONO_S = 1795200000.0, 1000.0  # when the recording began
PID = 800
SAVE_DIR = "/r/x"
APPEARED_S = 2.0  # after a training's process began, it is seen on the GPU, and has written args.yaml
FIRST_WAIT_SHARE, FIRST_WAIT_S = 0.8, 0.02  # for the first batch of an epoch: of what comes before it, else so long
REPORTED_LATER_S = 0.005  # the callback of a validation's begin comes after that of the epoch's end

ARGS = """task: detect
mode: train
model: yolo11m.yaml
data: data/data.yaml
epochs: {epochs}
time: null
patience: 100
batch: {batch}
imgsz: 640
save: true
save_period: -1
cache: false
device: '{device}'
workers: {workers}
project: runs
name: x
exist_ok: true
nbs: 64
amp: true
fraction: 1.0
resume: false
val: true
close_mosaic: 10
compile: false
multi_scale: 0.0
rect: false
"""


def args_yaml(played: Played) -> str:
    """Return the text of args.yaml."""
    device = ",".join(map(str, range(played.gpus)))
    return ARGS.format(epochs=played.epochs, batch=played.batch, device=device, workers=played.workers)


def results(training: Training) -> list[str]:
    """Return the lines of results.csv."""
    begun_s = training.epochs[0].start_s
    rows = (f"{epoch.number},{epoch.row_s - begun_s:.3f},1.0,0.5,0.001" for epoch in training.epochs)
    return ["epoch,time,train/box_loss,metrics/mAP50(B),lr/pg0", *rows]


def line(t_s: float, kind: str, **fields: object) -> dict[str, Any]:
    """Return what happened at a moment of the run, as events.jsonl and inside/ have it."""
    return {"wall_s": WALL_S + t_s, "mono_s": MONO_S + t_s, "kind": kind, **fields}


def inside(training: Training) -> list[dict[str, Any]]:
    """Return what callbacks report, in order."""
    played, last_s = training.played, training.epochs[-1].end_s
    begun_s, appeared_s = training.epochs[0].start_s, played.idle_before_s + APPEARED_S
    versions = {"python": "3.12", "torch": "2.5.1+cu124", "cuda": "12.4", "ultralytics": "8.3.0"}
    return [
        line(appeared_s, "run", task="train", pid=PID, rank=0, **versions, save_dir=SAVE_DIR),
        line(appeared_s, "phase", name="startup", detail="setup", epoch=None),
        line(begun_s - 0.5, "settings", **_settings(played)),
        *(line for epoch in training.epochs for line in _reported(training, epoch)),
        line(last_s, "phase", name="final evaluation", detail="", epoch=None),
        line(last_s + played.final_s, "ended", how="finished"),
    ]


def _settings(played: Played) -> dict[str, object]:
    return {
        "world_size": played.gpus,
        "model": "yolo11m.yaml",
        "data": "data.yaml",
        "epochs": played.epochs,
        "start_epoch": 1,
        "resumed": False,
        "batch": played.batch,
        "accumulate": 4,
        "workers": played.workers,
        "imgsz": 640,
        "images": played.images,
        "batches": -(-played.images // played.batch),
        "val_images": max(played.images // 5, 1),  # as many as are usual: far more would be sets that were swapped
        "cache": None,
        "amp": True,
        "compile": False,
        "val": True,
        "plots": False,
        "close_mosaic": 10,
        "patience": 100,
        "time": None,
        "optimizer": "SGD",
        "parameters": 20000000,
        "device": "cuda:0",
        "gflops": 68.0,
    }


def _reported(training: Training, epoch: Epoch) -> list[dict[str, Any]]:
    """Return what callbacks report of an epoch, in order."""
    number = epoch.number
    lines = [
        *_first_batch(epoch),
        line(epoch.train_s, "phase", name="train", detail="", epoch=number),
        line(epoch.validation_s, "epoch", **_begun(epoch), **_trained(training, epoch)),
        line(epoch.validation_s + REPORTED_LATER_S, "phase", name="validation", detail="", epoch=number),
        line(epoch.row_s, "phase", name="checkpoint", detail="", epoch=number),
    ]
    return lines if training.played.validation_s else [each for each in lines if each.get("name") != "validation"]


def _begun(epoch: Epoch) -> dict[str, Any]:
    start_s = epoch.start_s
    return {"epoch": epoch.number, "attempt": 1, "start_wall_s": WALL_S + start_s, "start_mono_s": MONO_S + start_s}


def _first_batch(epoch: Epoch) -> list[dict[str, Any]]:
    """Return the line on an epoch's first batch, which only that of the first epoch is awaited for long enough for."""
    if epoch.train_s == epoch.start_s:
        return []
    waits = dict.fromkeys(("data_wait_s", "first_wait_s", "longest_wait_s"), _first_wait_s(epoch))
    return [line(epoch.train_s, "batches", **_begun(epoch), batches=1, **waits)]


def _first_wait_s(epoch: Epoch) -> float:
    return FIRST_WAIT_SHARE * (epoch.train_s - epoch.start_s) or FIRST_WAIT_S


def _trained(training: Training, epoch: Epoch) -> dict[str, Any]:
    """Return what callbacks say of the training part of an epoch."""
    images = training.played.images
    return {
        "batches": -(-images // training.played.batch),
        "data_wait_s": _first_wait_s(epoch) + _waited_s(training, epoch),
        "first_wait_s": _first_wait_s(epoch),
        "longest_wait_s": 0.1,
        "images": images,
        "images_per_s": images / (epoch.validation_s - epoch.start_s),
        "loss": 1.0,
        "lr": 0.001,
    }


def _waited_s(training: Training, epoch: Epoch) -> float:
    """Return how long training waited for data in an epoch; in a stall it is the trainer itself that waits."""
    stall = training.played.stall
    stalled_s = stall.seconds if stall and stall.epoch == epoch.number else 0.0
    return training.played.data_wait_share * (epoch.validation_s - epoch.train_s - stalled_s)

"""A training with one fault at a known line of code; writes what was done, and when, to TRUTH.json.

python train.py NAME TRUTH.json DATA.yaml        (as the command of `gpu-report record --`)
"""

import json
import os
import sys
import time
from pathlib import Path

import callbacks
import ends
import more
import played_gpu
import ranks
import samples
import torch
import unseen
import unseen_again
import unseen_fifth
import unseen_fourth
import unseen_third
from ultralytics import YOLO
from ultralytics.data import build
from ultralytics.data.base import BaseDataset
from ultralytics.utils import torch_utils

HERE = Path(__file__).resolve().parent
N, S, M = "yolo26n", "yolo26s", "yolo26m"
ONCE = 13.0  # seconds of the faults that come once
BATCH_END, EPOCH_END, VAL_END, EPOCH_START = (
    "on_train_batch_end",
    "on_train_epoch_end",
    "on_val_end",
    "on_train_epoch_start",
)


def called(event, function):
    return lambda model: model.add_callback(event, function)


def each_sample(function):
    def install(model):
        get = BaseDataset.__getitem__

        def slow(self, index):
            function(index)
            return get(self, index)

        BaseDataset.__getitem__ = slow

    return install


def new_loaders(model):
    start = build.seed_worker

    def slow(worker):
        samples.load_vocabulary(worker)
        return start(worker)

    build.seed_worker = slow
    model.add_callback(EPOCH_START, callbacks.renew_loader)


def each_validated(model):
    get = BaseDataset.__getitem__

    def slow(self, index):
        more.slow_validation(index, self)
        return get(self, index)

    BaseDataset.__getitem__ = slow


def with_heap(model):
    more.fill_heap(model)
    model.add_callback(BATCH_END, more.annotate)


def once(function, after_s=14):
    return called(BATCH_END, ends.Once(after_s, function))


def detect_anomalies(model):
    torch.autograd.set_detect_anomaly(True)


# Name: cause, whether it lasts, how it is installed, arguments of the training.
FAULTS = {
    "cb-sleep": ("trainer-blocked", False, once(callbacks.upload_images), dict(model=M, batch=32)),
    "cb-sleep-often": ("trainer-blocked", True, called(BATCH_END, callbacks.throttle), dict(model=N, batch=64)),
    "cb-compute": ("main-process", True, called(EPOCH_END, callbacks.rank_detections), dict(model=S, batch=64)),
    "cb-disk": ("trainer-blocked", True, called(EPOCH_END, callbacks.export_curves), dict(model=S, batch=32)),
    "cb-http": ("trainer-blocked", True, called(BATCH_END, callbacks.log_to_server), dict(model=S, batch=32)),
    "cb-gil": ("trainer-blocked", False, once(callbacks.encode_mask), dict(model=N, batch=32)),
    "cb-lock": ("trainer-blocked", False, once(callbacks.publish), dict(model=S, batch=32)),
    "w-sleep": ("input-latency", True, each_sample(samples.fetch), dict(model=N, batch=64, workers=6)),
    "w-decode": ("input-cpu", True, None, dict(model=N, batch=16, workers=8, cache=False, large=True)),
    "w-read": ("input-storage", True, None, dict(model=S, batch=32, workers=8, cache=False, slow_images=True)),
    "w-lock": ("input-latency", True, each_sample(samples.read_shared_file), dict(model=N, batch=64, workers=8)),
    "ckpt-disk": ("trainer-blocked", True, None, dict(model=N, batch=64, slow_project=True, save=True)),
    "val-plot": ("main-process", True, called(VAL_END, callbacks.plot_results), dict(model=S, batch=64, val=True)),
    "launch-blocking": ("main-process", True, None, dict(model=N, batch=16)),
    "detect-anomaly": ("main-process", True, detect_anomalies, dict(model=N, batch=16)),
    "watch-weights": ("main-process", True, called(BATCH_END, callbacks.watch_weights), dict(model=S, batch=32)),
    "print-norms": ("main-process", True, called(BATCH_END, callbacks.print_norms), dict(model=N, batch=32)),
    "run-nvidia-smi": ("trainer-blocked", True, called(BATCH_END, callbacks.log_temperature), dict(model=N, batch=64)),
    "run-evaluation": ("trainer-blocked", True, called(EPOCH_END, callbacks.evaluate_apart), dict(model=S, batch=64)),
    "one-slow-sample": (
        "input-latency",
        True,
        each_sample(samples.fetch_with_retries),
        dict(model=N, batch=32, workers=8),
    ),
    "one-large-sample": ("input-cpu", True, each_sample(samples.stitch_panorama), dict(model=S, batch=32, workers=6)),
    "growing-history": ("main-process", True, called(BATCH_END, callbacks.smooth_losses), dict(model=N, batch=64)),
    "parse-each-time": ("input-cpu", True, each_sample(samples.find_annotation), dict(model=N, batch=64, workers=8)),
    "free-memory": ("main-process", True, called(BATCH_END, callbacks.free_memory), dict(model=N, batch=32)),
    "renew-loader": ("input-start", True, new_loaders, dict(model=N, batch=64, workers=8)),
    "busy-thread": ("main-process", True, called("on_train_start", more.start_thread), dict(model=N, batch=32)),
    "large-heap": ("main-process", True, with_heap, dict(model=N, batch=32)),
    "w-collate": ("input-cpu", True, more.blur_batches, dict(model=N, batch=32, workers=6)),
    "m-preprocess": ("main-process", True, more.equalise_batches, dict(model=N, batch=32)),
    "log-handler": ("trainer-blocked", True, more.log_to_server, dict(model=S, batch=32)),
    "full-queue": ("trainer-blocked", True, more.start_writer, dict(model=N, batch=32)),
    "val-sleep": ("input-latency", True, each_validated, dict(model=S, batch=32, val=True)),
    "epoch-start": ("trainer-blocked", True, called(EPOCH_START, more.warm_up), dict(model=S, batch=32)),
    "cb-pool": ("trainer-blocked", True, called(EPOCH_END, more.evaluate_in_pool), dict(model=S, batch=32)),
    "w-stopped": ("input-stalled", False, once(more.stop_worker), dict(model=S, batch=32, workers=2)),
    "kill-worker": ("run-ended", False, once(ends.kill_worker), dict(model=S, batch=32, workers=2)),
    "nan-loss": ("run-ended", False, once(ends.spoil_loss), dict(model=S, batch=32)),
    "pause-often": ("trainer-blocked", True, called(BATCH_END, ends.pause_often), dict(model=S, batch=32)),
    "val-stall": (
        "trainer-blocked",
        False,
        called("on_val_start", ends.stall_validation),
        dict(model=S, batch=32, val=True),
    ),
    "slow-save": (
        "trainer-blocked",
        False,
        called("on_model_save", ends.slow_save),
        dict(model=N, batch=32, save=True),
    ),
    "one-core": ("cpu-limit", False, once(ends.hold_on_one_core), dict(model=N, batch=64)),
    "cores-taken": ("input-cpu", False, once(ends.take_cores), dict(model=N, batch=64)),
    "sigstop": ("trainer-blocked", False, once(ends.stop_itself), dict(model=S, batch=32)),
    "sigterm": ("run-ended", False, once(ends.terminate), dict(model=S, batch=32)),
    "disk-full": ("run-ended", False, once(ends.fill_disk), dict(model=S, batch=32)),
    "healthy": (None, True, None, dict(model=M, batch=32)),
    **unseen.UNSEEN,
    **unseen_again.AGAIN,
    **unseen_third.THIRD,
    **unseen_fourth.FOURTH,
    **unseen_fifth.FIFTH,
    **ranks.RANKS,
    "rank-sleep": (
        "trainer-blocked",
        False,
        ranks.on_rank_one(BATCH_END, ends.Once(14, ranks.sleep_once)),
        dict(model=M, **ranks.TWO),
    ),
}


def marked(name):
    """Return file and line of a fault, None where it has none."""
    name = name.replace("ranks-", "")
    for file in HERE.glob("*.py"):
        for number, line in enumerate(file.read_text().splitlines(), 1):
            if line.endswith(f"# slow: {name}"):
                return [file.name, number]
    return None


def main() -> None:
    name, out, data = sys.argv[1:4]
    cause, lasts, install, given = FAULTS[name]
    given = {**given, **json.loads(os.environ.get("ARGUMENTS", "{}"))}
    torch_utils.get_flops = lambda *_, **__: 0.0  # on the CPU: 20 s of a start-up on the machines that are lent
    model = YOLO(f"{given.pop('model')}.yaml")
    events, began = [], []
    truth = {"kind": name, "cause": cause, "standing": lasts, "line": marked(name), "events": events, "error": None}

    def note(event):
        return lambda trainer: events.append([time.time(), event, getattr(trainer, "epoch", None)])

    def write(_=None):
        if ranks.RANK > 0 or (ranks.RANK < 0 and isinstance(arguments["device"], list) and not truth["error"]):
            return  # another rank, or the process that started the ranks: rank 0 writes
        whole = Path(out + ".part")  # a signal in the middle must not leave half of it
        whole.write_text(json.dumps({**truth, "faults": began}))
        whole.replace(out)

    for event in ("on_pretrain_routine_start", "on_pretrain_routine_end", "on_train_start", "on_train_epoch_start"):
        model.add_callback(event, note(event))
    for event in ("on_train_epoch_end", "on_val_start", "on_val_end", "on_model_save", "on_fit_epoch_end"):
        model.add_callback(event, note(event))
    if install:
        install(model)
    data = data.replace("data.yaml", "large.yaml") if given.pop("large", False) else data
    data = data.replace("data.yaml", "slow.yaml") if given.pop("slow_images", False) else data
    project = os.environ.get("SLOW_DISK") if given.pop("slow_project", False) else f"/tmp/project/{name}"
    arguments = dict(val=False, plots=False, save=False, cache="ram", workers=12, epochs=100, imgsz=640, device=0)
    arguments |= given
    if os.environ.get("FAKE_NVML_STATE"):
        played_gpu.install(model, arguments["workers"])
    truth["kwargs"] = {**arguments, "model": name}
    for event in ("on_train_start", "on_train_epoch_start", "on_train_epoch_end", "on_fit_epoch_end"):
        model.add_callback(event, write)
    try:
        model.train(data=data, project=project, name="run", **arguments)
    except BaseException as error:
        truth["error"] = repr(error)[:500]
        raise
    finally:
        write()


if __name__ == "__main__":
    main()

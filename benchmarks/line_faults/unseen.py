"""Faults thought up when all rules stood, and recorded before anyone saw what the report says of them."""

import fcntl
import json
import multiprocessing
import os
import subprocess
import sys

import cv2
import numpy as np
import torch
from ultralytics.data import build
from ultralytics.data.base import BaseDataset
from ultralytics.data.dataset import YOLODataset
from ultralytics.utils.torch_utils import ModelEMA

# Each is installed with the model before it trains.


def share_labels(model):
    """Keep the annotations in one server process that all workers ask."""
    manager = multiprocessing.Manager()
    labels = manager.dict({n: [{"box": [k] * 4, "name": str(k)} for k in range(9000)] for n in range(40)})
    get = BaseDataset.__getitem__

    def ask(self, index):
        labels[index % 40]  # slow: manager-dict
        return get(self, index)

    BaseDataset.__getitem__ = ask
    model.manager = manager


def blur_with_all_cores(model):
    """Let OpenCV use every core in every worker."""
    get, start = BaseDataset.__getitem__, build.seed_worker

    def use_threads(worker):
        start(worker)
        cv2.setNumThreads(os.cpu_count())

    def blurred(self, index):
        sample = get(self, index)
        image = np.zeros((1600, 1600, 3), np.uint8)
        for _ in range(6):
            image = cv2.medianBlur(image, 31)  # slow: opencv-threads
        return sample

    BaseDataset.__getitem__, build.seed_worker = blurred, use_threads


def print_into_slow_pipe(model):
    """Print into a pipe whose reader is slow: a terminal far away, a log collector."""
    code = "import os, time\nwhile os.read(0, 300): time.sleep(0.25)"
    reader = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    fcntl.fcntl(reader.stdin, fcntl.F_SETPIPE_SZ, 4096)  # 64 KiB would take a minute to fill
    os.dup2(reader.stdin.fileno(), 1)
    os.dup2(reader.stdin.fileno(), 2)


def trace_calls(model):
    """Count calls, as a coverage tool or a debugger that was forgotten."""
    counts = {}

    def traced(frame, event, argument):
        name = json.dumps([frame.f_code.co_filename, frame.f_lineno, event])  # slow: python-tracer
        counts[name] = counts.get(name, 0) + 1
        return traced

    model.add_callback("on_train_start", lambda trainer: sys.settrace(traced))


def watch_gradients(model):
    """Hooks on the gradient of each parameter; autograd calls them in a thread of its own."""
    seen = {}

    def watched(gradient):
        sample = np.nan_to_num(gradient.detach().float().cpu().numpy().ravel()[:40_000])
        seen[len(sample)] = np.histogram(sample, bins=64)  # slow: backward-hooks

    def install(trainer):
        for parameter in trainer.model.parameters():
            if parameter.requires_grad:
                parameter.register_hook(watched)

    model.add_callback("on_train_start", install)


def on_cpu(layer, given, result):
    """Sort a layer's result on the CPU, as an operation does that has no GPU kernel."""
    values = result.detach().float().cpu()
    for _ in range(3):
        values = torch.sort(values, dim=-1).values  # slow: layer-on-cpu
    return result + 0 * values.mean().to(result.device, result.dtype)


def layer_on_cpu(model):
    model.add_callback("on_train_start", lambda trainer: trainer.model.model[4].register_forward_hook(on_cpu))


def ema_on_cpu(model):
    """Keep the averaged weights in host memory, as a script does that is short of GPU memory."""
    update, host = ModelEMA.update, {}

    def averaged(self, network):
        update(self, network)
        for value in [*network.state_dict().values()] * 6:
            host[len(value.shape)] = value.detach().to("cpu", torch.float64)  # slow: ema-on-cpu

    ModelEMA.update = averaged


def compile_again(model):
    """Compile the step anew whenever the number of objects changes: a guard that never holds."""

    def install(trainer):
        def scale(x, count):
            return (x * count).sin().sum() + count

        compiled = torch.compile(scale, dynamic=False)

        def weigh(trainer):
            torch._dynamo.reset()
            count = len(trainer.batch_sizes)
            trainer.weight = compiled(torch.ones(64, device=trainer.device), count)  # slow: recompile
            trainer.batch_sizes.append(1)

        trainer.batch_sizes = []
        trainer.add_callback("on_train_batch_end", weigh)

    model.add_callback("on_train_start", install)


def large_samples(model):
    """Carry the full picture with each sample through the loader, though the model needs none of it."""
    collate = YOLODataset.collate_fn

    def with_originals(batch):
        collated = collate(batch)
        collated["original"] = torch.empty((len(batch), 3, 3000, 3000), dtype=torch.uint8)
        return collated

    YOLODataset.collate_fn = staticmethod(with_originals)


class Balanced(torch.utils.data.Sampler):
    """Draws rare classes more often, and weighs them anew for each sample."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __iter__(self):
        random = np.random.default_rng(0)
        for _ in range(self.count):
            weights = random.random(250_000)
            yield int(random.choice(250_000, p=weights / weights.sum())) % self.count  # slow: slow-sampler


def balance_classes(model):
    loader = build.InfiniteDataLoader.__init__

    def balanced(self, *args, **kwargs):
        kwargs["shuffle"], kwargs["sampler"] = False, Balanced(len(kwargs["dataset"]))
        loader(self, *args, **kwargs)

    build.InfiniteDataLoader.__init__ = balanced


N, S = "yolo26n", "yolo26s"
UNSEEN = {
    "manager-dict": ("input-latency", True, share_labels, dict(model=N, batch=64, workers=8)),
    "opencv-threads": ("input-cpu", True, blur_with_all_cores, dict(model=N, batch=32, workers=12)),
    "slow-stdout": ("trainer-blocked", True, print_into_slow_pipe, dict(model=S, batch=32)),
    "python-tracer": ("main-process", True, trace_calls, dict(model=N, batch=16)),
    "backward-hooks": ("main-process", True, watch_gradients, dict(model=N, batch=32)),
    "layer-on-cpu": ("main-process", True, layer_on_cpu, dict(model=N, batch=32)),
    "ema-on-cpu": ("main-process", True, ema_on_cpu, dict(model="yolo26m", batch=32)),
    "tiny-epochs": ("checkpoint", True, None, dict(model=N, batch=16, fraction=0.02, save=True)),
    "recompile": ("main-process", True, compile_again, dict(model=N, batch=32)),
    "val-files": (
        "validation",
        True,
        None,
        dict(model=N, batch=16, fraction=0.1, val=True, save_txt=True, conf=0.001),
    ),
    "large-samples": ("main-process", True, large_samples, dict(model=N, batch=32, workers=8)),
    "slow-sampler": ("main-process", True, balance_classes, dict(model=N, batch=32, workers=8)),
}

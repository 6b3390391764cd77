"""Do the notes on lines of code slow a training? They are switched on and off in blocks of one YOLO training.

    gpu-report record -- python benchmarks/line_notes.py DATA.yaml OUT.json --model yolo26n --batch 4 --seconds 200

Blocks of BLOCK_S alternate in an order drawn anew for each pair. Of each block the mean of its steps' times counts, the
TRIMMED share at either end left out; the mean ratio of the pairs and its 95 % interval are the answer. YOLO's loop
gets the same few batches again and again (`--workers 0`), or loads them. The CPU of the noting threads is read from
their own clocks: of the main process while they are on, and of the loader's workers, where they always are.
"""

import argparse
import contextlib
import itertools
import json
import math
import os
import random
import statistics
import tempfile
import threading
import time
from pathlib import Path

BLOCK_S = 1.0
WARM_UP_S = 12.0
TRIMMED = 0.1  # of the steps of a block, at either end: a stray one is as long as ten
BATCHES = 16  # kept in memory
STEPS = 500  # of an epoch of these
REPORT_EVERY_S = 2.0  # how often a worker tells its clock


class Gate:
    """Stands for `time` in the module that notes: its `sleep` lasts while the notes are off."""

    def __init__(self, folder: str) -> None:
        self.on = threading.Event()
        self.on.set()
        self.main = os.getpid()
        self.cpu_s = 0.0
        self._folder = folder
        self._first_s: dict[int, float] = {}
        self._told_s: dict[int, float] = {}

    def __getattr__(self, name: str):
        return getattr(time, name)

    def sleep(self, seconds: float) -> None:
        """Sleep, tell the thread's own CPU, and wait until the notes are on."""
        cpu_s, now_s, pid = time.thread_time(), time.monotonic(), os.getpid()
        if pid == self.main:
            self.cpu_s = cpu_s
        elif now_s - self._told_s.get(pid, -math.inf) > REPORT_EVERY_S:
            self._told_s[pid] = now_s
            lasted_s = now_s - self._first_s.setdefault(pid, now_s)
            Path(self._folder, str(pid)).write_text(f"{lasted_s} {cpu_s}")
        time.sleep(seconds)
        if pid == self.main:
            self.on.wait()


class Kept:
    """Stands for a data loader: it gives the first batches of that one again and again, without any worker."""

    def __init__(self, loader) -> None:
        self._loader = loader
        self._batches = list(itertools.islice(iter(loader), BATCHES))

    def __getattr__(self, name: str):
        return getattr(self._loader, name)

    def __len__(self) -> int:
        return STEPS

    def __iter__(self):
        return (dict(self._batches[number % len(self._batches)]) for number in range(STEPS))

    def reset(self) -> None:
        """Do nothing: there are no workers."""


class Blocks:
    """Times steps in blocks with the notes on and off, as a callback of the training."""

    def __init__(self, gate: Gate, seconds: float) -> None:
        self.gate, self.seconds = gate, seconds
        self.step_s: list[tuple[bool, float]] = []  # of a step of each block
        self.cpu: list[tuple[float, float]] = []  # seconds on, CPU of the thread meanwhile
        self._order: list[bool] = []
        self._began: tuple[float, float] | None = None
        self._ends_s: list[float] = []
        self._epoch = -1

    def step(self, trainer) -> None:
        """Take a step into account; a block that an epoch's end cuts is thrown away."""
        now_s = time.perf_counter()
        self._ends_s.append(now_s)
        if trainer.epoch != self._epoch or self._began is None:
            self._epoch = trainer.epoch
            self._begin(again=True)
        elif now_s - self._began[0] >= BLOCK_S:
            self._end(now_s)
            self._begin(again=False)
        if time.time() - trainer.train_time_start > self.seconds + WARM_UP_S:
            raise KeyboardInterrupt

    def _end(self, now_s: float) -> None:
        on = self.gate.on.is_set()
        each = sorted(end - begin for begin, end in itertools.pairwise(self._ends_s))
        cut = int(TRIMMED * len(each))
        self.step_s.append((on, statistics.mean(each[cut : len(each) - cut])))
        if on:
            self.cpu.append((now_s - self._began[0], self.gate.cpu_s - self._began[1]))

    def _begin(self, *, again: bool) -> None:
        if again:  # the twin of a block would be of another epoch
            self.step_s = self.step_s[: len(self.step_s) // 2 * 2]
            self._order = []
        if not self._order:
            self._order = random.Random(len(self.step_s)).sample([True, False], 2)
        on = self._order.pop()
        (self.gate.on.set if on else self.gate.on.clear)()
        self._began, self._ends_s = (time.perf_counter(), self.gate.cpu_s), []


def told(blocks: Blocks, folder: str) -> dict:
    """Return slow-down in per cent with its 95 % interval, and the CPU of the noting threads in per cent of a core."""
    warm = blocks.step_s[4:]
    pairs = [dict(warm[n : n + 2]) for n in range(0, len(warm) - 1, 2)]
    slower = [100 * (pair[True] / pair[False] - 1) for pair in pairs]
    error = statistics.stdev(slower) / math.sqrt(len(slower))
    workers = [tuple(map(float, path.read_text().split())) for path in sorted(Path(folder).iterdir())]
    return {
        "pairs": len(slower),
        "steps_per_s": 1 / statistics.mean(step_s for _, step_s in warm),
        "slower_pct": statistics.mean(slower),
        "interval_pct": [statistics.mean(slower) - 1.96 * error, statistics.mean(slower) + 1.96 * error],
        "main_cpu_pct": 100 * sum(cpu for _, cpu in blocks.cpu) / sum(s for s, _ in blocks.cpu),
        "worker_cpu_pct": [100 * cpu_s / lasted_s for lasted_s, cpu_s in workers if lasted_s > WARM_UP_S],
        "each": slower,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", default="yolo26n")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--device", default="0")
    options = parser.parse_args()
    from gpu_report_inside import stacks  # noqa: PLC0415 - loaded by the recorder
    from ultralytics import YOLO  # noqa: PLC0415 - likewise
    from ultralytics.models.yolo.detect import DetectionTrainer  # noqa: PLC0415 - likewise

    folder = tempfile.mkdtemp()
    stacks.time = gate = Gate(folder)
    blocks = Blocks(gate, options.seconds)
    model = YOLO(f"{options.model}.yaml")
    model.add_callback("on_train_batch_end", blocks.step)
    began_s = time.monotonic()
    size = int(os.environ.get("IMGSZ", "640"))
    if options.workers == 0:
        make = DetectionTrainer.get_dataloader
        DetectionTrainer.get_dataloader = lambda *args, **kwargs: Kept(make(*args, **kwargs))
    quiet = {"val": False, "plots": False, "save": False, "project": f"{folder}-yolo", "name": "run"}
    with contextlib.suppress(KeyboardInterrupt):
        loads = {"data": options.data, "imgsz": size, "cache": "ram", "workers": options.workers}
        model.train(epochs=1000, batch=options.batch, device=options.device, **loads, **quiet)
    gate.on.set()
    result = {
        "model": options.model,
        "batch": options.batch,
        "ran_s": time.monotonic() - began_s,
        **told(blocks, folder),
    }
    options.out.write_text(json.dumps(result))
    print({key: value for key, value in result.items() if key != "each"})


if __name__ == "__main__":
    main()

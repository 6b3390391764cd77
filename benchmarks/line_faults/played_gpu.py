"""A GPU for a machine that has none: the model's step is a sleep, and the fake driver reads busy meanwhile.

What the training does beside the model is real: its loader, its callbacks, its files. `install` is called in the
training; a process of its own writes the state of tests/fakes/fake_nvml.c, so that a held interpreter lock stops no
reading.
"""

import mmap
import os
import struct
import subprocess
import sys
import time
from pathlib import Path

STEP_S = 0.12  # of work on the GPU for each batch, forward and backward
PERIOD_S = 0.1  # between two states
WINDOW_S = 0.5  # that a utilisation is of, as a driver's is
IDLE_W, BUSY_W = 120.0, 520.0
CLOCK = struct.Struct("<dd")  # seconds busy until the last change, since when busy (0: idle)


item = (
    time.sleep
)  # the call in which the main process waits for the GPU goes by the name that it has in a real training


class Work:
    """What the GPU does, in memory that the process which plays the driver sees."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(CLOCK.size))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), CLOCK.size)
        self._busy_s = 0.0

    def do(self, seconds: float) -> None:
        """Be busy, and return when done, as a synchronising call does."""
        began_s = time.monotonic()
        CLOCK.pack_into(self._memory, 0, self._busy_s, began_s)
        item(seconds)
        self._busy_s += time.monotonic() - began_s
        CLOCK.pack_into(self._memory, 0, self._busy_s, 0.0)


def install(yolo, workers: int) -> None:
    """Replace the model's step and start what plays the driver; YOLO gives a training without a GPU no workers."""
    yolo.add_callback("on_pretrain_routine_start", lambda trainer: setattr(trainer.args, "workers", workers))
    from ultralytics.nn.tasks import DetectionModel

    clock = Path(os.environ["FAKE_NVML_STATE"]).with_suffix(".clock")
    work = Work(clock)
    subprocess.Popen([sys.executable, "-S", __file__, str(clock), os.environ["FAKE_NVML_STATE"], str(os.getpid())])

    def step(model, batch, preds=None):
        model.criterion = None  # which the trainer looks for at an epoch's end
        work.do(STEP_S)
        loss = next(model.parameters()).sum() * 0 + 1
        return loss, dict.fromkeys(("box_loss", "cls_loss", "dfl_loss"), loss.detach())

    predict = DetectionModel.predict

    def validate(model, images, *arguments, **options):
        if model.training or images.shape[0] < 2:
            return predict(model, images, *arguments, **options)
        work.do(STEP_S / 3)
        return predict(model, images, *arguments, **options)

    DetectionModel.loss = step
    DetectionModel.predict = validate


def play(clock: Path, state: Path, pid: int) -> None:
    """Write the driver's state until the training is gone."""
    seen = []
    with clock.open("rb") as file:
        memory = mmap.mmap(file.fileno(), CLOCK.size, access=mmap.ACCESS_READ)
    while os.path.exists(f"/proc/{pid}"):
        now_s = time.monotonic()
        busy_s, since_s = CLOCK.unpack_from(memory)
        seen = [one for one in seen if now_s - one[0] < WINDOW_S] + [
            (now_s, busy_s + (now_s - since_s if since_s else 0))
        ]
        span_s = max(seen[-1][0] - seen[0][0], PERIOD_S)
        write(state, min((seen[-1][1] - seen[0][1]) / span_s, 1.0), pid)
        time.sleep(PERIOD_S)
    write(state, 0.0, None)


def write(state: Path, share: float, pid: int | None) -> None:
    """Write what the driver reads, all at once."""
    power_w = IDLE_W + share * (BUSY_W - IDLE_W)
    process = f"gpu0.procs={pid}:8000\n" if pid else ""
    activity = (
        f"sm_active={70 * share:.1f}\nsm_occupancy={30 * share:.1f}\ntensor={20 * share:.1f}\ndram={30 * share:.1f}\n"
    )
    beside = state.with_suffix(".new")
    beside.write_text(f"count=1\nring=0\nutil={100 * share:.0f}\npower_w={power_w:.0f}\n{process}{activity}")
    beside.replace(state)


if __name__ == "__main__":
    play(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))

"""Faults that come once or end the training, from inside and outside; each that has a line is at `# slow: NAME`."""

import os
import signal
import subprocess
import sys
import threading
import time

import torch


class Once:
    """Something that is done once, a while after the training began."""

    def __init__(self, after_s, what):
        self.after_s, self.what, self.done = after_s, what, False

    def __call__(self, trainer):
        if not self.done and time.time() - trainer.train_time_start > self.after_s:
            self.done = True
            self.what(trainer)


def kill_worker(trainer):
    os.kill(trainer.train_loader.iterator._workers[0].pid, signal.SIGKILL)


def spoil_loss(trainer):
    for parameter in trainer.model.parameters():
        parameter.data.fill_(float("nan"))


def pause_often(trainer):
    if int(time.time() - trainer.train_time_start) % 11 == 10:
        time.sleep(4)  # slow: pause-often


def stall_validation(validator):
    if getattr(stall_validation, "count", 0) == 2:
        time.sleep(14)  # slow: val-stall
    stall_validation.count = getattr(stall_validation, "count", 0) + 1


def slow_save(trainer):
    if trainer.epoch == 3:
        time.sleep(14)  # slow: slow-save


def hold_on_one_core(trainer):
    workers = [worker.pid for worker in trainer.train_loader.iterator._workers]
    for pid in (os.getpid(), *workers):
        os.sched_setaffinity(pid, {0})
    threading.Timer(14, release, [(os.getpid(), *workers)]).start()


def release(pids):
    for pid in pids:
        os.sched_setaffinity(pid, range(os.cpu_count()))


def take_cores(trainer):
    code = "import time\nend = time.time() + 14\nwhile time.time() < end: pass"
    for _ in range(3 * os.cpu_count()):
        subprocess.Popen([sys.executable, "-c", code], start_new_session=True)


def stop_itself(trainer):
    pid = os.getpid()
    code = f"import os, signal, time\nos.kill({pid}, signal.SIGSTOP)\ntime.sleep(13)\nos.kill({pid}, signal.SIGCONT)"
    subprocess.Popen([sys.executable, "-c", code], start_new_session=True)


def terminate(trainer):
    os.kill(os.getpid(), signal.SIGTERM)


def run_out_of_gpu_memory(trainer):
    raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")


def fill_disk(trainer):
    raise OSError(28, "No space left on device", "/data/runs/weights/last.pt")

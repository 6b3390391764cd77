"""Notes of where processes stood, and readings of a GPU beside them, put together by hand."""

import numpy as np
import pandas as pd

from gpu_report.analyse.timeseries.gpu_series import GpuSeries
from gpu_report.model import Frame, ProcessStacks

TORCH = "/venv/lib/python3.11/site-packages/torch/utils/data/"
TRAINER = Frame("/venv/lib/python3.11/site-packages/ultralytics/engine/trainer.py", 632, "_do_train")
LOG = Frame("/home/me/callbacks.py", 41, "log_images")
LOADER = Frame(TORCH + "dataloader.py", 1448, "__next__")
LOOP = Frame(TORCH + "_utils/worker.py", 375, "_worker_loop")
READ = Frame("/home/me/data.py", 29, "read_slowly")
SELECT = Frame("/usr/lib/python3.11/selectors.py", 415, "select")
TRAINS, LOGS, WAITS = (TRAINER,), (LOG, TRAINER), (SELECT, LOADER, TRAINER)
READS, RESTS, STARTS = (READ, LOOP, TRAINER), (SELECT, LOOP, TRAINER), (TRAINER,)


def process(*stays, role="main", pid=1):
    """Return a process that stood from one moment to the next in a stack: (start_s, end_s, stack)."""
    stacks = list(dict.fromkeys(stack for _, _, stack in stays))
    starts, ends = (np.array([stay[i] for stay in stays], dtype=float) for i in (0, 1))
    numbers = np.array([1 + stacks.index(stack) for _, _, stack in stays], dtype=np.int32)
    return ProcessStacks(pid, role, starts, ends, numbers, {1 + i: stack for i, stack in enumerate(stacks)})


def series(*util, step_s=1.0, gpu=0):
    """Return readings of a GPU, each of the `step_s` before it: the first is taken after `step_s`."""
    t_s = step_s * (1 + np.arange(len(util)))
    weight = np.full(len(util), step_s)
    rows = pd.DataFrame({"t_s": t_s})
    return GpuSeries(gpu, t_s, np.array(util, dtype=float), weight, step_s, step_s, rows, weight)

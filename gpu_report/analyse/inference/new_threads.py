"""Calls of threads that have made none before: what their inference takes longer than that of others.

PyTorch keeps cuDNN's plans of convolutions for each thread (`thread_local` in ATen/native/cudnn/Conv_v8.cpp), so a new
thread makes them anew: YOLO26n took 122 ms in new threads, 9 to 12 ms in others, 18 to 20 ms without cuDNN (H200).
"""

from typing import NamedTuple

import numpy as np

from gpu_report.analyse.inference import thresholds as th
from gpu_report.analyse.inference.call_time import MS
from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.model import ServedModel


class NewThreads(NamedTuple):
    """Calls of new threads: how many, their mean inference, the others' median (None: too few), and what was lost."""

    calls: int
    mean_ms: float
    known_ms: float | None
    lost_s: float


def slow_new_threads(served: ServedModel) -> NewThreads | None:
    """Return a model's calls of new threads where these are several and slow, as far as anybody can see.

    Beside calls of threads that have called before they must be slower; without such, the GPU must idle in most of
    their inference. Of a model on the CPU, or one that PyTorch does not run, nothing is known to be made anew.
    """
    calls = served.steady_calls
    if calls.new_thread is None or calls.gpu is None or calls.settings.get("format") not in th.FORMATS_OF_PYTORCH:
        return None
    timed = np.isfinite(calls.inference_ms)
    new_ms = calls.inference_ms[timed & (calls.new_thread == 1)]
    known = calls.inference_ms[timed & (calls.new_thread == 0)]
    known_ms = float(np.median(known)) if len(known) >= th.NEW_THREADS_LEAST else None
    instead_ms = served.gpu_ms if known_ms is None else known_ms
    if len(new_ms) < th.NEW_THREADS_LEAST or instead_ms is None or not _goes_on(calls.new_thread[timed]):
        return None
    lost_ms = new_ms - instead_ms
    is_slow = float(np.median(new_ms)) >= th.NEW_THREAD_SLOWER * instead_ms
    return NewThreads(len(new_ms), float(new_ms.mean()), known_ms, float(lost_ms.sum()) / MS) if is_slow else None


def _goes_on(new: Floats) -> bool:
    """Tell whether the last third of calls comes from new threads as often as all do: a pool of threads fills once."""
    late = new[2 * len(new) // 3 :]
    return float((late == 1).mean()) >= th.NEW_THREADS_LATER * float((new == 1).mean())

"""Rule: host memory grows over the epochs of a training, and would be full before these are over."""

import numpy as np

from gpu_report.analyse.causes.confidence import POSSIBLE
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.signals.gpu.gpu_memory import GpuMemory
from gpu_report.analyse.signals.gpu.memory_growth import MemoryGrowth, find_growth
from gpu_report.analyse.timeline.training_epochs import TrainingEpochs
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.model import Advice, Cause, Finding
from gpu_report.wording import gib, memory_words

HOST = -1  # in the place of a GPU's index
SHORT = "Find what keeps host memory from batch to batch: a list of results or images, a cache"
ADVICE = Advice(
    f"{SHORT}. Lists of Python objects in a data set grow in each worker, too: arrays do not. `ps aux --sort=-rss` "
    "shows whose memory it is",
    short=SHORT,
)
WHY = "host memory is taken and not given back, by the training or by others"


def growing_host_memory(context: Context) -> list[Finding]:
    """Report host memory that grows as GPU memory of a leak does, where it would be full within the epochs left.

    Page cache is none of it. What other programs take is: whose it is was not recorded.
    """
    found = (_of_training(context, training) for training in context.trainings)
    return [finding for finding in found if finding is not None]


def _of_training(context: Context, training: Training) -> Finding | None:
    epochs, memory = training.epochs, _host_memory(context)
    if epochs is None or memory is None or (epoch_s := epochs.epoch_s) is None:
        return None
    growth, left = find_growth(memory, epochs, None), _epochs_left(training, epochs)
    seconds = growth.seconds_left if growth is not None else None
    if growth is None or seconds is None or not left or seconds > left * epoch_s:
        return None
    return _finding(context, growth, seconds / epoch_s, epoch_s)


def _host_memory(context: Context) -> GpuMemory | None:
    """Return the memory of the host in use, page cache apart, as that of a GPU; None where it is not known.

    Nor where a cgroup allows less than the machine has: what of it is no page cache is not recorded.
    """
    host, recording = context.run.host, context.run.recording
    total, limit = recording.memory_mib, recording.memory_limit_mib
    if not total or (limit or total) < total or not len(host):
        return None
    used = host["memory_used_mib"].to_numpy(dtype=float)
    if not np.isfinite(used).any():
        return None
    return GpuMemory(HOST, host["t_s"].to_numpy(dtype=float), used, None, float(total))


def _epochs_left(training: Training, epochs: TrainingEpochs) -> int | None:
    asked, last = training.args.get("epochs"), epochs.all[-1].epoch
    return max(asked - last, 0) if isinstance(asked, int) and last is not None else None


def _finding(context: Context, growth: MemoryGrowth, left: float, epoch_s: float) -> Finding:
    rate, is_full = memory_words(growth.rate_mib_s * epoch_s), left < 1
    until = ", until hardly any was left" if is_full else f": full after about {left:,.0f} more epochs"
    return context.finding(
        "host-memory-growth",
        "critical",
        (growth.start_s, growth.end_s),
        f"Host memory grew {rate} an epoch{until}",
        evidence=evidence(
            ("memory before it (peak in training)", gib(growth.before_mib), "GiB"),
            ("memory after it", gib(growth.after_mib), "GiB"),
            ("growth per epoch (median slope)", gib(growth.rate_mib_s * epoch_s), "GiB"),
            ("epochs until it is full at this rate", left, ""),
        ),
        cause=Cause("memory-growth", POSSIBLE, WHY),
        advice=(ADVICE,),
        ran_out=is_full,
    )

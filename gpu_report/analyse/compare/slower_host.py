"""Whether the cores were slower, not the training: the same work then takes main process and workers longer alike.

A busy host, a lower clock or another processor does that to a virtual machine without a trace in its utilisation. What
a change to a training costs is in one of the two, or comes with other arguments, versions or work for the GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpu_report.analyse.compare import thresholds as th
from gpu_report.analyse.compare.metrics import (
    CHECKPOINT,
    EPOCH_TIME,
    GPU_WORK,
    IMAGES,
    MAIN_CPU,
    UTILISATION,
    VALIDATION,
    WORKERS_CPU,
)
from gpu_report.model import Difference, MetricComparison
from gpu_report.wording import upper_first

# Arguments that change how long a training is, or where it lies, and not what an epoch of it costs.
SAME_EPOCH = frozenset({"epochs", "patience", "seed", "save_period", "plots", "time"})
SOFTWARE = frozenset({"torch", "ultralytics", "CUDA", "driver", "amp in effect", "processes of the training"})
TIMES = frozenset({EPOCH_TIME, VALIDATION, CHECKPOINT})
RATES = frozenset({IMAGES, UTILISATION})


@dataclass(frozen=True)
class HostSlowdown:
    """How much longer the cores took for the same work, as shares of the baseline (0.3 is 30 %; negative: faster)."""

    main: float
    workers: float

    @property
    def most(self) -> float:
        """Return the larger share: a training may wait for either."""
        return max(self.main, self.workers, key=abs)

    @property
    def least(self) -> float:
        """Return the smaller share."""
        return min(self.main, self.workers, key=abs)

    def account_for(self, share: float) -> bool:
        """Tell whether a change of the epoch time is the cores' alone, but for what is not worth a word."""
        rest = (1 + share) / (1 + self.most) - 1
        return rest <= th.LEAST_TIME_SHARE if share > 0 else rest >= -th.LEAST_TIME_SHARE

    def explain(self, metric: str, limit: float, share: float) -> bool:
        """Tell whether slower cores make a change of a metric that is beyond its limit, and without them it is not.

        `limit` and `share` are of the baseline, worse than it: positive of times, negative of rates. A change to the
        better is never explained.
        """
        if self.most <= 0:
            return False
        if metric in TIMES:
            return share > 0 and self.adjusted(metric, share, self.most) <= limit
        return metric in RATES and share < 0 and self.adjusted(metric, share, self.most) >= limit

    def hide(self, metric: str, limit: float, share: float) -> bool:
        """Tell whether faster cores keep a change within its limit that is beyond it for the cores that there were."""
        if self.most >= 0 or metric not in {EPOCH_TIME, IMAGES}:
            return False
        adjusted = self.adjusted(metric, share, self.least)
        return adjusted > limit if metric in TIMES else adjusted < limit

    def adjusted(self, metric: str, share: float, cores: float) -> float:
        """Return the change from the baseline as it would be with such cores: all of a time goes with them.

        That is so of a training that waits for its cores, and too much of one that the GPU holds back.
        """
        factor = 1 + cores
        return (1 + share) / factor - 1 if metric in TIMES else (1 + share) * factor - 1


def host_slowdown(metrics: Sequence[MetricComparison], unlike: Sequence[Difference]) -> HostSlowdown | None:
    """Return how the cores of two runs differ, None where they do not, or where the training may be what does.

    One of the two changes must be certain; that the other is as large is no chance then.
    """
    by_name = {metric.metric: metric for metric in metrics}
    main, workers, gpu = (by_name.get(name) for name in (MAIN_CPU, WORKERS_CPU, GPU_WORK))
    if main is None or workers is None or gpu is None or any(map(_may_cost, unlike)):
        return None
    pair = (main, workers)
    known = [metric.change_share for metric in pair if metric.change_share is not None and _is_large(metric)]
    sure = any(metric.judgement == "changed" or metric.in_band for metric in pair)
    if not sure or len(known) < 2 or (known[0] > 0) != (known[1] > 0):
        return None
    # a share of -1 is no CPU time at all: nothing was measured
    alike = min(known) > -1 and (1 + max(known)) / (1 + min(known)) - 1 <= th.CORES_AGREE
    return HostSlowdown(*known) if alike and _is_same_work(gpu, known) else None


def slowdown_words(cores: HostSlowdown, time: MetricComparison | None) -> str:
    """Return in sentences what the cores took for the same work, beside what became of the epoch time."""
    slower = cores.main > 0
    main, workers = (f"{100 * abs(share):.0f} %" for share in (cores.main, cores.workers))
    took = (
        f"the same work took {main} {'more' if slower else 'less'} CPU time in the main process, {workers} in workers"
    )
    why = "a busy host or a lower clock" if slower else "a host with less load or a higher clock"
    if not has_changed_with_cores(cores, time):
        return f"The machine was {'slower' if slower else 'faster'} ({why}): {took}."
    if not is_explained_by_cores(cores, time):
        return f"Part of it is the machine ({why}): {took}."
    return f"{upper_first(took)}. The reason is the machine ({why}), not the training."


def has_changed_with_cores(cores: HostSlowdown, time: MetricComparison | None) -> bool:
    """Tell whether the epoch time changed for certain, and the way that the cores did.

    That is so whatever several baselines differ by: they may have had such cores as well.
    """
    if time is None or time.change_share is None or not (time.judgement in {"better", "worse"} or is_in_band(time)):
        return False
    return (time.change_share > 0) == (cores.most > 0)


def is_explained_by_cores(cores: HostSlowdown, time: MetricComparison | None) -> bool:
    """Tell whether the cores are all that changed the epoch time."""
    share = time.change_share if time is not None else None
    return share is not None and has_changed_with_cores(cores, time) and cores.account_for(share)


def is_in_band(metric: MetricComparison) -> bool:
    """Tell whether a change that is worth a word is certain, and no more than the baselines differ by."""
    return metric.in_band and _is_large(metric)


def _is_large(metric: MetricComparison) -> bool:
    return metric.change is not None and metric.least_change is not None and abs(metric.change) >= metric.least_change


def _is_same_work(gpu: MetricComparison, cores: Sequence[float]) -> bool:
    """Tell whether the GPU's work stayed what it was, seen beside how much longer the cores took."""
    most = th.GPU_WORK_SHARE * min(map(abs, cores))
    return gpu.change_share is not None and abs(gpu.change_share) <= most


def _may_cost(difference: Difference) -> bool:
    """Tell whether a difference of the set-ups may change what an epoch costs."""
    if difference.kind == "argument":
        return difference.name not in SAME_EPOCH
    return difference.kind == "hard" or difference.name in SOFTWARE

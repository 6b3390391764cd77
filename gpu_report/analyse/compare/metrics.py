"""The metrics of a comparison: what they are called, which way is better, and the smallest change that counts.

A training has epochs, a run that serves has calls; few metrics are of both.

Compared by default is the `usual` value (TYPICAL): the mean of the epochs that do not stand out. With few epochs the
median needs half as many again for the same certainty, and the mean of all is at the mercy of a single stalled epoch.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gpu_report.analyse.compare import thresholds as th
from gpu_report.analyse.timeseries.bootstrap import Statistic
from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.model import MetricComparison

EPOCH_TIME = "epoch_time"
IMAGES = "images_per_s"
UTILISATION = "util"
DATA_WAIT = "data_wait"
WAIT_SHARE = "data_wait_share"
VALIDATION = "validation_time"
CHECKPOINT = "checkpoint_time"
MEMORY = "memory_peak"
# What an epoch costs in work, however long it takes (resource_use.py).
MAIN_CPU = "main_cpu"
WORKERS_CPU = "workers_cpu"
GPU_WORK = "gpu_work"
WORK = (MAIN_CPU, WORKERS_CPU, GPU_WORK)
# Of the calls of models.
LATENCY = "latency"
ENERGY_PER_IMAGE = "energy.per_image"
PARTS = ("preprocess", "inference", "postprocess")
TYPICAL = "usual"
# Of these alone calls have quantiles, each with its share of calls below it.
STATISTICS_OF_CALLS: Mapping[str, float] = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True)
class Metric:
    """A quantity that an epoch or a window of training has, or a call of a model.

    `statistic` is what is compared where nothing else is asked for, and `statistics` what may be. `better` None: no
    direction of its own. A change counts from `least_share` of the baseline on, and from `least` in `unit` on
    (percentage points of a percentage).
    """

    name: str
    label: str
    unit: str
    statistic: str
    better: Literal["lower", "higher"] | None
    least_share: float = 0.0
    least: float = 0.0
    statistics: tuple[str, ...] = (TYPICAL, "mean", "p5", "p50", "p95", "min", "max")

    def least_change(self, baseline: float) -> float:
        """Return the smallest change from a baseline that counts, in the metric's unit."""
        return max(self.least, self.least_share * abs(baseline))


def _part(name: str, label: str) -> Metric:
    return Metric(name, label, "ms", "mean", "lower", least_share=th.LEAST_TIME_SHARE, statistics=("mean",))


METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(EPOCH_TIME, "training per epoch", "s", TYPICAL, "lower", least_share=th.LEAST_TIME_SHARE),
        Metric(IMAGES, "images per second", "images/s", TYPICAL, "higher", least_share=th.LEAST_TIME_SHARE),
        Metric(DATA_WAIT, "waiting for data per epoch", "s", TYPICAL, "lower"),
        Metric(WAIT_SHARE, "waiting for data", "%", TYPICAL, "lower", least=th.LEAST_WAIT_PP),
        Metric(UTILISATION, "steady-state GPU utilisation", "%", TYPICAL, None, least=th.LEAST_UTIL_PP),
        Metric("energy", "energy per epoch", "J", TYPICAL, "lower", least_share=th.LEAST_ENERGY_SHARE),
        Metric(
            VALIDATION,
            "validation time",
            "s",
            TYPICAL,
            "lower",
            least_share=th.LEAST_VALIDATION_SHARE,
            least=th.LEAST_VALIDATION_S,
        ),
        Metric(
            CHECKPOINT,
            "end of an epoch beside validation",
            "s",
            TYPICAL,
            "lower",
            least_share=th.LEAST_VALIDATION_SHARE,
            least=th.LEAST_VALIDATION_S,
        ),
        Metric(
            MEMORY,
            "peak memory",
            "MiB",
            "max",
            "lower",
            least_share=th.LEAST_MEMORY_SHARE,
            statistics=("max",),  # a peak is one figure a run
        ),
        Metric(MAIN_CPU, "CPU time of the main process per epoch", "s", TYPICAL, None, least_share=th.LEAST_WORK_SHARE),
        Metric(WORKERS_CPU, "CPU time of the workers per epoch", "s", TYPICAL, None, least_share=th.LEAST_WORK_SHARE),
        Metric(GPU_WORK, "SM activity per epoch", "s", TYPICAL, None, least_share=th.LEAST_WORK_SHARE),
        Metric(
            LATENCY,
            "latency",
            "ms",
            "p95",
            "lower",
            least_share=th.LEAST_TIME_SHARE,
            statistics=("mean", *STATISTICS_OF_CALLS),
        ),
        *(
            _part(name, label)
            for name, label in zip(PARTS, ("pre-processing", "inference", "post-processing"), strict=True)
        ),
        Metric(
            ENERGY_PER_IMAGE,
            "energy per image",
            "J/image",
            "mean",
            "lower",
            least_share=th.LEAST_ENERGY_SHARE,
            statistics=("mean",),
        ),
    )
}
# What is compared of calls, in order: metric and statistic.
OF_CALLS = (
    *((LATENCY, statistic) for statistic in STATISTICS_OF_CALLS),
    *((part, "mean") for part in PARTS),
    (IMAGES, TYPICAL),
    (ENERGY_PER_IMAGE, "mean"),
    (MEMORY, "max"),
)


def name_of(compared: MetricComparison) -> str:
    """Return what a metric is called within a sentence: p95 latency, energy per image of yolo26n."""
    percentile = f"{compared.statistic} " if compared.metric == LATENCY else ""
    model = f" of {compared.model}" if compared.model else ""
    return f"{percentile}{METRICS[compared.metric].label}{model}"


def _mean(values: Floats) -> Floats:
    return np.asarray(values.mean(axis=-1))


def _harmonic_mean(values: Floats) -> Floats:
    return np.asarray(1 / (1 / values).mean(axis=-1))


def _quantile(share: float) -> Statistic:
    return lambda values: np.asarray(np.quantile(values, share, axis=-1))


STATISTICS: Mapping[str, Statistic] = {
    TYPICAL: _mean,  # of values that were chosen before (significance.py), as for the median
    "mean": _mean,
    "p5": _quantile(0.05),
    "p50": _quantile(0.5),
    "p95": _quantile(0.95),
    "min": _quantile(0.0),
    "max": _quantile(1.0),
}


def statistic_of(metric: str, statistic: str) -> Statistic:
    """Return a statistic; means of rates are harmonic, so that images a second are an epoch's images by its time."""
    if metric == IMAGES and statistic in {TYPICAL, "mean"}:
        return _harmonic_mean
    return STATISTICS[statistic]


ALSO_CALLED = {"median": "p50", "peak": "max", "avg": "mean"}

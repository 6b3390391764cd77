"""What a comparison counts of a run that calls models: the calls after warm-up, of each model together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import Final

import numpy as np

from gpu_report.analyse.compare.calls.estimates import Estimate, mean_estimate, quantile_estimate, ratio_estimate
from gpu_report.analyse.compare.metrics import (
    ENERGY_PER_IMAGE,
    IMAGES,
    LATENCY,
    MEMORY,
    PARTS,
    STATISTICS_OF_CALLS,
    TYPICAL,
)
from gpu_report.analyse.compare.samples import memory_peak_mib
from gpu_report.analyse.inference.groups import commonest
from gpu_report.analyse.timeseries.energy import energy
from gpu_report.analyse.timeseries.gpu_series import Floats, GpuSeries, gpu_series
from gpu_report.model import Analysis, ServedModel

# Formats that are folders add their own name to the model's.
FOLDER: Final = re.compile(r"(?:_int8)?_(?:openvino|ncnn|saved|paddle|rknn|imx|axelera|executorch|deepx)_model$")
TICKS: Final = 2  # of the recorder, that a batch of calls must last: energy is measured once a tick

Key = tuple[str, str, str, int]


@dataclass(frozen=True, eq=False)
class CallSample:
    """The calls of one model of a run after warming up, of all processes that have it, in order of their beginnings.

    `every_s` is how long after each call the next one began; of the last one how long it took. `joules` is what the
    GPUs used in that time, empty where it is not known. `parts_ms` are by metric, `other` what is left of a call.
    """

    analysis: Analysis
    served: tuple[ServedModel, ...]
    images: Floats
    latency_ms: Floats
    parts_ms: Mapping[str, Floats]
    every_s: Floats
    joules: Floats
    gpus: tuple[GpuSeries, ...]

    @property
    def settings(self) -> Mapping[str, object]:
        """Return what the model was set up with."""
        return self.served[0].calls.settings

    @property
    def name(self) -> str:
        """Return the model's name, whatever it was exported to."""
        return self.key[0]

    @property
    def batch(self) -> int:
        """Return how many images most calls have."""
        return int(commonest(self.images))

    @property
    def key(self) -> Key:
        """Return what a model is matched by: name, format, precision, batch."""
        return _key(self.served[0])

    @cached_property
    def _known(self) -> dict[tuple[str, str], Estimate | None]:
        return {}

    def estimate(self, metric: str, statistic: str) -> Estimate | None:
        """Return a metric with its interval, None where it is not known, or the calls are too few for it."""
        if (metric, statistic) not in self._known:
            self._known[metric, statistic] = self._estimate(metric, statistic)
        return self._known[metric, statistic]

    def _estimate(self, metric: str, statistic: str) -> Estimate | None:
        share = STATISTICS_OF_CALLS.get(statistic)
        if metric == LATENCY and share is not None:
            return quantile_estimate(self.latency_ms, share)
        if statistic not in {TYPICAL, "mean", "max"}:
            return None
        if metric == MEMORY:
            peak = memory_peak_mib(self.gpus)
            return None if peak is None else Estimate(peak, peak, peak, 1)
        if metric == IMAGES:
            return _inverted(ratio_estimate(self.every_s, self.images))
        if metric == ENERGY_PER_IMAGE:
            return self._energy()
        return mean_estimate(self.latency_ms if metric == LATENCY else self.parts_ms.get(metric, np.array([])))

    def _energy(self) -> Estimate | None:
        if not len(self.joules):
            return None
        tick_s = max((series.tick_s for series in self.gpus), default=1.0)
        return ratio_estimate(self.joules, self.images, int(self.every_s.sum() / (TICKS * tick_s)))


def call_samples(analysis: Analysis) -> tuple[CallSample, ...]:
    """Return the calls of each model of a run, the one with the most images first."""
    groups: dict[Key, list[ServedModel]] = {}
    used = {summary.gpu.index for summary in analysis.gpus if summary.used}
    gpus = tuple(series for series in gpu_series(analysis.run) if series.gpu in used)
    for served in analysis.served:
        groups.setdefault(_key(served), []).append(served)
    samples = [_sample(analysis, of, gpus) for of in groups.values()]
    return tuple(sorted(samples, key=lambda sample: -float(sample.images.sum())))


def _key(served: ServedModel) -> Key:
    settings = served.calls.settings
    name = FOLDER.sub("", PurePath(served.calls.name.replace("\\", "/")).stem) or "model"
    images = served.steady_calls.images
    return name, str(settings.get("format")), str(settings.get("half")), int(commonest(images))


def _sample(analysis: Analysis, served: Sequence[ServedModel], gpus: tuple[GpuSeries, ...]) -> CallSample:
    start_s = _after_warm_up(served, "start_s")
    order = np.argsort(start_s, kind="stable")
    images, latency_ms, *parts = (
        _after_warm_up(served, name)[order] for name in ("images", "total_ms", *(f"{part}_ms" for part in PARTS))
    )
    begins = start_s[order]
    ends = np.append(begins[1:], max(each.end_s for each in served))
    known = dict(zip(PARTS, parts, strict=True))
    return CallSample(
        analysis=analysis,
        served=tuple(served),
        images=images,
        latency_ms=latency_ms,
        parts_ms={**known, "other": latency_ms - sum(parts)},
        every_s=ends - begins,
        joules=_joules(served, gpus, begins, ends),
        gpus=gpus,
    )


def _after_warm_up(served: Sequence[ServedModel], name: str) -> Floats:
    return np.concatenate([getattr(each.steady_calls, name) for each in served])


def _joules(served: Sequence[ServedModel], gpus: Sequence[GpuSeries], begins: Floats, ends: Floats) -> Floats:
    """Return what each call used until the next one: of what its GPUs did then, the models' share of it in all.

    Where power was not read nothing is known: the rest used as much of the whole as it is of the time.
    """
    known = [each.joules_per_image * each.images for each in served if each.joules_per_image is not None]
    mine = [energy(series) for series in gpus if series.gpu in {each.calls.gpu for each in served}]
    if len(known) < len(served) or not mine:
        return np.array([])
    used = np.sum([curve.of_each(begins, ends)[0] for curve in mine], axis=0)
    read, every_s = np.isfinite(used), ends - begins
    whole = float(used[read].sum())
    of_read = sum(known) * float(every_s[read].sum()) / float(every_s.sum())
    return used * of_read / whole if whole > 0 else np.array([])


def _inverted(each_image_s: Estimate | None) -> Estimate | None:
    """Return images a second from the seconds of an image; from no time at all on there may be any number."""
    if each_image_s is None or each_image_s.value <= 0:
        return None
    low_s, high_s = each_image_s.low, each_image_s.high
    high = 1 / low_s if low_s > 0 else np.inf
    return Estimate(1 / each_image_s.value, 1 / high_s, high, each_image_s.count)

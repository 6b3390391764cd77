"""Epochs and GPUs in numbers: what each took, and how busy it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from gpu_report.model.recorded import Gpu
from gpu_report.model.time_span import TimeSpan


@dataclass(frozen=True)
class Stats:
    """Mean, extremes and percentiles of one quantity, weighted by the time each sample stands for."""

    mean: float
    min: float
    p5: float
    p50: float
    p95: float
    max: float


@dataclass(frozen=True)
class GpuSummary:
    """One GPU over the whole run. `quantities` has only what was recorded; `energy_j` is None where unknown.

    So it is where a part of the run was not measured, for a sum would be low by that. `energy_source` is what it was
    read from all the same, none where nothing was.

    `used` says whether the run worked on it at all: a GPU that it did not use is no part of the run's means. One that
    is `of_others` is no part of its GPU time either: only other processes worked on it, or its MIG devices did.
    """

    gpu: Gpu
    samples: int
    quantities: Mapping[str, Stats]
    energy_j: float | None
    energy_source: Literal["counter", "power", "none"]
    used: bool = True
    of_others: bool = False


PartName = Literal["train", "validation", "checkpoint", "data wait", "stall"]


@dataclass(frozen=True)
class Outlier:
    """A part of an epoch that took far longer than the same part of its siblings.

    `stall` is time between batches that a finding has another cause for than the loader: `cause`.
    """

    part: PartName
    seconds: float
    typical_s: float
    cause: str = ""


@dataclass(frozen=True)
class EpochSummary(TimeSpan):
    """One epoch: from the end of the one before (or the start of training) to its own row of results.csv.

    One that was reported by callbacks lasts from the start of its training to the end of its checkpoint. `gpu_util_pct`
    and `energy_j` are over all GPUs but those of others, `gpus` and `gpu_utils_pct` (means) per device index.
    `train_s`, `validation_s` and `checkpoint_s` are its phases, None where not distinguished; `source` is its
    training's, whose end is known to `uncertainty_s`.
    `warm_up_s` is what of it was startup still: the first batch of a process; 0 in any other epoch. Images and data
    wait are of `train_s`, and known from inside only; `data_wait_share` is of it, 0 to 1. `stall_s` are seconds between
    its batches for which a finding has another cause (`stall_cause`) than the loader: reported as a wait for data, and
    not in it. `outliers` say in what it stands out from its siblings; `first` that its process had just begun,
    `closing` that the mosaic was closed for it, `profiled` that PyTorch's profiler made it longer, `partial` that it
    was cut short: not all its batches were trained, or its validation was broken off.
    """

    run: int
    epoch: int
    attempt: int
    start_t_s: float
    end_t_s: float
    gpu_util_pct: float | None
    memory_peak_mib: float | None
    energy_j: float | None
    gpus: Mapping[int, Mapping[str, Stats]]
    loss: float | None
    lr: float | None
    train_s: float | None = None
    validation_s: float | None = None
    checkpoint_s: float | None = None
    images_per_s: float | None = None
    data_wait_s: float | None = None
    data_wait_share: float | None = None
    longest_wait_s: float | None = None
    outliers: tuple[Outlier, ...] = ()
    source: str = ""
    first: bool = False
    closing: bool = False
    profiled: bool = False
    partial: bool = False
    gpu_utils_pct: Mapping[int, float | None] = field(default_factory=dict)
    warm_up_s: float | None = None
    stall_s: float | None = None
    stall_cause: str = ""
    uncertainty_s: float | None = None

    @property
    def is_special(self) -> bool:
        """Tell whether an epoch of its kind takes more or less time than others: no cause for concern."""
        return self.first or self.closing or self.profiled or self.partial

"""One quantity of a GPU in order of time, as fine as it is known: what charts and the first picture are drawn from."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gpu_report.median import median_of
from gpu_report.model import Run
from gpu_report.ticks_alone import ticks_alone

Floats = NDArray[np.float64]

UTILISATION = "gpu_util_pct"
OF_HOST = "host:"  # before the name of a quantity of the machine: its memory is called as a GPU's is


@dataclass(frozen=True, eq=False)
class QuantitySeries:
    """One quantity of a GPU in order of time, as fine as the driver gave it; samples were taken at `ticks_t_s`."""

    t_s: Floats
    values: Floats
    ticks_t_s: Floats = field(default_factory=lambda: np.empty(0))

    @cached_property
    def tick_s(self) -> float:
        """Return the step of the samples, 1 s of fewer than two."""
        return median_of(np.diff(self.ticks_t_s)) if len(self.ticks_t_s) > 1 else 1.0

    def means(self, edges_s: Floats) -> Floats:
        """Return the mean of what is known from one moment to the next, NaN where nothing is."""
        edges = np.searchsorted(self.t_s, edges_s)
        values = np.append(self.values[: edges[-1]], np.nan)
        known, some = np.isfinite(values), np.diff(edges) > 0
        sums = (np.add.reduceat(each, edges[:-1], dtype=float) for each in (known, np.where(known, values, 0)))
        count, total = (np.where(some, each, 0) for each in sums)
        means: Floats = np.divide(total, count, out=np.full(len(some), np.nan), where=count > 0)
        return means


def gpu_indexes(run: Run) -> list[int]:
    """Return the index of each GPU that is known or has samples, in order."""
    return sorted({*run.sampled_gpus, *(gpu.index for gpu in run.gpus)})


def series_of_each_gpu(run: Run, name: str = UTILISATION) -> dict[int, QuantitySeries]:
    """Return a quantity of each GPU, by its index; one of the machine as that of a single one."""
    if name.startswith(OF_HOST):
        return {0: _read(run.host, name.removeprefix(OF_HOST))} if len(run.host) else {}
    return {gpu: quantity_series(run, gpu, name) for gpu in run.sampled_gpus}


def quantity_series(run: Run, gpu: int, name: str) -> QuantitySeries:
    """Return a quantity of one GPU."""
    return _finest(_read(run.samples_of(gpu), name), _kept(run.ring_of(gpu), name))


def _read(frame: pd.DataFrame, name: str) -> QuantitySeries:
    t_s = frame["t_s"].to_numpy(dtype=float)
    return QuantitySeries(t_s, frame[name].to_numpy(), t_s)


def _kept(ring: pd.DataFrame, name: str) -> QuantitySeries:
    """Return what the driver kept of a quantity, nothing of one that it does not keep."""
    return _read(with_value(ring, name), name) if name in ring.columns else QuantitySeries(np.empty(0), np.empty(0))


def with_value(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return the rows in which a column is known: the frame itself, and no copy, where all are."""
    known = frame[name].notna().to_numpy()
    return frame if known.all() else frame[known]


def _finest(ticks: QuantitySeries, ring: QuantitySeries) -> QuantitySeries:
    """Return the driver's own readings, with the ticks where it kept none, as the timeline does (js/lines.js)."""
    if not len(ring.t_s):
        return ticks
    alone = ticks_alone(ticks.t_s, ring.t_s, ticks.tick_s)
    if not alone.any():
        return QuantitySeries(ring.t_s, ring.values, ticks.t_s)
    t_s = np.concatenate([ring.t_s, ticks.t_s[alone]])
    values = np.concatenate([ring.values, ticks.values[alone]])
    order = np.argsort(t_s, kind="stable")
    return QuantitySeries(t_s[order], values[order], ticks.t_s)

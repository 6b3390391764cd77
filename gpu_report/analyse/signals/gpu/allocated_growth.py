"""GPU memory that a training's tensors take, by torch's own counter: how it grew batch after batch, if it did."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from gpu_report.analyse.signals import thresholds as th
from gpu_report.analyse.timeseries.growth_fit import theil_sen
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.analyse.timeseries.trend import mann_kendall_rise
from gpu_report.model import Progress

LEAST_COUNTS = 8  # in some time, of what tensors had: two in each quarter


@dataclass(frozen=True)
class AllocatedGrowth:
    """What tensors took more with each batch (MiB, median slope), over how many, and what they had in the end."""

    each_mib: float
    batches: int
    last_mib: float

    @property
    def grown_mib(self) -> float:
        """Return what they took more in all."""
        return self.each_mib * self.batches


def allocated_growth(progress: Sequence[Progress]) -> AllocatedGrowth | None:
    """Return how the memory of tensors grew, None where it did not go on growing, or nobody reported it."""
    done, before, points = 0, 0, []
    for each in progress:
        done += each.batches - before if each.batches >= before else each.batches  # a new epoch counts from 0
        before = each.batches
        if each.allocated_mib is not None:
            points.append((float(done), each.allocated_mib))
    if len(points) < 2:
        return None
    kept = np.unique(np.linspace(0, len(points) - 1, th.GROWTH_POINTS_AT_MOST).round().astype(int))
    batches, mib = np.array(points)[kept].T
    grown = mann_kendall_rise(mib.tolist())
    if grown is None or not grown.is_gradual or grown.step is not None:
        return None
    each_mib = theil_sen(batches, mib) if len(np.unique(batches)) == len(batches) else 0.0
    return AllocatedGrowth(each_mib, int(batches[-1] - batches[0]), float(mib[-1])) if each_mib > 0 else None


def tensors_grew_mib(progress: Sequence[Progress], span: Span) -> float | None:
    """Return by how much (MiB) tensors took more in the last quarter of some time than in the first (medians).

    None where too few counts were reported in it.
    """
    known = [each.allocated_mib for each in progress if span[0] <= each.t_s <= span[1]]
    mib = [each for each in known if each is not None]
    quarter = len(mib) // 4
    return median(mib[-quarter:]) - median(mib[:quarter]) if len(mib) >= LEAST_COUNTS else None

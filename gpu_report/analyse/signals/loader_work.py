"""What the loader's workers did while the trainer waited for them: what a setting can do against it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpu_report.analyse.signals import thresholds as th
from gpu_report.analyse.signals.idle_stacks import IdleStacks
from gpu_report.analyse.signals.stack_habits import LEAST_IDLE_S
from gpu_report.analyse.signals.stack_notes import of_worker_alone, reads_image, waits_for_lock
from gpu_report.analyse.timeseries.distinct import distinct


@dataclass(frozen=True)
class LoaderWork:
    """Shares (0 to 1) of the GPU's idle time that workers spent reading images and waiting for a lock.

    Reading is what a cache does away with: reading, decoding and resizing by YOLO's own code.
    """

    reading: float
    in_lock: float

    @property
    def waits_for_lock(self) -> bool:
        """Tell whether the workers wait for each other."""
        return self.in_lock >= th.IN_LOCK_SHARE


def loader_work(processes: Sequence[IdleStacks]) -> LoaderWork | None:
    """Return what the workers among some processes did, None where too little was noted of them."""
    sums = np.zeros(3)
    for each in processes:
        if each.process.is_worker:
            sums += _sums(each)
    total, reading, in_lock = sums.tolist()
    return LoaderWork(reading / total, in_lock / total) if total >= LEAST_IDLE_S else None


def _sums(worker: IdleStacks) -> np.ndarray:
    """Return the idle GPU seconds in which a worker was at work, those in reading and those in a lock."""
    stacks = worker.process.stacks

    def kind(number: int) -> tuple[bool, bool, bool]:
        inner = of_worker_alone(stacks.get(number, ()))
        return bool(inner), reads_image(inner), waits_for_lock(inner)

    kinds, of = distinct(worker.number, kind)
    idle = np.bincount(of, worker.idle_s, minlength=len(kinds))
    return np.array([sum(s for s, each in zip(idle, kinds, strict=True) if each[place]) for place in range(3)])

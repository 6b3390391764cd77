"""Which phase moments lie in, many at once."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.model import Phase

Numbers = npt.NDArray[np.int64]


class PhaseIndex:
    """Which phase a moment lies in, as the place of its name in `names`; the last of these is for none."""

    def __init__(self, phases: Sequence[Phase]) -> None:
        """Take phases in order of time."""
        self.names = (*dict.fromkeys(phase.name for phase in phases), "")
        self._starts = np.array([phase.start_t_s for phase in phases])
        self._ends = np.array([phase.end_t_s for phase in phases])
        self._numbers = np.array([self.names.index(phase.name) for phase in phases], dtype=np.int64)

    def __call__(self, at_s: Floats) -> Numbers:
        """Return the place of the name for each moment (s)."""
        if not len(self._starts):
            return np.zeros(len(at_s), dtype=np.int64)
        which = np.maximum(np.searchsorted(self._starts, at_s, side="right") - 1, 0)
        inside = (at_s >= self._starts[which]) & (at_s < self._ends[which])
        return np.where(inside, self._numbers[which], len(self.names) - 1)

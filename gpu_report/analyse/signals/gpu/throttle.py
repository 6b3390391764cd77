"""How one cause held one GPU's clock down."""

from dataclasses import dataclass

import numpy as np

from gpu_report.analyse.signals import thresholds as th
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.model import Severity


@dataclass(frozen=True, eq=False)
class Throttle:
    """How one cause held one GPU's clock down; arrays are by row of the GPU's samples table.

    `throttled_s` is the work at a lower clock that a row stands for, 0 where there is none; `lost` the share of the
    typical clock that it lacked, 0 to 1; `hard` marks what the board itself did; `brake` says that mostly an outside
    power signal did it. `spans` are the stretches, longest first. `typical_mhz` is the clock of work of which nothing
    was held down, the card's highest where there was none (`unseen` where it never ran at that); `alike` says that work
    at that clock was as heavy. `share` is of all work, 0 to 1. `by_design` says that the card is at the power limit
    that it came with, in nearly all of its
    work: that is what it can do. `lost_s` is the time lost at most: what was busy, by the clock that it lacked (work
    that waits for memory loses less). `applied` says that application clocks, which somebody sets, lowered it.
    `own_limit` says that it was the power limit that the card came with, by the driver: nobody had lowered it.
    `heat_onset_c` is the temperature (°C) from which on alone the clock fell, where that says that it was heat.
    `other_limit_w` is what it drew at a power limit far below the one that was recorded: that had been lowered.
    """

    gpu: int
    cause: str
    throttled_s: Floats
    lost: Floats
    hard: Bools
    brake: bool
    spans: tuple[Span, ...]
    typical_mhz: float
    alike: bool
    share: float
    lost_s: float
    by_design: bool = False
    own_limit: bool = False
    unseen: bool = False
    applied: bool = False
    unsure: bool = False
    heat_onset_c: float | None = None
    other_limit_w: float | None = None

    @property
    def cost_pct(self) -> float:
        """Return the share of the clock that was lost while it was held down, in %."""
        return 100 * float(np.average(self.lost, weights=self.throttled_s))

    @property
    def severity(self) -> Severity:
        """Return how bad it was (thresholds.py); what the board itself halves is worst."""
        hard_s = self.throttled_s[self.hard]
        of_all_work_pct = self.share * self.cost_pct
        hardly = self.own_limit and of_all_work_pct < th.OWN_LIMIT_COST_PCT
        if self.by_design or self.unsure or hardly:
            return "info"
        halved = float((hard_s * self.lost[self.hard]).sum()) >= th.HALVED_PCT / 100 * float(hard_s.sum())
        if float(hard_s.sum()) >= th.THROTTLED_AT_LEAST_S and halved:
            return "critical"
        return "warning" if self.cost_pct >= (th.THROTTLED_COST_PCT if self.alike else th.LOADED_COST_PCT) else "info"

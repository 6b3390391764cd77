"""Which programs of others used the CPU in an interval, and how much of it is typical."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpu_report.analyse.signals import thresholds as th
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.analyse.timeseries.intervals import Span, as_array, length_s
from gpu_report.analyse.timeseries.sums import sums_by_key
from gpu_report.model import OtherProgram

SMALLEST = 1e-9  # a share of time: a look that only touches an interval has none of it
Program = tuple[str, str]  # its name, and its user's


@dataclass(frozen=True)
class ProgramUse:
    """What a program of others used in the part of an interval in which somebody looked (mean, % of a core).

    `there_pct` is the same while looks name it: of a program that ended between two of them the rest is not known.
    `shared_pct` is what processes used of it that may run on a core of the trainer; where nobody could tell, all of it.
    `most` is the look in which it used most.
    """

    cpu_pct: float
    there_pct: float
    shared_pct: float
    most: OtherProgram

    @property
    def program(self) -> Program:
        """Return by what it is known again in another interval."""
        return self.most.name, self.most.user


def programs_in(looks: Sequence[OtherProgram], span: Span) -> list[ProgramUse]:
    """Return the programs of the looks that touch an interval; none where these are of too little of it (LOOKED_SHARE).

    A program that a look does not name used hardly anything then.
    """
    looked = interval_cover(look.span for look in looks)
    looked_s = looked.seconds_in(span)
    if not looked_s or looked_s < th.LOOKED_SHARE * (span[1] - span[0]):
        return []
    of_program: dict[Program, list[OtherProgram]] = {}
    for look in looks:
        of_program.setdefault((look.name, look.user), []).append(look)
    return [_use(own, span, looked_s) for own in of_program.values()]


def typical_programs(looks: Sequence[OtherProgram], steady: Sequence[Span]) -> Mapping[Program, float]:
    """Return the mean CPU (% of a core) of each program in spans; nobody looks while others use hardly any."""
    steady_s = length_s(steady)
    if not looks or not steady_s:
        return {}
    shared_s = interval_cover(steady).seconds_in_each(as_array([look.span for look in looks]))
    cpu_pct = shared_s / steady_s * np.array([look.cpu_pct for look in looks])
    return sums_by_key(((look.name, look.user), mean) for look, mean in zip(looks, cpu_pct.tolist(), strict=True))


def _use(looks: Sequence[OtherProgram], span: Span, looked_s: float) -> ProgramUse:
    shares = [max(min(look.end_t_s, span[1]) - max(look.start_t_s, span[0]), 0.0) / looked_s for look in looks]
    cpu = [share * look.cpu_pct for share, look in zip(shares, looks, strict=True)]
    shared = [used * (1.0 if look.shared is None else look.shared) for used, look in zip(cpu, looks, strict=True)]
    most = max(zip(cpu, looks, strict=True), key=lambda each: each[0])[1]
    return ProgramUse(sum(cpu), sum(cpu) / max(sum(shares), SMALLEST), sum(shared), most)

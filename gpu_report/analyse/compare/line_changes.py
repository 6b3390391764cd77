"""Which lines of code got slower: GPUs are idle for longer in an epoch while a process is in them.

No gate is on it: it says where to look.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import NamedTuple

from gpu_report.analyse.compare import thresholds as th
from gpu_report.analyse.compare.line_matching import match_lines
from gpu_report.analyse.compare.line_times import LineTime, RunLines, noted_run
from gpu_report.analyse.compare.significance import Basis, SampleValues, band_of
from gpu_report.analyse.compare.slower_host import HostSlowdown
from gpu_report.analyse.signals.code.stack_kinds import WORKERS
from gpu_report.analyse.timeseries.bootstrap import change_interval
from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.model import LineChange

BASES: tuple[Basis, ...] = ("epochs", "windows")
MOST_LINES = 20  # as many as the table of one run has


class LineComparison(NamedTuple):
    """The lines that changed; None where that is unknown, with the reason in a sentence where somebody may wonder."""

    lines: tuple[LineChange, ...] | None
    why_not: tuple[str, ...] = ()


def compare_lines(
    baselines: Sequence[SampleValues], run: SampleValues, cores: HostSlowdown | None, *, is_slower: bool
) -> LineComparison:
    """Return the lines whose idle GPU time an epoch changed by more than noise: slower ones first, the worst on top.

    Baselines are newest first; those without line notes have no say. Where a run `is_slower`, somebody wonders why.
    """
    before, after = [noted for side in baselines if (noted := noted_run(side)) is not None], noted_run(run)
    if not before and after is None and not is_slower:
        return LineComparison(None)
    if not any(side.training.gpus for side in (*baselines, run)):
        return _unknown("they are compared by idle GPU time, and no GPU was read.")
    if not before or after is None:
        return _unknown(_not_noted(baselines, before=bool(before), after=after is not None))
    if any(each.images is None for each in (*before, after)):
        unsized = "the run" if after.images is None else "the baseline" if len(before) == 1 else "a baseline"
        return _unknown(f"the number of images of an epoch is unknown in {unsized}.")
    basis = next((basis for basis in BASES if all(each.has(basis) for each in (*before, after))), None)
    if basis is None:
        return _unknown(f"stack samples cover fewer than {th.COMPARED_AT_LEAST} epochs.")
    return LineComparison(_changes([each.lines(basis) for each in before], after.lines(basis), cores))


def _unknown(why: str) -> LineComparison:
    return LineComparison(None, (f"Which lines of code got slower is unknown: {why}",))


def _changes(before: Sequence[RunLines], after: RunLines, cores: HostSlowdown | None) -> tuple[LineChange, ...]:
    old = reduce(_joined, before)
    pairs = (_Pair(a, b, old.epoch_gpu_s) for a, b in match_lines(old, after))
    changed = [pair.as_change() for pair in pairs if pair.is_large(cores) and pair.is_certain()]
    return tuple(sorted(changed, key=_order)[:MOST_LINES])


def _order(line: LineChange) -> tuple[bool, float]:
    return line.change_gpu_s < 0, -abs(line.change_gpu_s)


def _not_noted(baselines: Sequence[SampleValues], *, before: bool, after: bool) -> str:
    """Return that lines are unknown, of which side none were noted, and how they are."""
    of_baselines = "the baseline has" if len(baselines) == 1 else "the baselines have"
    which = of_baselines if after else "the run has" if before else "the runs have"
    return f"{which} no stack samples. To record them, leave out `--no-stacks`: `gpu-report record -- COMMAND`."


def _joined(newer: RunLines, older: RunLines) -> RunLines:
    """Return the lines of several baselines as those of one, with their places in the newest that has them."""
    lines = tuple(
        replace(a if a.was_there else b, idle_s=(*a.idle_s, *b.idle_s), spent_s=(*a.spent_s, *b.spent_s))
        for a, b in match_lines(newer, older)
    )
    version = newer.ultralytics if newer.ultralytics == older.ultralytics else None
    return RunLines(lines, (*newer.counts, *older.counts), newer.epoch_gpu_s, version)


@dataclass(frozen=True, eq=False)
class _Pair:
    """A line in the baselines and in the run. `epoch_gpu_s` is an epoch of the newest baseline, in GPU seconds."""

    old: LineTime
    new: LineTime
    epoch_gpu_s: float

    @property
    def change_s(self) -> float:
        return self.new.mean_s - self.old.mean_s

    def is_large(self, cores: HostSlowdown | None) -> bool:
        """Tell whether it is more than readings leave open and the machine explains, and the line's own delay."""
        least_s = th.LEAST_LINE_SHARE * self.epoch_gpu_s + self._of_machine_s(cores)
        spent_s = self.new.mean_spent_s - self.old.mean_spent_s
        own = spent_s * math.copysign(1, self.change_s) >= th.LINE_SPENT_SHARE * abs(self.change_s)
        return own and abs(self.change_s) >= least_s

    def _of_machine_s(self, cores: HostSlowdown | None) -> float:
        """Return how much longer (or less long) GPUs may be idle because the cores were slower (or faster).

        A line then takes longer by their factor, and no GPU need be busy meanwhile. A wait for workers is as long as
        they fall behind the GPU: in all by no more than an epoch takes longer.
        """
        if cores is None or (cores.most > 0) != (self.change_s > 0):
            return 0.0
        return abs(cores.most) * (self.epoch_gpu_s if self.new.key.waits else self.old.mean_spent_s)

    def is_certain(self) -> bool:
        """Tell whether it is more than chance, both of the idle time and the line's own, and than baselines differ by.

        A line says where to look and fails no gate: epochs count as independent here.
        """
        each = [float(values.mean()) for values in self.old.idle_s]
        low, high = band_of(each, math.inf) or (min(each), max(each))
        if low <= self.new.mean_s <= high:
            return False
        pairs = ((self.old.idle_s, self.new.idle_s), (self.old.spent_s, self.new.spent_s))
        return all(change_interval(old, new, _means).is_certain_of_independent for old, (new,) in pairs)

    def as_change(self) -> LineChange:
        new = self.new if self.new.was_there else self.old
        return LineChange(
            process="workers" if new.key.process == WORKERS else "main",
            function=new.key.function,
            file=new.key.file,
            baseline_line=self.old.key.line if self.old.was_there else None,
            run_line=self.new.key.line if self.new.was_there else None,
            baseline_idle_gpu_s=self.old.mean_s,
            run_idle_gpu_s=self.new.mean_s,
            waits_for="data" if new.key.waits else None,
        )


def _means(values: Floats) -> Floats:
    means: Floats = values.mean(axis=-1)
    return means

"""RunSample too short to be compared: whether windows of it stand in for epochs, else why not and what would help."""

from __future__ import annotations

from collections.abc import Sequence

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.compare.metrics import EPOCH_TIME
from gpu_report.analyse.compare.significance import SampleValues
from gpu_report.wording import counted

TOO_LITTLE = "Too little data"


def is_too_little(obstacle: str) -> bool:
    """Tell whether an obstacle is that training was too short, and not that the runs cannot be compared."""
    return obstacle.startswith(TOO_LITTLE)


def has_windows(sides: Sequence[SampleValues]) -> bool:
    """Tell whether every side's training can be cut into enough windows."""
    return all(_windows(side) >= th.COMPARED_AT_LEAST for side in sides)


def too_little(sides: Sequence[SampleValues]) -> str:
    """Return that ordinary epochs are too few, why windows of them are no help, and how many epochs would be enough."""
    *baselines, run = [len(side.training.epochs) for side in sides]
    few = f"{counted(run, 'ordinary epoch')} in the run, {min(baselines)} in the baseline"
    least = th.COMPARED_AT_LEAST
    return (
        f"{TOO_LITTLE}: {few}; {least} of each are needed, or {least} windows of {th.WINDOW_S:g} s of their training, "
        f"{_why_no_windows(sides)}. Train at least {_enough(sides)} epochs"
    )


def _why_no_windows(sides: Sequence[SampleValues]) -> str:
    """Return which side cannot be cut into windows, or into too few; the run where that is true of both."""
    named = [*((side, "the baseline") for side in sides[:-1]), (sides[-1], "the run")]
    untold = [name for side, name in named if side.training.throughput is None]
    if untold:
        return f"which {untold[-1]} cannot be cut into, for nobody told from inside how far its epochs were"
    fewest, name = min((_windows(side), name) for side, name in named)
    return f"of which {name} has {fewest or 'none'}"


def _enough(sides: Sequence[SampleValues]) -> int:
    """Return how many epochs hold enough ordinary ones: the first of a process and one without mosaic are none."""
    special = max(1 + bool(side.training.closing) for side in sides)
    return th.COMPARED_AT_LEAST + special


def _windows(side: SampleValues) -> int:
    return len(side.known(EPOCH_TIME, "windows"))

"""Which epochs stand out from their siblings, and in what."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.context import Context
from gpu_report.analyse.phases import mosaic_closes
from gpu_report.analyse.track import Floats
from gpu_report.model import EpochSummary
from gpu_report.vocabulary import FIRST_EPOCH, MOSAIC_CLOSED


@dataclass(frozen=True)
class _Measure:
    """A length of an epoch in seconds (None: unknown), and how it is told."""

    words: str
    of: Callable[[EpochSummary], float | None]


MEASURES = (
    _Measure("training took", lambda epoch: epoch.train_s),
    _Measure("validation took", lambda epoch: epoch.validation_s),
    _Measure("the checkpoint took", lambda epoch: epoch.checkpoint_s),
    _Measure("it waited for data", lambda epoch: epoch.data_wait_s),
)


def marked(epochs: Sequence[EpochSummary], context: Context) -> tuple[EpochSummary, ...]:
    """Return the epochs, each with what of it is longer than its siblings' (thresholds.ODD_*); shorter is no fault."""
    reasons: list[list[str]] = [[] for _ in epochs]
    for run in {epoch.run for epoch in epochs}:
        mine = [number for number, epoch in enumerate(epochs) if epoch.run == run]
        for measure in MEASURES:
            known = [number for number in mine if measure.of(epochs[number]) is not None]
            values = np.array([measure.of(epochs[number]) for number in known], dtype=float)
            for place in _odd(values):
                usual = float(np.median(values))
                reasons[known[place]].append(f"{measure.words} {values[place]:.1f} s, usually {usual:.1f} s")
    notes = _notes(epochs, context)
    return tuple(
        replace(epoch, odd=(*why, *((note,) if note else ()))) if why else epoch
        for epoch, why, note in zip(epochs, reasons, notes, strict=True)
    )


def _odd(values: Floats) -> list[int]:
    """Return the places of the values that are far above the rest."""
    if len(values) < th.ODD_SIBLINGS:
        return []
    usual = float(np.median(values))
    sigma = th.MAD_TO_SIGMA * float(np.median(np.abs(values - usual)))
    line = usual + max(th.ODD_SHARE * usual, th.ODD_AT_LEAST_S, th.ODD_Z * sigma)
    odd: list[int] = np.flatnonzero(values > line).tolist()
    return odd


def _notes(epochs: Sequence[EpochSummary], context: Context) -> list[str]:
    """Return what is known to make an epoch longer: it is the first of its process, or its mosaic was closed."""
    firsts = {(b.row.run, b.row.start_t_s) for b in context.boundaries.all if b.first}
    closes = {yolo.number: mosaic_closes(yolo.args) for yolo in context.run.yolo_runs}
    notes = []
    for epoch in epochs:
        if (epoch.run, epoch.start_t_s) in firsts:
            notes.append(FIRST_EPOCH)
        elif closes.get(epoch.run) == epoch.epoch:
            notes.append(MOSAIC_CLOSED)
        else:
            notes.append("")
    return notes

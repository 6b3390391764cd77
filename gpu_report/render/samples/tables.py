"""What the page's script is given as packed tables: phases, epochs and processes, of which a long run has thousands."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from gpu_report.model import Analysis, EpochSummary, Phase
from gpu_report.render.formatting import clean, known
from gpu_report.render.quantity_labels import EPOCH_DIGITS, EPOCH_QUANTITIES, EPOCH_READINGS
from gpu_report.render.samples.column_codec import MILLISECOND_DECIMALS, Scale
from gpu_report.render.samples.columns import Blob, pack_table

Json = dict[str, Any]
WHOLE = Scale(0)
SECONDS = Scale(MILLISECOND_DECIMALS)
_ALWAYS = {quantity.name for quantity in EPOCH_QUANTITIES}  # the script finds these by their place in a row
SMALL = Scale(12, EPOCH_DIGITS)  # losses and learning rates: the last of these digits down to 1e-12


def tables(analysis: Analysis, blob: Blob) -> Json:
    """Return where the tables lie in `blob`, and the words that their numbers stand for."""
    names = _Words()
    phases = blob.put(pack_table(_phases(analysis.phases, names)))
    epochs = blob.put(pack_table(_epochs(analysis.epochs)))
    processes = blob.put(pack_table(_processes(analysis.run.processes, names)))
    return {"words": names.all, "tables": {"phases": phases, "epochs": epochs, "processes": processes}}


class _Words:
    """Words as numbers: their places in a list."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    @property
    def all(self) -> list[str]:
        """Return the words in their places, safe to be shown."""
        return [clean(word) for word in self._places]

    def of(self, words: Iterable[str]) -> list[float | None]:
        """Return the places of words, None for empty ones."""
        return [self._places.setdefault(word, len(self._places)) if word else None for word in words]


def _phases(phases: Sequence[Phase], names: _Words) -> dict[str, tuple[Iterable[float | None], Scale]]:
    starts, lengths = _stretches([phase.start_t_s for phase in phases], [phase.end_t_s for phase in phases])
    return {
        "name": (names.of(phase.name for phase in phases), WHOLE),
        "epoch": ([phase.epoch for phase in phases], WHOLE),
        "start_s": (starts, SECONDS),
        "length_s": (lengths, SECONDS),
        "source": (names.of(phase.source for phase in phases), WHOLE),
        "detail": (names.of(phase.detail for phase in phases), WHOLE),
    }


def _epochs(epochs: Sequence[EpochSummary]) -> dict[str, tuple[Iterable[float | None], Scale]]:
    starts, lengths = _stretches([epoch.start_t_s for epoch in epochs], [epoch.end_t_s for epoch in epochs])
    scales = {q.name: SMALL for q in EPOCH_QUANTITIES} | {q.name: Scale(q.decimals) for q in EPOCH_READINGS}
    values = {name: ([known(getattr(epoch, name)) for epoch in epochs], scale) for name, scale in scales.items()}
    return {
        "run": ([epoch.run for epoch in epochs], WHOLE),
        "epoch": ([epoch.epoch for epoch in epochs], WHOLE),
        "start_s": (starts, SECONDS),
        "length_s": (lengths, SECONDS),
        **{name: column for name, column in values.items() if name in _ALWAYS or any(v is not None for v in column[0])},
    }


def _stretches(starts_s: Sequence[float], ends_s: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return starts and lengths, of which the ends come out again as they are at 1 ms."""
    starts, ends = (np.round(np.array(times, dtype=float), MILLISECOND_DECIMALS) for times in (starts_s, ends_s))
    return starts.tolist(), (ends - starts).tolist()


def _processes(frame: pd.DataFrame, names: _Words) -> dict[str, tuple[Iterable[float | None], Scale]]:
    rows = frame.sort_values("t_s", kind="stable")
    return {
        "t_s": (rows["t_s"].tolist(), SECONDS),
        "gpu": (rows["gpu"].tolist(), WHOLE),
        "pid": (rows["pid"].tolist(), WHOLE),
        "name": (names.of(rows["name"].where(rows["name"].notna(), "").tolist()), WHOLE),
        "memory_used_mib": (rows["memory_used_mib"].tolist(), WHOLE),
        "change": (names.of(rows["change"].tolist()), WHOLE),
    }

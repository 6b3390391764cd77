"""Each epoch in numbers: how long its parts took, what its GPUs did meanwhile, and what of it is odd."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpu_report.analyse.boundaries import Boundary
from gpu_report.analyse.context import Context
from gpu_report.analyse.energy import Energy
from gpu_report.analyse.epoch_parts import length_of, parts_of
from gpu_report.analyse.odd import marked
from gpu_report.analyse.stats import utilisation, weighted_stats
from gpu_report.analyse.track import Floats, Track
from gpu_report.model import EpochSummary, InsideEpoch, Stats

PER_EPOCH = ("memory_used_mib", "power_w", "temperature_c", "sm_clock_mhz")
PARTS = ("train", "validation", "checkpoint")


@dataclass(frozen=True, eq=False)
class _Table:
    """One GPU's rows as plain arrays, since a long run has thousands of epochs to cut out of them."""

    track: Track
    t_s: Floats
    columns: Mapping[str, Floats]
    energy: Energy


def summarise_epochs(context: Context) -> tuple[EpochSummary, ...]:
    """Return one summary an epoch that came to its end, in order.

    `attempt` is as YOLO told it, else it counts repeats of one epoch in one YOLO run. Utilisation is the mean over the
    GPUs that were used, energy the sum over all.
    """
    tables = [_table(track, curve) for track, curve in zip(context.tracks, context.energies, strict=True)]
    seen: Counter[tuple[int, int]] = Counter()
    summaries = []
    for boundary in context.boundaries.all:
        seen[boundary.row.run, boundary.row.epoch] += 1
        told = context.inside.told.get((boundary.row.run, boundary.row.start_t_s)) if boundary.told else None
        attempt = told.attempt if told else seen[boundary.row.run, boundary.row.epoch]
        summaries.append(_summarise(context, boundary, told, attempt, tables))
    return marked(summaries, context)


def loss_of(metrics: Mapping[str, float]) -> float | None:
    """Return the sum of the training losses of a row of results.csv, None where it has none."""
    parts = [value for name, value in metrics.items() if name.startswith("train/") and name.endswith("loss")]
    return sum(parts) if parts else None


def _table(track: Track, curve: Energy) -> _Table:
    columns = {name: track.rows[name].to_numpy(dtype=float) for name in PER_EPOCH}
    return _Table(track, track.rows["t_s"].to_numpy(dtype=float), columns, curve)


def _summarise(
    context: Context, boundary: Boundary, told: InsideEpoch | None, attempt: int, tables: Sequence[_Table]
) -> EpochSummary:
    row, start, end = boundary.row, boundary.row.start_t_s, boundary.end_t_s
    gpus = {table.track.gpu: _quantities(table, start, end) for table in tables}
    used = context.activity.used_gpus
    util = [q["gpu_util_pct"].mean for gpu, q in gpus.items() if "gpu_util_pct" in q and gpu in used]
    memory = [q["memory_used_mib"].max for q in gpus.values() if "memory_used_mib" in q]
    joules = [j for table in tables if (j := table.energy.between(start, end)) is not None]
    parts = parts_of(context.phases, boundary)
    lengths = {name: length_of(parts, name) for name in PARTS}
    loss, rate = loss_of(row.metrics), row.metrics.get("lr/pg0")
    return EpochSummary(
        run=row.run,
        epoch=row.epoch,
        attempt=attempt,
        start_t_s=start,
        end_t_s=end,
        gpu_util_pct=float(np.mean(util)) if util else None,
        memory_peak_mib=max(memory, default=None),
        energy_j=sum(joules) if joules else None,
        gpus=gpus,
        loss=told.loss if told and loss is None else loss,
        lr=told.lr if told and rate is None else rate,
        train_s=lengths["train"],
        validation_s=lengths["validation"],
        checkpoint_s=lengths["checkpoint"],
        images_per_s=_images_per_s(told),
        data_wait_s=told.data_wait_s if told else None,
        data_wait_share=_wait_share(told),
        longest_wait_s=told.longest_wait_s if told else None,
        source=next((phase.source for phase in parts if phase.name == "train"), ""),
        first=boundary.first,
    )


def _images_per_s(told: InsideEpoch | None) -> float | None:
    """Return how many images a second the training part took, None where their number is not known."""
    if told is None or told.images is None or told.end_t_s is None or told.end_t_s <= told.start_t_s:
        return None
    return told.images / (told.end_t_s - told.start_t_s)


def _wait_share(told: InsideEpoch | None) -> float | None:
    """Return how much of an epoch's training was waiting for data; the first of a run has that of startup in it."""
    if told is None or told.end_t_s is None or told.end_t_s <= told.start_t_s:
        return None
    return min(told.data_wait_s / (told.end_t_s - told.start_t_s), 1.0)


def _quantities(table: _Table, start_s: float, end_s: float) -> dict[str, Stats]:
    first, last = np.searchsorted(table.t_s, [start_s, end_s])
    part = slice(int(first), int(last))
    hold = table.track.row_hold_s[part]
    found = {name: weighted_stats(column[part], hold) for name, column in table.columns.items()}
    stats = {name: value for name, value in found.items() if value is not None}
    return {**stats, **utilisation(table.track, start_s, end_s)}

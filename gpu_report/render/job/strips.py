"""The job's timeline as strips of colour: a row a GPU, folded by node. A strip is a few SVG paths, one a class."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gpu_report.gpu_words import gpu_words
from gpu_report.model import Job, JobNode, NodeRun
from gpu_report.render.formatting import elapsed
from gpu_report.render.job.rows import absence
from gpu_report.render.job.view import NodeStrips, StripPath, StripRow, TimelineView

Floats = npt.NDArray[np.float64]

MOST_COLUMNS = 600  # as wide as a strip is drawn, in points
LEVELS = 8  # classes of utilisation, each of 12.5 points
MOST_EPOCHS = 200  # marks: more are a grey band
OPEN_UP_TO_GPUS = 16  # GPUs: these all fit on a screen
TICKS = 5
NICE_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)


def timeline(job: Job, late: str | None) -> TimelineView:
    """Return the rows of all nodes on the job's clock; `late` is the name of the node that the others wait for."""
    finest_s = max((run.step_s for _, run in job.recorded), default=1.0)
    columns = int(min(MOST_COLUMNS, max(job.duration_s / finest_s, 1)))
    step_s = job.duration_s / columns
    places = tuple(round(start / step_s, 2) for start in job.epoch_starts_s)
    return TimelineView(
        columns=columns,
        step_s=step_s,
        start_wall_s=job.start_wall_s,
        nodes=tuple(_node(number, node, columns, step_s, late) for number, node in enumerate(job.nodes)),
        ticks=_ticks(job.duration_s),
        epochs=places if len(places) <= MOST_EPOCHS else (),
        levels=tuple(f"{round(100 * level / LEVELS)} %" for level in range(LEVELS)),
        open=job.gpu_count <= OPEN_UP_TO_GPUS,
    )


def _node(number: int, node: JobNode, columns: int, step_s: float, late: str | None) -> NodeStrips:
    run = node.run
    if run is None:
        return NodeStrips(f"node-{number}", StripRow(node.name, absence(node), ()), (), is_late=False, is_missing=True)
    rows = [rebinned(gpu.util_pct, run.step_s, node.shift_s, columns, step_s) for gpu in run.gpus]
    used = [row for row, gpu in zip(rows, run.gpus, strict=True) if gpu.used] or rows
    several = run.gpus if len(run.gpus) > 1 else ()  # a single GPU is its node's row
    return NodeStrips(
        id=f"node-{number}",
        mean=StripRow(node.name, run.host or "", paths(_mean(used, columns))),
        gpus=tuple(
            StripRow(_gpu_name(run, gpu.index), "" if gpu.used else "not used", paths(row))
            for gpu, row in zip(several, rows, strict=False)
        ),
        is_late=node.name == late,
        is_missing=False,
    )


def _gpu_name(run: NodeRun, index: int) -> str:
    rank = next((each.rank for each in run.ranks if each.gpu == index), None)
    return gpu_words(index) + (f", rank {rank}" if rank is not None else "")


def rebinned(util_pct: npt.NDArray[np.float32], from_s: float, shift_s: float, columns: int, step_s: float) -> Floats:
    """Return a node's utilisation in the job's columns: of each the mean of what lies in it, NaN where none does.

    Where the node's own steps are longer than a column, a step fills all the columns that it lies in.
    """
    known = np.flatnonzero(np.isfinite(util_pct))
    first = np.floor((known * from_s + shift_s) / step_s).astype(np.int64)
    last = np.ceil(((known + 1) * from_s + shift_s) / step_s).astype(np.int64) - 1
    total, count = np.zeros(columns), np.zeros(columns)
    for offset in range(int((last - first).max(initial=0)) + 1):
        at = first + offset
        mine = (at <= np.maximum(last, first)) & (at >= 0) & (at < columns)
        total += np.bincount(at[mine], util_pct[known[mine]].astype(float), minlength=columns)
        count += np.bincount(at[mine], minlength=columns)
    means: Floats = np.divide(total, count, out=np.full(columns, np.nan), where=count > 0)
    return means


def paths(values: Floats) -> tuple[StripPath, ...]:
    """Return utilisation (%) as a path for each class; where nothing was read there is none."""
    level = np.where(np.isfinite(values), np.clip(np.nan_to_num(values) / 100 * LEVELS, 0, LEVELS - 1), -1).astype(int)
    edges = np.flatnonzero(np.diff(level, prepend=-2, append=-2))
    pieces: dict[int, list[str]] = {}
    for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        if level[start] >= 0:
            pieces.setdefault(int(level[start]), []).append(f"M{start} 0h{end - start}")
    return tuple(StripPath(number, "".join(pieces[number])) for number in sorted(pieces))


def _mean(rows: Sequence[Floats], columns: int) -> Floats:
    """Return the mean of rows where any was read."""
    table = np.array(rows).reshape(-1, columns)
    known = np.isfinite(table)
    count = known.sum(axis=0)
    total = np.where(known, table, 0.0).sum(axis=0)
    means: Floats = np.divide(total, count, out=np.full(columns, np.nan), where=count > 0)
    return means


def _ticks(duration_s: float) -> tuple[tuple[float, str], ...]:
    every = next((nice for nice in NICE_S if duration_s / nice <= TICKS), NICE_S[-1])
    return tuple((100 * at / duration_s, elapsed(at)) for at in np.arange(0, duration_s, every).tolist())

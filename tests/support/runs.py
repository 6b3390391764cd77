"""Runs made of plain numbers, for tests of the analysis."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from gpu_report import schema
from gpu_report.model import EpochRow, Gpu, KernelEvent, KernelLog, RecordedEvent, Recording, Run, YoloRun

START = 1_800_000_000.0
PROCESSES = ["t_s", *(column.name for column in schema.PROCESSES_COLUMNS[len(schema.TIME_COLUMNS) :])]


def readings(*parts: tuple[float, float], interval_s: float = 1.0) -> list[float]:
    """Return utilisation as (percent, seconds) parts, one reading an interval."""
    return [percent for percent, seconds in parts for _ in range(round(seconds / interval_s))]


def on_played_gpu(run: Run) -> Run:
    """Return a recording whose training ran on the CPU, beside a GPU that was played, as if it had run on that GPU."""
    on_gpu = tuple(replace(each, settings={**each.settings, "device": "cuda:0"}) for each in run.inside)
    return replace(run, inside=on_gpu)


def make_run(
    util: Sequence[Sequence[float]] | Sequence[float],
    interval_s: float = 1.0,
    rows: Sequence[tuple[int, float]] = (),
    kernel: Sequence[KernelEvent] = (),
    quantities: Mapping[str, Sequence[float]] | None = None,
    events: Sequence[RecordedEvent] = (),
    epochs_asked: int | None = None,
    duration_s: float | None = None,
    ring: pd.DataFrame | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Run:
    """Return a run with one series of utilisation a GPU, whose leading zeros are startup.

    `rows` are (epoch, when its row appeared), `quantities` other columns of each GPU, `facts` fields of
    each `Gpu`.
    """
    series = [util] if not util or not isinstance(util[0], (list, tuple)) else util
    frames = []
    for gpu, values in enumerate(series):
        frame = pd.DataFrame({c.name: np.nan for c in schema.GPU_QUANTITIES}, index=range(len(values)))
        frame["gpu_util_pct"] = np.asarray(values, dtype=float)
        for name, column in (quantities or {}).items():
            frame[name] = np.asarray(column, dtype=float)
        frame.insert(0, "t_s", np.arange(len(values)) * interval_s)
        frame.insert(1, "gpu", gpu)
        frames.append(frame)
    samples = pd.concat(frames, ignore_index=True)
    starts = [0.0, *(at for _, at in rows)][: len(rows)]
    epoch_rows = tuple(
        EpochRow(1, 1, epoch, at, start, {"train/box_loss": 1.0, "train/cls_loss": 2.0, "lr/pg0": 0.01})
        for (epoch, at), start in zip(rows, starts, strict=True)
    )
    args = {"epochs": epochs_asked} if epochs_asked else {}
    return Run(
        path="run",
        start_wall_s=START,
        duration_s=duration_s if duration_s is not None else float(samples["t_s"].max()) + interval_s,
        recording=Recording(interval_s=interval_s),
        gpus=tuple(
            Gpu(index, **{"name": "NVIDIA H200", "memory_total_mib": 143771, **(facts or {})})
            for index in range(len(series))
        ),
        samples=samples,
        ring=ring
        if ring is not None
        else pd.DataFrame({"t_s": [], "gpu": [], **{c.name: [] for c in schema.RING_QUANTITIES}}),
        host=pd.DataFrame({"t_s": [], **{c.name: [] for c in schema.HOST_QUANTITIES}}),
        processes=pd.DataFrame(columns=PROCESSES),
        yolo_runs=(YoloRun(1, None, args, "recorded", None),) if rows else (),
        epoch_rows=epoch_rows,
        kernel=KernelLog("read", "kmsg", events=tuple(kernel)),
        events=tuple(events),
    )

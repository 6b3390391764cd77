"""Analyses for tests of comparisons: sample runs as they are, and with epochs of other lengths."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gpu_report.model import Analysis, EpochSummary, Finding, Stack
from support.samples import SAMPLES, analysis_of
from support.stacks import LOGS, TRAINS, process

__all__ = ["SAMPLES", "analysed"]
analysed = analysis_of


def with_times(analysis: Analysis, times: Sequence[float], waits: Sequence[float] | None = None) -> Analysis:
    """Return an analysis whose epochs after the first trained for other times; they keep the place of real ones."""
    first, *rest = analysis.epochs
    waits = waits or [0.0] * len(times)
    made = [
        _epoch(rest[at % len(rest)], number, times[at], waits[at]) for at, number in enumerate(range(2, len(times) + 2))
    ]
    yolo = tuple(replace(y, args={**y.args, "epochs": len(times) + 1}) for y in analysis.run.yolo_runs)
    return replace(analysis, run=replace(analysis.run, yolo_runs=yolo), epochs=(first, *made))


def _epoch(like: EpochSummary, number: int, train_s: float, wait_s: float) -> EpochSummary:
    images = (like.images_per_s or 0.0) * (like.train_s or 0.0)
    return replace(like, epoch=number, train_s=train_s, data_wait_s=wait_s, images_per_s=images / train_s)


def slower(analysis: Analysis, factor: float) -> Analysis:
    """Return an analysis whose epochs all trained for so many times as long."""
    return with_times(analysis, [factor * (epoch.train_s or 0.0) for epoch in analysis.epochs[1:]])


def with_settings(analysis: Analysis, **settings: object) -> Analysis:
    """Return an analysis of which YOLO told other settings, and asked for them where they are arguments."""
    inside = tuple(replace(p, settings={**p.settings, **settings}) for p in analysis.run.inside)
    yolo = tuple(
        replace(y, args={**y.args, **{k: v for k, v in settings.items() if k in y.args}})
        for y in analysis.run.yolo_runs
    )
    return replace(analysis, run=replace(analysis.run, inside=inside, yolo_runs=yolo))


def on_gpu(analysis: Analysis, name: str) -> Analysis:
    """Return an analysis of the same run on another model of GPU."""
    run = replace(analysis.run, gpus=tuple(replace(gpu, name=name) for gpu in analysis.run.gpus))
    gpus = tuple(replace(summary, gpu=replace(summary.gpu, name=name)) for summary in analysis.gpus)
    return replace(analysis, run=run, gpus=gpus)


def with_findings(analysis: Analysis, *findings: Finding) -> Analysis:
    """Return an analysis with these findings and no others."""
    return replace(analysis, findings=findings)


def with_notes(analysis: Analysis, spent_s: float, stack: Stack = LOGS, *, idle: bool = True) -> Analysis:
    """Return an analysis whose main process was in a stack for the first seconds of each epoch, with its GPUs `idle`.

    In all other time they are busy.
    """
    spans = [(epoch.start_t_s, epoch.start_t_s + spent_s) for epoch in analysis.epochs]
    edges = [0.0, *(edge for span in spans for edge in span), analysis.run.duration_s]
    trains = [(start, end, TRAINS) for start, end in zip(edges[::2], edges[1::2], strict=True) if end > start]
    notes = process(*sorted([*trains, *((*span, stack) for span in spans if spent_s)]))
    ring = analysis.run.ring
    within = np.any([ring["t_s"].between(start, end, inclusive="right") for start, end in spans], axis=0)
    util = 100.0 * ~(within & idle)
    return replace(analysis, run=replace(analysis.run, stacks=(notes,), ring=ring.assign(gpu_util_pct=util)))

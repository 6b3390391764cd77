"""Trainings made of the lengths of their epochs and of their waits for data, and what rules find in them."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from gpu_report import schema
from gpu_report.analyse import analyse
from gpu_report.model import Finding, InsideEpoch, InsideRun, Phase, RecordedEvent, Run, YoloRun
from support.runs import PROCESSES, make_run

VALIDATION_S = 2.0


def trained(
    lengths: Sequence[float],
    waits: Sequence[float] | None = None,
    *,
    args: Mapping[str, Any] | None = None,
    util: float = 90.0,
    busy: Sequence[tuple[float, float, float]] = (),
    events: Sequence[RecordedEvent] = (),
    processes: Sequence[Sequence[Any]] = (),
    quantities: Mapping[str, Any] | None = None,
    host: Mapping[str, Any] | None = None,
) -> Run:
    """Return a run that told epochs of these training lengths and data waits; `busy` are (start, end, utilisation)."""
    phases, epochs, t_s = [Phase("startup", None, 0.0, 10.0, "inside")], [], 10.0
    for number, (train_s, wait_s) in enumerate(zip(lengths, waits or [0.0] * len(lengths), strict=True), 1):
        phases.append(Phase("train", number, t_s, t_s + train_s, "inside"))
        phases.append(Phase("validation", number, t_s + train_s, t_s + train_s + VALIDATION_S, "inside"))
        epochs.append(InsideEpoch(number, 1, t_s, t_s + train_s, 1000, 10, wait_s, 0.0, wait_s))
        t_s += train_s + VALIDATION_S
    seconds = np.arange(round(t_s) + 5)
    readings = np.where((seconds >= 10) & (seconds < t_s), util, 0.0)
    for start, end, value in busy:
        readings[(seconds >= start) & (seconds < end)] = value
    columns = {
        name: [value] * len(seconds) if np.isscalar(value) else value(seconds)
        for name, value in (quantities or {}).items()
    }
    run = make_run(readings.tolist(), quantities=columns, events=events)
    table = pd.DataFrame({"t_s": seconds.astype(float), **{c.name: np.nan for c in schema.HOST_QUANTITIES}})
    return dataclasses.replace(
        run,
        inside=(InsideRun(1, 0, 41, "train", {}, tuple(phases), tuple(epochs), "finished"),),
        yolo_runs=(YoloRun(1, None, args or {}, "recorded", None),),
        processes=pd.DataFrame([dict(zip(PROCESSES, row, strict=True)) for row in processes], columns=PROCESSES),
        host=table.assign(**(host or {})),
        recording=dataclasses.replace(run.recording, cores=10),
    )


def start_of(number: int, lengths: Sequence[float]) -> float:
    """Return when an epoch begins."""
    return 10.0 + sum(lengths[: number - 1]) + VALIDATION_S * (number - 1)


def findings(run: Run, rule: str) -> list[Finding]:
    """Return what a rule finds in a run."""
    return [finding for finding in analyse(run).findings if finding.rule == rule]


def texts(finding: Finding) -> dict[str, float | str | None]:
    """Return the numbers of a finding by what they are."""
    return {evidence.text: evidence.value for evidence in finding.evidence}

"""`job` of run.json: as it is known when the recording begins, and as it ends."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpu_report.record.job.environment import job_of, own_rank
from gpu_report.record.job.kernel_clock import SOURCE, read_clock
from gpu_report.record.job.ranks import reported_job


def job_at_start(env: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return schema.RUN_JOB."""
    clock, rank = read_clock(), own_rank(env)
    source = None if clock is None else SOURCE
    return {
        **job_of(env),
        "ranks": [] if rank is None else [rank],
        "clock": {"source": source, "start": clock, "end": None},
    }


def job_at_end(folder: Path, env: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return what the end of a recording adds: the ranks that trained, and the clock as it is now.

    What the launcher told the recorder goes before what a rank was told, but for the number of restarts.
    """
    known, reported = job_of(env), reported_job(folder)
    merged = {**reported, **{name: value for name, value in known.items() if value is not None}}
    return {**known, **merged, "restarts": reported.get("restarts", known["restarts"]), "end": read_clock()}

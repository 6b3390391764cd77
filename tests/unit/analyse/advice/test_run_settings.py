"""What a training had to work with: the cores that it may use, which are not always those that the machine shows."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from support.runs import make_run, readings

from gpu_report.analyse.advice.run_settings import run_settings_of
from gpu_report.analyse.build_context import build_context
from gpu_report.model import InsideRun, JobPart, Options, Phase

SECONDS = 120


def settings(context):
    (training,) = context.trainings
    return run_settings_of(context, training)


def on_machine(cpu_pct=None, **recording):
    run = make_run(readings((0, 10), (90, 110)), rows=[(1, 60), (2, 115)])
    host = pd.DataFrame({"t_s": np.arange(float(SECONDS)), "main_cpu_pct": 100.0, "workers_cpu_pct": 200.0})
    host = host if cpu_pct is None else host.assign(cpu_pct=cpu_pct)
    run = dataclasses.replace(run, host=host, recording=dataclasses.replace(run.recording, **recording))
    return settings(build_context(run, Options()))


@pytest.mark.parametrize(
    ("cpu_pct", "recording", "cores", "free"),
    [
        (None, {"cores": 16}, 16, 14),
        (None, {"cores": 16, "cores_online": 16, "cpu_limit": 4.0}, 4, 2),
        (None, {"cores": 8, "cores_online": 64}, 8, 6),
        (50.0, {"cores": 64, "cores_online": 64}, 64, 33),  # 29 of them are others'
        (50.0, {"cores": 8, "cores_online": 64}, 8, 6),  # who have 56 to themselves
        (100.0, {"cores": 8, "cores_online": 16}, 8, 1),
        (None, {"cpu_limit": 0.5}, 1, None),  # nobody knows what the machine has
        (None, {}, None, None),
    ],
)
def test_the_cores_that_a_loader_may_have(cpu_pct, recording, cores, free):
    seen = on_machine(cpu_pct, **recording)
    assert (seen.cores, seen.cores_free) == (cores, free)


def test_main_processes_of_other_ranks_are_no_other_processes():
    """Four of them, with 110 % of a core each, and their workers with 400 % take all of the CPU that is in use."""
    run = make_run([readings((0, 10), (90, 110))] * 4, rows=[(1, 60), (2, 115)])
    host = pd.DataFrame({"t_s": np.arange(float(SECONDS)), "main_cpu_pct": 110.0, "workers_cpu_pct": 400.0})
    yolo = dataclasses.replace(run.yolo_runs[0], args={"device": "0,1,2,3"})
    recording = dataclasses.replace(run.recording, cores=32, cores_online=32)
    run = dataclasses.replace(run, host=host.assign(cpu_pct=840 / 32), recording=recording, yolo_runs=(yolo,))
    seen = settings(build_context(run, Options()))
    assert (seen.ranks, seen.cores_free) == (4, 32 // 4 - 2)


def test_ranks_on_other_nodes_take_no_cores_of_this_one():
    """Four of 16 ranks ran here, on 32 cores."""
    run = make_run([readings((0, 10), (90, 110))] * 4, rows=[(1, 60), (2, 115)])
    host = pd.DataFrame({"t_s": np.arange(float(SECONDS)), "main_cpu_pct": 110.0, "workers_cpu_pct": 400.0})
    phases = (Phase("startup", None, 0.0, 10.0, ""), Phase("train", 1, 10.0, 110.0, "inside"))
    told = {"world_size": 16, "workers": 4}
    ranks = tuple(InsideRun(1, rank, 40 + rank, "train", told, phases, ()) for rank in range(4))
    recording = dataclasses.replace(run.recording, cores=32, cores_online=32)
    job = JobPart(nodes=4, world_size=16, node_rank=0)
    run = dataclasses.replace(run, host=host, recording=recording, inside=ranks, job=job)
    context = build_context(run, Options())
    (training,) = context.trainings
    assert (training.ranks, training.ranks_here, training.workers) == (16, 4, 16)
    assert settings(context).cores_free == 32 // 4 - 2


@pytest.mark.parametrize(
    ("cache", "cached"),
    [("ram", True), ("disk", True), (True, True), (["ram"], True), (None, False), (False, False), ("", False)],
)
def test_what_counts_as_a_cache(cache, cached):
    run = make_run(readings((0, 10), (90, 110)), rows=[(1, 60), (2, 115)])
    yolo = dataclasses.replace(run.yolo_runs[0], args={"cache": cache})
    assert settings(build_context(dataclasses.replace(run, yolo_runs=(yolo,)), Options())).cached is cached

"""Nodes of a job, made up: two of one GPU and one rank each, 60 s long, five epochs of 8 s from second 10 on."""

from dataclasses import replace

import numpy as np

from gpu_report.model import (
    CodeLocation,
    InsideEpoch,
    JobPart,
    NodeGpu,
    NodeRun,
    RankTraining,
    Sentence,
)

START_WALL_S = 1_795_637_000.0
EPOCHS, EPOCH_S, FIRST_S = 5, 8.0, 10.0
SLOW = CodeLocation("workers", "read_slowly", "/home/user/slow_set.py", 9, 0.97)


def made_epochs(wait_s=0.1, shift_s=0.0, count=EPOCHS, jitter_s=0.0):
    """Return epochs of a rank; by `jitter_s` more or less each second one is late at its barriers."""
    found = []
    for number in range(count):
        start_s = FIRST_S + shift_s + number * EPOCH_S + (jitter_s if number % 2 else 0.0)
        found.append(InsideEpoch(number + 1, 1, start_s, start_s + EPOCH_S - 2, 512, 32, wait_s, 0.0, 0.0))
    return tuple(found)


def made_rank(number, gpu=0, start=0, epochs=None, **fields):
    """Return a rank that trained on a GPU."""
    given = made_epochs() if epochs is None else epochs
    return RankTraining(number, 100 + number, gpu, start, on_gpu=True, workers=4, epochs=given, **fields)


def made_gpu(index=0, name="NVIDIA H200", memory_mib=143771.0, util=95.0):
    """Return a GPU with a reading a second."""
    return NodeGpu(index, f"GPU-{index}", name, memory_mib, used=True, util_pct=np.full(60, util, dtype=np.float32))


def made_part(number, nodes=2, world=2, job="night-3", **fields):
    """Return what a node knows of the job."""
    return JobPart(job, "torchrun", number, nodes, world, 0, **fields)


def made_node(number, *, ranks=None, gpus=None, **fields):
    """Return node `number` of two."""
    node = NodeRun(
        path=f"/data/node-{number}",
        host=f"host-{number}",
        start_wall_s=START_WALL_S,
        duration_s=60.0,
        step_s=1.0,
        job=made_part(number),
        gpus=(made_gpu(),) if gpus is None else gpus,
        ranks=(made_rank(number),) if ranks is None else ranks,
        verdict="Nothing to fix.",
        busy_pct=95.0,
        findings=(),
        ledger=(),
        problems=(),
    )
    return replace(node, **fields)


def slow_pair():
    """Return two nodes of which rank 1 waits 2.5 s of each epoch's 6 s for its data."""
    late = made_rank(1, epochs=made_epochs(wait_s=2.5), loading=(SLOW,))
    return [made_node(0), made_node(1, ranks=(late,))]


def hostile_job(text):
    """Return nodes with hostile text in all that comes from outside."""
    line = CodeLocation("workers", text, f"/{text}.py", 9, 0.97)
    late = made_rank(1, epochs=made_epochs(wait_s=2.5), loading=(line,))
    fields = {"host": text, "path": text, "verdict": text, "problems": (text,), "job": made_part(1, job=text)}
    return [
        made_node(0, job=made_part(0, job=text)),
        made_node(1, ranks=(late,), gpus=(made_gpu(name=text), made_gpu(1)), **fields),
    ]


def words(job):
    """Return a job's verdict as one text."""
    return " ".join(said.text for said in job.verdict if isinstance(said, Sentence))

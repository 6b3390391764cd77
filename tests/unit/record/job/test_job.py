"""The job of several nodes as a recording describes it."""

import json

import pytest

from gpu_report import schema
from gpu_report.record.clocks import Clocks
from gpu_report.record.job.describe import job_at_end, job_at_start
from gpu_report.record.job.environment import job_of, own_rank
from gpu_report.record.job.kernel_clock import read_clock
from gpu_report.record.job.ranks import reported_job
from gpu_report.record.lifecycle.run_json import at_start, job_to_the_end
from gpu_report.record.options import RecordOptions

SLURM = {"SLURM_JOB_ID": "4711", "SLURM_NODEID": "1", "SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_USER": "someone"}
NOTHING = dict.fromkeys(("id", "scheduler", "node_rank", "nodes", "world_size", "restarts"))


@pytest.mark.parametrize(
    ("env", "known"),
    [
        ({}, {}),
        (SLURM, {"id": "4711", "scheduler": "slurm", "node_rank": 1, "nodes": 2}),
        (
            {"TORCHELASTIC_RUN_ID": "night-3", "GROUP_RANK": "0", "GROUP_WORLD_SIZE": "2", "WORLD_SIZE": "16"},
            {"id": "night-3", "scheduler": "torchrun", "node_rank": 0, "nodes": 2, "world_size": 16},
        ),
        ({"TORCHELASTIC_RUN_ID": "none", "GROUP_RANK": "1"}, {"scheduler": "torchrun", "node_rank": 1}),
        (
            {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "PET_NODE_RANK": "3", "PET_NNODES": "1:4", "PET_RDZV_ID": "j-1"},
            {"id": "j-1", "scheduler": "kubernetes", "node_rank": 3},
        ),
        ({"SLURM_JOB_ID": "$(x)", "SLURM_NODEID": "-1", "WORLD_SIZE": "9" * 30, "GROUP_RANK": "two"}, {}),
    ],
)
def test_a_launcher_names_the_job_in_its_variables(env, known):
    assert job_of(env) == NOTHING | known


def test_a_recorder_that_torchrun_starts_is_a_rank():
    assert own_rank({"RANK": "3", "LOCAL_RANK": "1"}) == {"rank": 3, "local_rank": 1, "gpu_uuid": None, "pid": None}
    assert own_rank({"RANK": "-1"}) is own_rank({}) is None


def test_the_kernel_says_how_well_its_clock_is_set():
    clock = read_clock()
    assert set(clock) == {column.name for column in schema.JOB_CLOCK}
    assert (clock["max_error_s"] is None) == (not clock["synchronised"])


def test_a_job_is_described_by_exactly_the_fields_of_the_format():
    described = at_start(RecordOptions(), Clocks(1000.0, 1.0, 1.0), {})["job"]
    assert set(described) == {column.name for column in schema.RUN_JOB}
    assert "someone" not in str(job_at_start(SLURM))


def reported(folder, pid, *lines):
    inside = folder / schema.INSIDE_DIR
    inside.mkdir(exist_ok=True)
    (inside / f"{pid}.jsonl").write_text(
        "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
    )


def rank(number, pid, wall_s=10.0, **fields):
    said = {"kind": "run", "task": "train", "rank": number, "local_rank": 0, "pid": pid, "wall_s": wall_s}
    return {**said, "node_rank": 1, "nodes": 2, "ranks": 2, "restarts": 0, **fields}


def test_the_ranks_are_those_that_reported(tmp_path):
    reported(tmp_path, 7, '{"kind": "run", cut', rank(1, 7), {"kind": "settings", "gpu_uuid": "GPU-b"})
    reported(tmp_path, 8, rank(1, 8, wall_s=20.0, restarts=1))
    reported(tmp_path, 9, {"kind": "run", "task": "train", "rank": 0, "pid": 9})  # of no torchrun
    job = job_at_end(tmp_path, {})
    assert job["ranks"] == [{"rank": 1, "local_rank": 0, "gpu_uuid": None, "pid": 8}]
    assert (job["node_rank"], job["nodes"], job["world_size"], job["restarts"]) == (1, 2, 2, 1)
    assert reported_job(tmp_path / "elsewhere") == {}


def test_what_the_launcher_told_the_recorder_goes_before_what_a_rank_was_told(tmp_path):
    reported(tmp_path, 7, rank(1, 7, node_rank=0, run_id="of-torchrun"))
    job = job_at_end(tmp_path, SLURM)
    assert (job["id"], job["node_rank"], job["world_size"]) == ("4711", 1, 2)


def test_the_end_keeps_what_the_beginning_knew(tmp_path):
    begun = job_at_start({"RANK": "1", "LOCAL_RANK": "0"})
    ended = job_to_the_end(begun, tmp_path)
    assert ended["ranks"] == begun["ranks"]
    assert ended["clock"]["start"] == begun["clock"]["start"]
    assert set(ended) == {column.name for column in schema.RUN_JOB}
    assert ended["clock"]["end"] is not None

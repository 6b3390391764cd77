"""`job` of run.json as it is loaded, hostile values included."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.samples import run_of

from gpu_report.analyse import analyse
from gpu_report.analyse.job import analyse_job, node_run
from gpu_report.load import load_run
from gpu_report.load.job import load_job
from gpu_report.model import JobPart, Rank

NODES = Path(__file__).parents[2] / "data" / "two_nodes"


def test_the_job_of_a_recording_is_loaded():
    clock = {"synchronised": True, "offset_s": -1e-6, "max_error_s": 0.05, "estimated_error_s": 0.001}
    said = {"id": "4711", "scheduler": "slurm", "node_rank": 1, "nodes": 2, "world_size": 4, "restarts": 0}
    ranks = [{"rank": 2, "local_rank": 0, "gpu_uuid": "GPU-a", "pid": 7}, {"rank": "x"}, 3]
    job = load_job({"job": {**said, "ranks": ranks, "clock": {"start": clock, "end": clock}}}, ())
    assert (job.id, job.node_rank, job.world_size, job.max_error_s) == ("4711", 1, 4, 0.05)
    assert job.ranks == (Rank(2, 0, "GPU-a", 7),)
    assert job.is_of_several_nodes


@pytest.mark.parametrize(
    "info",
    [
        {},
        {"job": 3},
        {"job": {"id": 5, "scheduler": "rm -rf", "node_rank": -1, "nodes": True, "ranks": "all", "clock": [1]}},
        {"job": {"world_size": 1e300, "clock": {"start": {"max_error_s": -1}}, "ranks": [{"rank": 10**9}]}},
    ],
)
def test_what_is_broken_in_it_is_not_known(info):
    job = load_job(info, ())
    assert (job.id, job.scheduler, job.node_rank, job.nodes, job.ranks, job.max_error_s) == (
        *(None,) * 4,
        (),
        None,
    )


def test_a_training_on_one_machine_is_of_one_node():
    assert not JobPart(nodes=1, world_size=8, ranks=(Rank(0),)).is_of_several_nodes
    assert not JobPart().is_of_several_nodes
    assert JobPart(world_size=8, ranks=(Rank(0),)).is_of_several_nodes


def test_two_gpus_recorded_as_two_nodes_name_the_slow_loader_also_when_a_clock_is_off():
    runs = [node_run(analyse(run_of(name))) for name in ("two-nodes-0", "two-nodes-1")]
    shifted = replace(runs[1], start_wall_s=runs[1].start_wall_s + 0.4)
    for second, ahead_s in ((runs[1], 0.0), (shifted, 0.4)):
        job = analyse_job([runs[0], second])
        found = next(finding for finding in job.findings if finding.rule == "straggler")
        assert (found.node, found.rank, found.where[0].function) == ("node 1", 1, "read_slowly")
        # an epoch of the healthy pair trained for 1.7 s, not 9.2
        assert found.share_of_training == pytest.approx(0.82, abs=0.03)
        assert job.nodes[1].clock.ahead_s == pytest.approx(ahead_s, abs=0.01)
        assert job.nodes[1].clock.residual_s < 0.01


def test_the_straggler_of_two_recorded_nodes_is_named():
    job = analyse_job([node_run(analyse(load_run(NODES / name))) for name in ("node-0", "node-1")])
    found = next(finding for finding in job.findings if finding.rule == "straggler")
    assert (found.node, found.rank, found.cause) == ("node 1", 1, "input")
    assert (found.where[0].function, found.where[0].line) == ("read_slowly", 9)
    assert job.nodes[1].clock.residual_s < 0.05
    assert json.loads((NODES / "node-1" / "run.json").read_text())["job"]["node_rank"] == 1


def test_of_two_healthy_nodes_nothing_is_found():
    runs = [node_run(analyse(run_of(f"two-nodes-healthy-{number}"))) for number in (0, 1)]
    job = analyse_job(runs)
    assert job.findings == ()
    assert job.verdict[0].text == ("No rank holds up the others. The GPUs of 2 nodes were busy 46 % of training time.")
    assert (job.aligned, job.nodes[1].clock.residual_s < 0.01) == (True, True)
    assert [row.last_share for row in job.ranks] == [0.0, 0.0]

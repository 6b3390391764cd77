"""What is said about the nodes of one job: their clocks, the rank that all wait for, and what is missing or odd."""

from dataclasses import replace

import numpy as np
import pytest
from support.made_job import (
    SLOW,
    START_WALL_S,
    made_epochs,
    made_gpu,
    made_node,
    made_part,
    made_rank,
    slow_pair,
    words,
)

from gpu_report.analyse.job import analyse_job
from gpu_report.errors import InputError
from gpu_report.model import (
    Cause,
    ClockState,
    Collective,
    Finding,
    Nccl,
    NcclProcess,
    Rank,
    RankTrace,
    TracedGroup,
    UnreadNode,
)

KEPT = ClockState(synchronised=True, offset_s=0.0, max_error_s=0.02, estimated_error_s=0.001)


def rules(job):
    return [finding.rule for finding in job.findings]


def only(job, rule):
    (finding,) = [finding for finding in job.findings if finding.rule == rule]
    return finding


def test_two_healthy_nodes_need_nothing():
    job = analyse_job([made_node(1), made_node(0)])
    assert [node.name for node in job.nodes] == ["node 0", "node 1"]
    assert words(job) == "No rank holds up the others. The GPUs of 2 nodes were busy 95 % of training time."
    assert (job.findings, job.aligned, job.gpu_count, len(job.epoch_starts_s)) == ((), True, 2, 5)


def test_the_rank_that_waits_for_data_is_named_with_its_node_and_line():
    job = analyse_job(slow_pair())
    assert words(job).startswith("Speed up data loading of rank 1 on node 1: look at `read_slowly`")
    assert "takes about 3.6 s instead of 6 s" in words(job).replace("6.0 s", "6 s")
    found = only(job, "straggler")
    assert (found.node, found.rank, found.cause, found.where) == ("node 1", 1, "input", (SLOW,))
    assert found.lost_gpu_s == pytest.approx(2.4 * 4)  # of four epochs after the first, of the one other rank
    assert [row.last_share for row in job.ranks] == [0.0, 1.0]


def test_a_rank_that_is_slow_by_chance_is_no_straggler():
    waits = [(0.1, 2.5)[number % 2] for number in range(5)]
    mixed = [
        tuple(replace(epoch, data_wait_s=wait) for epoch, wait in zip(made_epochs(), each, strict=True))
        for each in (waits, [*waits[::-1][1:], 2.5])
    ]
    job = analyse_job([made_node(number, ranks=(made_rank(number, epochs=mixed[number]),)) for number in (0, 1)])
    assert "straggler" not in rules(job)


def test_all_ranks_of_a_node_with_a_slow_disk_are_meant():
    def four(number, wait_s):
        ranks = tuple(made_rank(4 * number + k, gpu=k, epochs=made_epochs(wait_s=wait_s)) for k in range(4))
        return made_node(number, ranks=ranks, gpus=tuple(map(made_gpu, range(4))), job=made_part(number, world=8))

    job = analyse_job([four(0, 0.1), four(1, 2.0)])
    assert words(job).startswith("Speed up data loading of all ranks on node 1")
    assert only(job, "straggler").lost_gpu_s == pytest.approx(1.9 * 4 * 7)


def test_a_gpu_with_pauses_holds_up_gpus_that_read_as_busy():
    late = made_node(1, gpus=(made_gpu(util=60.0),), busy_pct=60.0)
    job = analyse_job([made_node(0), late])
    found = only(job, "straggler")
    assert (found.cause, found.rank) == ("main-process", 1)
    assert "60 % busy" in found.summary
    assert "95 % busy" in found.summary


@pytest.mark.parametrize("ahead_s", [0.4, -7200.0])
def test_a_clock_that_is_off_is_corrected_by_the_barriers(ahead_s):
    job = analyse_job([made_node(0), made_node(1, start_wall_s=START_WALL_S + ahead_s)])
    clock = job.nodes[1].clock
    assert clock.ahead_s == pytest.approx(ahead_s)
    assert clock.residual_s == pytest.approx(0.0, abs=1e-6)
    assert (job.aligned, job.nodes[1].shift_s) == (True, pytest.approx(0.0, abs=1e-6))
    assert only(job, "clocks-apart").severity == ("warning" if ahead_s < -60 else "info")


def test_later_starts_are_no_difference_of_clocks():
    late = made_node(1, start_wall_s=START_WALL_S + 5, ranks=(made_rank(1, epochs=made_epochs(shift_s=-5.0)),))
    job = analyse_job([made_node(0), late])
    assert job.nodes[1].clock.ahead_s == pytest.approx(0.0, abs=1e-6)
    assert job.nodes[1].shift_s == pytest.approx(5.0)
    assert job.findings == ()


def stretch(number, cause, start_s=20.0):
    """Return a finding of a node: a drop."""
    return Finding(
        f"drop-{number}", "drop", "warning", 0, start_s, start_s + 6, f"Drop {number}", cause=Cause(cause, 0.9, cause)
    )


def stalled(jitter_s=0.0):
    """Return two nodes of which the second stalls for its loader and the first waits; its barriers vary."""
    ranks = (made_rank(1, epochs=made_epochs(jitter_s=jitter_s)),)
    return [
        made_node(0, findings=(stretch(1, "waiting-for-peer"),)),
        made_node(1, ranks=ranks, findings=(stretch(2, "input-stalled"),)),
    ]


def test_a_stall_that_other_nodes_felt_is_of_the_node_with_the_cause():
    found = only(analyse_job(stalled()), "stall-from-node")
    assert (found.node, found.cause, found.start_t_s) == ("node 1", "input-stalled", 20.0)
    assert found.summary == "node 0 waited 6 s for node 1: Drop 2"


def test_no_cause_crosses_nodes_whose_clocks_fit_to_more_than_a_second():
    job = analyse_job(stalled(jitter_s=2.5))
    assert (job.aligned, "stall-from-node" in rules(job)) == (False, False)
    assert "fits the training's barriers only to" in only(job, "clocks-unknown").summary


def test_without_epochs_clocks_are_as_good_as_their_kernels_say():
    bare = [made_node(number, ranks=()) for number in (0, 1)]
    job = analyse_job(bare)
    assert not job.aligned
    assert "nobody knows how well the clocks were set" in job.why_not_aligned
    kept = [replace(node, job=replace(node.job, clock_start=KEPT, clock_end=KEPT)) for node in bare]
    assert analyse_job(kept).aligned
    apart = [kept[0], replace(kept[1], start_wall_s=START_WALL_S + 9000)]
    assert "not of the same time" in analyse_job(apart).why_not_aligned


def test_a_missing_node_is_named():
    three = [replace(made_node(number), job=made_part(number, nodes=3, world=3)) for number in (0, 2)]
    three[1] = replace(three[1], ranks=(made_rank(2),))
    job = analyse_job(three)
    assert [(node.name, node.is_missing) for node in job.nodes] == [
        ("node 0", False),
        ("node 2", False),
        ("node 1", True),
    ]
    assert "1 node of 3 is missing: node 1" in only(job, "missing-node").summary


def test_a_node_that_cannot_be_read_is_not_called_missing():
    three = [replace(made_node(0), job=made_part(0, nodes=3, world=3))]
    job = analyse_job(three, [UnreadNode("/b", None, "/b is broken"), UnreadNode("/c", 2, "/c is broken")])
    assert [(node.name, node.unread, node.is_missing) for node in job.nodes[1:]] == [
        ("node 2", "/c is broken", False),
        ("node 1", "/b is broken", False),
    ]
    assert only(job, "missing-node").summary.startswith("2 nodes of 3 could not be read: node 2, node 1.")
    assert "missing" not in words(job)


def test_one_rank_alone_is_neither_the_slowest_nor_not():
    job = analyse_job([made_node(0)])
    assert words(job).startswith("Which rank is the slowest is unknown: only one, on node 0, is in this report.")
    assert [row.last_share for row in job.ranks] == [None]
    of_three = [replace(made_node(number), job=made_part(number, nodes=3, world=3)) for number in (0, 1)]
    assert words(analyse_job(of_three)).startswith("Of the ranks in this report none holds up the others.")


def test_a_rank_of_which_nothing_was_recorded_is_named():
    parts = [made_part(number, world=3, ranks=(Rank(number),)) for number in (0, 1)]
    job = analyse_job([replace(made_node(number), job=part) for number, part in enumerate(parts)])
    assert "Nothing was recorded of rank 2" in only(job, "missing-node").summary


def test_an_elastic_restart_is_one_training_in_two_starts():
    def restarted(number, wait_s):
        first = made_rank(number, epochs=made_epochs(wait_s, count=2))
        again = made_rank(number, start=1, epochs=made_epochs(wait_s, shift_s=18.0, count=3))
        return made_node(number, ranks=(first, again))

    job = analyse_job([restarted(0, 0.1), restarted(1, 2.5)])
    assert "started 2 times" in only(job, "elastic-restart").summary
    assert only(job, "straggler").rank == 1
    assert job.ranks[0].epochs == 3  # without the first of each start
    assert job.nodes[1].clock.residual_s == pytest.approx(0.0, abs=1e-6)


def test_nodes_with_one_host_name_are_distinguished_by_their_rank():
    job = analyse_job([made_node(0, host="trainer"), made_node(1, host="trainer")])
    assert rules(job) == ["same-host"]
    assert len(job.recorded) == 2


def test_unequal_gpus_are_named():
    job = analyse_job([made_node(0), made_node(1, gpus=(made_gpu(name="NVIDIA L4"),))])
    assert "node 0 has NVIDIA H200; node 1 has NVIDIA L4" in only(job, "unequal-gpus").summary
    job = analyse_job([made_node(0), made_node(1, gpus=(made_gpu(memory_mib=97871.0),))])
    assert "from 96 to 140 GiB" in only(job, "unequal-gpus").summary


def test_runs_of_two_jobs_are_refused():
    with pytest.raises(InputError, match=r"node-0 is of job night-3, /data/node-1 is of job other: render each job"):
        analyse_job([made_node(0), made_node(1, job=made_part(1, job="other"))])


def test_runs_that_nothing_connects_are_refused():
    alone = [made_node(number, job=made_part(None, nodes=None, world=None, job=None)) for number in (0, 1)]
    assert len(analyse_job(alone).recorded) == 2  # of one time
    with pytest.raises(InputError, match="cover different times, and neither says that it is a node of a job"):
        analyse_job([alone[0], replace(alone[1], start_wall_s=START_WALL_S + 9000)])


def test_two_trainings_of_one_name_are_refused():
    slower = [(epoch, 3.0 * epoch.epoch) for epoch in made_epochs()]
    moved = [replace(epoch, start_t_s=epoch.start_t_s + s, end_t_s=epoch.end_t_s + s) for epoch, s in slower]
    other = made_rank(1, epochs=tuple(moved))
    with pytest.raises(InputError, match="their epochs do not fit together: they are of different trainings"):
        analyse_job([made_node(0), made_node(1, ranks=(other,), start_wall_s=START_WALL_S + 9000)])


def test_a_copy_of_a_node_and_an_earlier_attempt_are_left_out():
    copy = replace(made_node(1), path="/data/copy")
    earlier = replace(made_node(0), path="/data/earlier", start_wall_s=START_WALL_S - 900)
    job = analyse_job([made_node(0), made_node(1), copy, earlier])
    assert len(job.nodes) == 2
    assert sorted(job.notes) == [
        "/data/copy has the same ranks as /data/node-1: it is left out",
        "/data/earlier is an earlier attempt of the node in /data/node-0: it is left out",
    ]


def test_what_a_node_could_not_read_is_kept_as_a_note():
    unread = UnreadNode("/x", None, "/x cannot be read")
    job = analyse_job([made_node(0, problems=("host.csv is broken",)), made_node(1)], [unread])
    assert job.notes == ("/x cannot be read", "node 0: host.csv is broken")


def test_missing_readings_are_no_idle_gpu():
    silent = made_gpu()
    job = analyse_job([made_node(0), made_node(1, gpus=(replace(silent, util_pct=np.full(60, np.nan)),))])
    assert job.ranks[1].busy_pct is None
    assert "straggler" not in rules(job)


def held_trace(rank, calls, completed):
    """Return the trace of a rank of two that called so many collectives, a second apart."""
    last = tuple(Collective(n, "all_reduce", 40.0 + n, n <= completed) for n in range(1, calls + 1))
    return RankTrace(rank, (TracedGroup("0", (0, 1), calls, last),))


def test_a_rank_that_is_missing_from_a_collective_is_found_across_nodes():
    pair = [
        made_node(0, nccl=Nccl(traces=(held_trace(0, 3, 2),))),
        made_node(1, nccl=Nccl(traces=(held_trace(1, 2, 2),))),
    ]
    job = analyse_job(pair)
    (finding,) = [each for each in job.findings if each.rule == "missing-rank"]
    assert finding.summary == "Rank 1 had not called `all_reduce` 3, in which rank 0 waited"
    assert (finding.rank, finding.severity, finding.start_t_s) == (1, "critical", 43.0)
    assert finding.summary in job.verdict[-1].text
    assert not [each for each in analyse_job(pair[:1]).findings if each.rule == "missing-rank"]


@pytest.mark.parametrize(
    ("nodes", "transport", "settings", "advised"),
    [
        (2, "NET/Socket", (("NCCL_IB_DISABLE", "1"),), True),
        (2, "NET/Socket", (("NCCL_IB_DISABLE", "0"),), False),
        (2, "NET/Socket", (), False),
        (2, "NET/IB/GDRDMA", (("NCCL_IB_DISABLE", "1"),), None),
        (1, "NET/Socket", (), None),
        (None, "NET/Socket", (), None),
    ],
)
def test_tcp_between_nodes_is_a_note_with_advice_only_where_a_variable_asks_for_it(nodes, transport, settings, advised):
    process = NcclProcess(1, "h", 0, 2, nodes, transports=(transport,), adapters=("eth0",), settings=settings)
    job = analyse_job([made_node(0, nccl=Nccl((process,))), made_node(1)])
    found = [each for each in job.findings if each.rule == "sockets"]
    assert [(each.severity, bool(each.advice)) for each in found] == ([] if advised is None else [("info", advised)])
    if found:
        assert found[0].summary == "Ranks of different nodes exchange gradients over TCP sockets by eth0"

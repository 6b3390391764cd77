"""A rank that is missing from a collective, and warnings of NCCL's."""

from dataclasses import replace

from support.runs import make_run, readings

from gpu_report.analyse.build_context import build_context
from gpu_report.analyse.rules.nccl import missing_ranks, nccl_warnings
from gpu_report.model import (
    Collective,
    Frame,
    InsideEpoch,
    InsideRun,
    Nccl,
    NcclProcess,
    NcclWarning,
    Options,
    RankTrace,
    Recording,
    TracedGroup,
)

STACK = (Frame("/site-packages/torch/distributed/distributed_c10d.py", 3068, "all_reduce"), Frame("/t.py", 10, "step"))


def trace(rank, calls, completed=None, ranks=(0, 1), name="all_reduce", stack=STACK):
    """Return the trace of a rank that called so many collectives a second apart, all but the last completed."""
    done = calls - 1 if completed is None else completed
    last = tuple(Collective(n, name, float(n), n <= done, stack) for n in range(1, calls + 1))
    return RankTrace(rank, (TracedGroup("0", ranks, calls, last),))


def found(*traces, inside=(), exit_code=1):
    run = make_run([readings((0, 10), (90, 50)), readings((0, 10), (90, 50))])
    run = replace(run, nccl=Nccl(traces=traces), inside=inside, recording=Recording(interval_s=1, exit_code=exit_code))
    return missing_ranks(build_context(run, Options()))


def test_the_rank_that_did_not_call_is_named_with_the_line_in_which_the_others_wait():
    (finding,) = found(trace(0, 13), trace(1, 12, completed=12))
    assert finding.summary == "Rank 1 had not called `all_reduce` 13, in which rank 0 waited"
    assert (finding.severity, finding.start_t_s) == ("critical", 13.0)
    assert [(line.function, line.line) for line in finding.where] == [("step", 10)]
    assert "`step` (t.py:10), its last collective" in finding.advice[0].text


def test_traces_without_stacks_name_no_line():
    (finding,) = found(trace(0, 13, stack=()), trace(1, 12, completed=12, stack=()))
    assert finding.where == ()


def test_ranks_without_a_trace_are_said_to_be_unknown():
    (finding,) = found(trace(0, 13, ranks=(0, 1, 2)), trace(1, 12, completed=12, ranks=(0, 1, 2)))
    assert finding.summary.endswith(". There is no trace of rank 2")


def test_ranks_that_call_different_collectives_are_told_apart():
    (finding,) = found(trace(0, 13), trace(1, 13, name="broadcast"))
    assert finding.summary == (
        "Ranks called different collectives as number 13: rank 0 `all_reduce`, rank 1 `broadcast`"
    )


def test_nothing_is_said_where_all_called_it_or_one_trace_is_all_there_is():
    assert found(trace(0, 13), trace(1, 13)) == []
    assert found(trace(0, 13)) == []
    assert found(trace(0, 13, completed=13), trace(1, 12, completed=12)) == []
    assert found(trace(0, 13, ranks=(1, 2)), trace(1, 12, completed=12, ranks=(1, 2))) == []  # rank 0 is none of it


def test_a_collective_that_one_rank_saw_completed_held_nobody():
    assert found(trace(0, 13, completed=13), trace(1, 13, completed=11)) == []
    (finding,) = found(trace(0, 13), trace(1, 12, completed=10))
    assert finding.start_t_s == 13.0


def test_a_training_that_went_on_was_not_held():
    held = trace(0, 13), trace(1, 12, completed=12)
    later = InsideEpoch(1, 1, 5.0, 20.0, 512, 32, 0.1, 0.0, 0.0)
    assert found(*held, inside=(InsideRun(1, 0, 7, "train", {}, (), (later,)),)) == []
    assert found(*held, exit_code=0) == []


def warned(*processes):
    run = replace(make_run(readings((0, 10), (90, 50))), nccl=Nccl(processes=processes))
    return nccl_warnings(build_context(run, Options()))


def test_warnings_are_one_finding_that_quotes_the_first():
    early, late = NcclWarning("net down", "net.cc:1", 20.0), NcclWarning("again", "", 30.0)
    (finding,) = warned(NcclProcess(9, "h", rank=1, warnings=(late, early)), NcclProcess(8, "h"))
    assert finding.summary == "NCCL warned 2 times, first in rank 1: net down"
    assert (finding.start_t_s, finding.end_t_s) == (20.0, 30.0)
    (untimed,) = warned(NcclProcess(9, "h", warnings=(NcclWarning("no interface", "", None),)))
    assert untimed.summary == "NCCL warned once, in process 9: no interface"
    assert warned(NcclProcess(9, "h")) == []

"""Kernel lines that an ended training or a lost GPU carries are no findings of their own; others stay."""

from gpu_report.analyse.rules.kernel_events import attach_to_their_finding
from gpu_report.model import Advice, Finding, KernelEvent, NearbyKernelEvent


def event(t_s, kind="oom", gpu=None, text="Killed process 41"):
    return KernelEvent(t_s, kind, "critical", text, "", "", gpu)


def finding(rule, *events, advice=()):
    near = tuple(NearbyKernelEvent(each, 0.0) for each in events)
    return Finding(f"{rule}-1", rule, "critical", None, 50.0, 51.0, "", kernel_events=near, advice=advice)


DO = (Advice("Free memory."),)
KILL = event(51.0)


def test_a_line_that_the_end_carries_is_told_with_it():
    (ended,) = attach_to_their_finding([finding("run-ended", KILL), finding("kernel", KILL, advice=DO)])
    assert (ended.rule, ended.advice, len(ended.kernel_events)) == ("run-ended", DO, 1)


def test_the_other_lines_of_the_same_kill_go_with_it_and_are_kept():
    before = event(50.9, text="python3 invoked oom-killer")
    (ended,) = attach_to_their_finding([finding("run-ended", KILL), finding("kernel", KILL), finding("kernel", before)])
    assert [near.event for near in ended.kernel_events] == [KILL, before]


def test_its_own_advice_stays():
    own = (Advice("Use less."),)
    (ended,) = attach_to_their_finding([finding("run-ended", KILL, advice=own), finding("kernel", KILL, advice=DO)])
    assert ended.advice == own


def test_lines_of_another_time_kind_or_gpu_and_those_beside_a_drop_stay():
    others = [event(20.0), event(51.0, "nvme"), event(51.0, gpu=1)]
    findings = [finding("run-ended", KILL), *(finding("kernel", other) for other in others)]
    assert attach_to_their_finding(findings) == findings
    beside = [finding("drop", KILL), finding("kernel", KILL)]
    assert attach_to_their_finding(beside) == beside

"""Where a training was last seen that hung or was killed."""

import dataclasses

import numpy as np
import pytest
from support.runs import make_run, readings

from gpu_report.analyse import analyse
from gpu_report.model import Frame, InsideRun, Phase, ProcessDumps, ProcessStacks, Progress, RecordedEvent

REDUCE = Frame("/usr/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", 2501, "all_reduce")
STEP = Frame("/home/me/train.py", 41, "step")
LOG = Frame("/home/me/callbacks.py", 9, "log_images")
HUNG, LOGS = (REDUCE, STEP), (LOG, STEP)


def stacks(*notes, pid=41, role="main", end=300.0):
    """Return the stacks of a process from notes of (since, stack)."""
    starts = [since for since, _ in notes]
    known = {1: HUNG, 2: LOGS}
    numbers = [next(number for number, of in known.items() if of == stack) for _, stack in notes]
    ends = [*starts[1:], end]
    return ProcessStacks(pid, role, np.array(starts), np.array(ends), np.array(numbers, dtype=np.int32), known)


def recorded(*processes, ended=None, command=None, heard=70.0, end=290.0, ranks=1):
    run = make_run(readings((0, 10), (95, 290)))
    phases = (Phase("train", 1, 10.0, 20.0, "inside"), Phase("train", 2, 20.0, end, "inside"))
    progress = tuple(Progress(float(t), 1, 0.0) for t in np.arange(13.0, heard, 3.0))
    inside = tuple(
        InsideRun(1, rank, 41 + rank, "train", {}, phases, (), ended, "RuntimeError" if ended else None, progress)
        for rank in range(ranks)
    )
    events = [] if command is None else [RecordedEvent(end, "command_ended", None, command)]
    known = {"source": "gpu-report record", "ended_by": "command"}
    recording = dataclasses.replace(run.recording, **known)
    return dataclasses.replace(run, inside=inside, events=tuple(events), stacks=processes, recording=recording)


def the_end(run):
    (finding,) = [finding for finding in analyse(run).findings if finding.rule == "run-ended"]
    return finding


def numbers(finding):
    return {each.text: each.value for each in finding.evidence if "seen" in each.text or "stack samples" in each.text}


def test_a_hang_names_what_it_hung_in_and_who_called_that():
    finding = the_end(recorded(stacks((10.0, LOGS), (75.0, HUNG))))
    words = "all_reduce (distributed_c10d.py:2501), called from step (train.py:41)"
    assert finding.summary.endswith(f"; it was last seen in {words}")
    assert numbers(finding) == {f"the main process was last seen in {words}": 215.0}
    ((location,),) = (finding.where,)
    assert (location.process, location.function, location.file, location.line) == (
        "main",
        "step",
        "/home/me/train.py",
        41,
    )


def test_what_follows_a_hang_is_not_what_it_hung_in():
    finding = the_end(recorded(stacks((10.0, HUNG), (285.0, LOGS)), ended="exception"))
    assert "all_reduce" in finding.summary


def test_a_kill_names_the_last_line():
    finding = the_end(recorded(stacks((10.0, HUNG), (288.0, LOGS)), command={"signal": "SIGKILL"}, heard=285.0))
    assert finding.summary.endswith("; it was last seen in log_images (callbacks.py:9)")
    assert numbers(finding) == {"the main process was last seen in log_images (callbacks.py:9)": 2.0}


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_who_asks_a_training_to_end_does_not_ask_where_it_is(name):
    finding = the_end(recorded(stacks((10.0, HUNG), (288.0, LOGS)), command={"signal": name}, heard=285.0))
    assert (finding.where, "seen" in finding.summary) == ((), False)


def test_an_exception_says_itself_where_it_was():
    finding = the_end(recorded(stacks((10.0, LOGS)), ended="exception", heard=285.0))
    assert finding.where == ()
    assert "seen" not in finding.summary


def test_ctrl_c_in_a_training_that_went_on_needs_no_line():
    assert the_end(recorded(stacks((10.0, LOGS)), command={"signal": "SIGINT"}, heard=285.0)).where == ()


def test_a_process_that_noted_nothing_more_is_said():
    finding = the_end(recorded(stacks((10.0, LOGS), end=80.0)))
    told = numbers(finding)
    assert told["the main process was last seen in log_images (callbacks.py:9)"] == 70.0
    assert told["the main process gave no more stack samples (C code held the GIL, or a signal stopped it)"] == 210.0


def test_each_rank_has_its_own_line():
    ranks = stacks((10.0, HUNG), role="rank 0"), stacks((10.0, LOGS), pid=42, role="rank 1")
    launcher, worker = stacks((0.0, LOGS), pid=40), stacks((0.0, LOGS), pid=50, role="worker 0")
    finding = the_end(recorded(launcher, *ranks, worker, ranks=2))
    assert [location.process for location in finding.where] == ["rank 0", "rank 1"]
    assert len(numbers(finding)) == 2


@pytest.mark.parametrize("signal", ["SIGKILL", "SIGSEGV"])
def test_a_script_that_knows_no_yolo_is_seen_as_well(signal):
    run = dataclasses.replace(recorded(stacks((10.0, LOGS)), command={"signal": signal}), inside=())
    assert "log_images (callbacks.py:9)" in the_end(run).summary


def test_without_stacks_all_is_as_before():
    assert "seen" not in the_end(recorded()).summary


def killed(*at_s, stacks=None, role="main"):
    """Return the end of a command without callbacks that was killed after 290 s, with dumps of it."""
    run = recorded(command={"exit_code": 137, "signal": "SIGKILL"}, ranks=0)
    seen = ProcessDumps(41, role, np.array(at_s, dtype=float), stacks or (HUNG,) * len(at_s))
    analysis = analyse(dataclasses.replace(run, dumps=(seen,)))
    return next(finding for finding in analysis.findings if finding.rule == "run-ended")


def test_without_our_hook_the_last_dumps_say_where_it_was():
    end = killed(240, 250, 280, stacks=(LOGS, HUNG, HUNG))
    assert end.summary.endswith(
        "it was last seen in all_reduce (distributed_c10d.py:2501), called from step (train.py:41)"
    )
    assert (end.where[0].function, end.where[0].dumps) == ("step", 2)
    (seconds,) = [number.value for number in end.evidence if "last seen" in number.text]
    assert seconds == 30


@pytest.mark.parametrize("seen", [{"at_s": [200]}, {"at_s": [280], "role": "worker"}, {"at_s": [280], "stacks": ((),)}])
def test_a_dump_of_long_ago_of_a_worker_or_of_nothing_says_nothing(seen):
    end = killed(*seen.pop("at_s"), **seen)
    assert end.where == ()
    assert not [number for number in end.evidence if "last seen" in number.text]

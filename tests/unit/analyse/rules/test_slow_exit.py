"""Commands that go on after their training had finished."""

import dataclasses

import pytest
from support.runs import make_run
from support.stacks import LOG, TRAINER, process

from gpu_report.analyse import analyse
from gpu_report.model import Frame, InsideEpoch, InsideRun, Phase, RecordedEvent, ThreadStacks

SHUTDOWN = Frame("/usr/lib/python3.12/threading.py", 1622, "_shutdown", "acquire")
MAIN = Frame("/home/me/train.py", 90, "summarise")
TRAINED_S, STARTUP_S = 60.0, 10.0
OVER_S = STARTUP_S + TRAINED_S


def finished(after_s, *, util_after=0.0, ended="finished", stacks=(), told=True):
    """Return a run of a command that went on for `after_s` after its training."""
    phases = (
        Phase("startup", None, 0.0, STARTUP_S, "callbacks"),
        Phase("train", 1, STARTUP_S, OVER_S, "callbacks"),
    )
    epochs = (InsideEpoch(1, 1, STARTUP_S, OVER_S, 4000, 100, 0.0, 0.0, 0.0),)
    events = [RecordedEvent(0.0, "command_started", None, {"pid": 1})]
    events += [RecordedEvent(OVER_S + after_s, "command_ended", None, {"code": 0})] if told else []
    util = [0.0] * round(STARTUP_S) + [90.0] * round(TRAINED_S) + [util_after] * round(after_s + 2)
    inside = InsideRun(1, 0, 1, "train", {}, phases, epochs, ended)
    return dataclasses.replace(make_run(util, events=events), inside=(inside,), stacks=tuple(stacks))


def slow(run):
    return [finding for finding in analyse(run).findings if finding.rule == "slow-exit"]


def waiting_for_thread(after_s):
    """Return the notes of a main process in Python's own end, and those of the thread that it waits for."""
    main = process((0, OVER_S, (TRAINER,)), (OVER_S, OVER_S + after_s, (SHUTDOWN,)), (0, 0, (LOG,)))
    uploads = next(number for number, stack in main.stacks.items() if stack == (LOG,))
    notes = process((OVER_S, OVER_S + after_s, (LOG,)))
    thread = ThreadStacks("upload", notes.start_s, notes.end_s, notes.number * 0 + uploads)
    return dataclasses.replace(main, threads=(thread,))


def test_the_thread_that_python_waits_for_is_named_and_leads():
    run = finished(30.0, stacks=(waiting_for_thread(30.0),))
    (finding,) = slow(run)
    assert (finding.severity, finding.span) == ("info", (OVER_S, OVER_S + 30.0))
    assert "Python waited for a thread" in finding.summary
    assert (finding.where[0].function, finding.where[0].line) == (LOG.function, LOG.line)
    assert finding.where[0].share > 0.9
    lead = analyse(run).verdict.sentences[0].text
    assert lead == "Look at `log_images` (callbacks.py:41): the command took 30 s to end after its training."


def test_what_the_script_does_afterwards_is_named():
    (finding,) = slow(finished(30.0, stacks=(process((0, OVER_S, (TRAINER,)), (OVER_S, OVER_S + 30, (MAIN,))),)))
    assert finding.where[0].function == "summarise"
    assert "Python waited" not in finding.summary


def test_without_lines_it_is_found_all_the_same():
    run = finished(30.0)
    (finding,) = slow(run)
    assert finding.where == ()
    assert analyse(run).verdict.sentences[0].text.startswith("Find what runs after the training")


@pytest.mark.parametrize(
    "run",
    [
        finished(10.0),
        finished(30.0, util_after=40.0),
        finished(30.0, ended="exception"),
        finished(30.0, told=False),
        finished(30.0, util_after=float("nan")),
    ],
    ids=[
        "short",
        "the GPU works",
        "the training failed",
        "nobody knows when it ended",
        "nobody knows what the GPU did",
    ],
)
def test_what_is_no_slow_exit(run):
    assert slow(run) == []

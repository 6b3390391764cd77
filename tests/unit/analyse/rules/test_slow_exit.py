"""Commands that go on after their training had finished."""

import dataclasses

import pytest
from support.calls import make_calls
from support.runs import make_run
from support.stacks import LOG, TRAINER, process

from gpu_report.analyse import analyse
from gpu_report.model import Frame, InsideEpoch, InsideRun, Phase, RecordedEvent, ThreadStacks
from gpu_report.render.what_to_change import listed_changes

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
    after = util_after if isinstance(util_after, list) else [util_after] * round(after_s + 2)
    util = [0.0] * round(STARTUP_S) + [90.0] * round(TRAINED_S) + after
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


def test_calls_of_a_model_after_a_training_are_its_end_and_no_service():
    calls = make_calls(12, gap_ms=900.0, start_s=OVER_S, pid=1)
    pages = (Frame("/home/me/pages.py", 18, "write_pages"), TRAINER)
    run = finished(12.0, util_after=1.0, stacks=(process((0, OVER_S, (TRAINER,)), (OVER_S, OVER_S + 11, pages)),))
    predicts = InsideRun(1, 0, 1, "predict", {}, (Phase("predict", None, OVER_S, OVER_S + 11, "callbacks"),), ())
    analysis = analyse(dataclasses.replace(run, inside=(*run.inside, predicts), calls=(calls,)))
    assert [finding.rule for finding in analysis.findings] == ["slow-exit"]
    assert analysis.verdict.sentences[0].text.startswith("Look at `write_pages` (pages.py:18): the command took 12 s")
    assert listed_changes(analysis)[0].text.endswith("compress them less.")


def test_what_a_gpu_worked_for_is_taken_off():
    assert slow(finished(30.0, util_after=[40.0] * 24 + [0.0] * 8)) == []
    (finding,) = slow(finished(30.0, util_after=[40.0] * 8 + [0.0] * 24))
    assert finding.duration_s == 30.0


@pytest.mark.parametrize(
    "run",
    [
        finished(6.0),
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

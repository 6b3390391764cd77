"""Kernel events of another program than the training: no alarm, nothing to do about, and no part in what came later."""

from dataclasses import replace

import pytest
from support.runs import make_run, readings

from gpu_report.analyse import analyse
from gpu_report.analyse.signals.host.kernel_event_owner import NOT_OURS, mark_foreign_kernel_events
from gpu_report.analyse.signals.host.kernel_events import kernel_events_near
from gpu_report.model import InsideEpoch, InsideRun, KernelEvent, Phase
from gpu_report.render.next_steps import next_step
from gpu_report.render.what_to_change import listed_changes

KILL = KernelEvent(60.0, "oom", "critical", "Killed", "killed python3 (pid 99)", "Free it.", None, None, 99, "python3")
XID = KernelEvent(60.0, "xid", "warning", "NVRM: Xid 31", "a bad address", "Restart it.", 0, 31, 99, "python3")


def training(*spans, pid=41):
    epochs = tuple(InsideEpoch(n, 1, start, end, 10, 1, 0.1, 0.1, 0.1) for n, (start, end) in enumerate(spans, 1))
    phases = tuple(Phase("train", epoch.epoch, epoch.start_t_s, epoch.end_t_s, "inside") for epoch in epochs)
    return InsideRun(1, 0, pid, "train", {}, phases, epochs)


WHOLE = training((10.0, 60.0), (65.0, 115.0))


def run_with(event, *trainings):
    return replace(make_run(readings((0, 10), (90, 110)), kernel=[event]), inside=trainings)


def owned(event, *trainings):
    return mark_foreign_kernel_events(run_with(event, *trainings)).kernel.events[0]


@pytest.mark.parametrize(("event", "whose"), [(KILL, NOT_OURS), (XID, f"python3 (pid 99), {NOT_OURS}")])
def test_what_befell_another_program_is_no_alarm_and_asks_for_nothing(event, whose):
    told = owned(event, WHOLE)
    assert (told.of_another, told.severity, told.action) == (True, "warning", "")
    assert told.meaning == f"{event.meaning}; it was {whose}"


@pytest.mark.parametrize(
    ("event", "trainings"),
    [
        (KILL, ()),  # nothing told of a training
        (replace(KILL, pid=41), (WHOLE,)),
        (replace(KILL, pid=None), (WHOLE,)),
        (replace(KILL, t_s=118.0), (WHOLE,)),  # no epoch came to its end any more
        (replace(XID, severity="critical"), (WHOLE,)),  # which concerns the whole GPU
        # a container's pids are others: the first of two trainings did not go on
        (replace(KILL, t_s=64.0), (training((10.0, 60.0)), training((80.0, 115.0), pid=42))),
        # who hung may be one of the loader's workers, and goes on
        (KernelEvent(60.0, "hung-task", "warning", "x", "stuck", "Look.", pid=99, process="python3"), (WHOLE,)),
    ],
)
def test_what_may_be_the_trainings_own_stays_as_it_is(event, trainings):
    assert owned(event, *trainings) == event


def test_a_kill_before_a_training_began_was_none_of_it():
    assert owned(replace(KILL, t_s=1.0), WHOLE).of_another


def test_what_befell_another_program_before_something_is_not_told_beside_it():
    other, own = owned(KILL, WHOLE), replace(KILL, pid=41)
    assert kernel_events_near([other], 80.0, 90.0, 0) == ()
    assert len(kernel_events_near([other], 50.0, 70.0, 0)) == 1
    assert len(kernel_events_near([own], 80.0, 90.0, 0)) == 1


def test_its_finding_says_that_nothing_is_to_be_done():
    analysis = analyse(run_with(XID, WHOLE))
    (finding,) = (finding for finding in analysis.findings if finding.rule == "kernel")
    assert (finding.severity, finding.advice) == ("warning", ())
    assert next_step(finding, analysis).startswith("this training continued: nothing to do for it. If python3 (pid 99)")
    assert listed_changes(analysis) == []  # nothing is to change
    assert analysis.run.kernel.events[0].action == ""
    (own,) = (f for f in analyse(run_with(XID)).findings if f.rule == "kernel")
    assert (own.advice[0].text, next_step(own, analysis)) == ("Restart it.", "")

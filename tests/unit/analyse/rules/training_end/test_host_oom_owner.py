"""Whose host memory ran out: told by the kernel's own report, and advised by that."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from support.runs import make_run, readings
from support.samples import analysis_of

from gpu_report import schema
from gpu_report.analyse import analyse
from gpu_report.model import (
    InsideEpoch,
    InsideRun,
    KernelEvent,
    KernelLog,
    OomReport,
    Phase,
    RecordedEvent,
    YoloRun,
)

END, SECONDS, GIB = 110.0, 120, 1024.0
REPORT = OomReport(24 * GIB, 24 * GIB, 20 * GIB, 17 * GIB, 3 * GIB)


def killed(report, *, at_limit=True, pid=41, fields=None, args=None, settings=None, error=None, **recording):
    """Return a run of a training (pid 41) that ended at END as the kernel killed a process for want of memory."""
    phases = (Phase("train", 4, 10.0, 60.0, "inside"), Phase("train", 5, 60.0, END, "inside"))
    epochs = (InsideEpoch(4, 1, 10.0, 60.0, 100, 10, 0.0, 0.0, 0.0),)
    inside = InsideRun(1, 0, 41, "train", settings or {}, phases, epochs, "exception" if error else None, error)
    kill = KernelEvent(
        END - 0.5, "oom", "critical", "Killed", "killed", pid=pid, process="python3", oom=report, at_limit=at_limit
    )
    used = np.linspace(1.0, 120.0, SECONDS) * GIB
    columns = {c.name: np.nan for c in schema.HOST_QUANTITIES}
    host = pd.DataFrame({"t_s": np.arange(float(SECONDS)), **columns, "memory_used_mib": used})
    run = make_run(readings((0, 10), (90, SECONDS - 10)))
    known = {"source": "gpu-report record", "ended_by": "command", "memory_mib": 128 * GIB, **recording}
    return dataclasses.replace(
        run,
        inside=(inside,),
        host=host,
        kernel=KernelLog("read", events=(kill,)),
        events=(RecordedEvent(END, "command_ended", None, fields or {"signal": "SIGKILL"}),),
        yolo_runs=(YoloRun(1, None, args or {}, "recorded", None),),
        recording=dataclasses.replace(run.recording, **known),
    )


def ended(run):
    (finding,) = (finding for finding in analyse(run).findings if finding.rule == "run-ended")
    return finding


def said(run):
    finding = ended(run)
    (advice,) = finding.advice
    return finding.summary, advice


KERNELS = "The kernel's OOM killer ended the training: "


def test_the_main_process_that_held_most_is_named_and_what_it_keeps_is_to_be_looked_for():
    summary, advice = said(killed(REPORT, args={"cache": False, "workers": 8}))
    assert summary == KERNELS + "its container's memory limit (24.0 GiB) was reached"
    assert advice.short == "Find what the main process keeps from batch to batch: it held 17.0 GiB"
    assert "what the main process keeps from batch to batch" in advice.text
    assert "raise the limit of its container or service (now 24.0 GiB)" in advice.text
    assert "cache=ram" not in advice.text
    assert "workers" not in advice.text


def test_images_in_memory_that_callbacks_alone_told_of_are_advised_against_in_words():
    _, advice = said(killed(REPORT, settings={"cache": "ram"}))
    assert advice.argument is None
    assert "`cache=disk`" in advice.text


@pytest.mark.parametrize("asked", [{"args": {"cache": "ram"}}, {"args": {"cache": True}}])
def test_images_in_memory_are_advised_against_only_where_they_are_there(asked):
    _, advice = said(killed(REPORT, **asked))
    assert (advice.argument, advice.from_value, advice.to_value) == ("cache", "ram", "disk")


def test_where_the_others_held_most_it_is_fewer_workers():
    run = killed(dataclasses.replace(REPORT, killed_own_mib=2 * GIB), args={"workers": 8})
    _, advice = said(run)
    assert ended(run).cause.explanation.endswith("; 18.0 GiB were held by its other processes")
    assert advice.text.startswith("Train with fewer data-loader workers (now 8)")


@pytest.mark.parametrize(
    ("run", "less"),
    [
        (killed(None, args={"cache": False}), "Use less host memory (fewer workers), or"),
        (killed(None), "Use less host memory (fewer workers, no cache=ram), or"),
        (killed(OomReport(24 * GIB, 24 * GIB, 12 * GIB, 6 * GIB)), "Use less host memory"),  # nobody held most
        (
            killed(OomReport(killed_own_mib=20 * GIB), at_limit=False),
            "Use less host memory",
        ),  # of 128
    ],
)
def test_where_nobody_is_known_to_have_held_most_nobody_is_named(run, less):
    _, advice = said(run)
    assert "held by" not in ended(run).cause.explanation
    assert advice.text.startswith(less)


def test_on_a_machine_without_a_limit_its_memory_is_the_whole():
    run = killed(OomReport(killed_own_mib=100 * GIB), at_limit=False)
    summary, advice = said(run)
    assert summary == KERNELS + "host memory ran out"
    assert ended(run).cause.explanation.endswith("100.0 GiB were held by its main process")
    assert "give the machine or the container more" in advice.text


def test_a_container_counts_other_pids_and_the_one_that_was_killed_with_the_command_was_the_main_process():
    assert "its main process" in ended(killed(REPORT, pid=70_041)).cause.explanation


def test_of_a_worker_that_was_killed_nothing_is_known_of_the_main_process():
    small = dataclasses.replace(REPORT, killed_own_mib=2 * GIB)
    finding = ended(killed(small, pid=99, error="RuntimeError", fields={"exit_code": 1}, args={"cache": False}))
    assert finding.summary.endswith("the kernel had just killed a process to free host memory")
    assert finding.advice[0].text.startswith("Use less host memory (fewer workers)")


def test_what_the_kernel_reported_and_the_growth_of_host_memory_are_told():
    run = killed(REPORT, memory_limit_mib=24 * GIB)
    run = dataclasses.replace(run, host=run.host.assign(cgroup_memory_used_mib=20 * GIB))
    numbers = {each.text: each.value for each in ended(run).evidence}
    assert numbers["memory limit in use in the last minute (cgroup, page cache included)"] == 100.0
    assert numbers["memory of the cgroup at the kill"] == numbers["limit"] == 24.0
    assert numbers["memory of python3 (pid 41), which was killed: its own"] == 17.0
    assert numbers["memory of all other processes in the cgroup"] == 3.0
    assert numbers["host memory in use as it began to train"] == pytest.approx(11.0)
    assert numbers["host memory in use just before the end"] == pytest.approx(111.0)


def test_a_limit_of_another_cgroup_is_not_the_trainers():
    run = killed(REPORT, memory_limit_mib=48 * GIB)
    run = dataclasses.replace(run, host=run.host.assign(cgroup_memory_used_mib=12 * GIB))
    numbers = {each.text: each.value for each in ended(run).evidence}
    assert numbers["memory limit in use in the last minute (cgroup, page cache included)"] == 25.0


def test_a_training_that_died_of_host_memory_is_not_told_to_take_more():
    analysis = analysis_of("n-oom-killed")
    assert {advice.argument for finding in analysis.findings for advice in finding.advice} == {None}
    assert [bound.fix for bound in analysis.speedup_limits] == [""]

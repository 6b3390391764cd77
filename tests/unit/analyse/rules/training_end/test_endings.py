"""How a training ended: by an exception of one of its ranks, the OOM killer, a signal, a hang, or well."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from support.runs import PROCESSES, make_run, readings

from gpu_report import schema
from gpu_report.analyse import analyse
from gpu_report.analyse.build_context import build_context
from gpu_report.analyse.compare import compare
from gpu_report.analyse.compare.comparability import cut_short, cut_short_obstacle
from gpu_report.analyse.compare.finding_changes import compare_findings
from gpu_report.analyse.compare.gate_syntax import default_gates
from gpu_report.analyse.results.verdict.end import in_hang
from gpu_report.analyse.results.verdict.what_happened import other_findings
from gpu_report.analyse.rules.training_end import bad_endings
from gpu_report.analyse.rules.training_end.exit_signal import WHO_ASKED, WHO_KILLED
from gpu_report.analyse.rules.training_end.hang import find_endless_wait
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.catalogue import HUNG_KEY, RULES
from gpu_report.model import (
    NAN_GRADIENT,
    Evidence,
    Finding,
    Frame,
    Gpu,
    InsideEpoch,
    InsideRun,
    KernelEvent,
    KernelLog,
    Options,
    Phase,
    Progress,
    Raised,
    RecordedEvent,
    SettingLocation,
    YoloRun,
)
from gpu_report.render.comparison.rows import finding_words
from gpu_report.wording import ending_words

NAN = float("nan")
END = 110.0
SECONDS = 120
UNREAD = KernelLog("restricted", reason="only root may read it", advice="sudo dmesg")
OOM = "host memory ran out: the kernel killed python3 (pid 41)"


def rank(
    number=0,
    *,
    ended=None,
    error=None,
    end=END,
    heard=None,
    last=("train", 5, ""),
    before=(("validation", 4, 2.0),),
    run=1,
    **settings,
):
    """Return a process that trained from 10 s on, came to `last` (a phase, its epoch and detail), and ended there."""
    name, epoch, detail = last
    phases, t_s = [Phase("train", 4, 10.0, 20.0, "inside")], 20.0
    for other, of, seconds in before:
        phases.append(Phase(other, of, t_s, t_s + seconds, "inside"))
        t_s += seconds
    phases.append(Phase(name, epoch, t_s, end, "inside", detail))
    heard = end - 2.0 if heard is None else heard
    progress = tuple(Progress(float(t), 1, 0.0) for t in np.arange(13.0, heard + 0.1, 3.0)) if name == "train" else ()
    done = (InsideEpoch(4, 1, 10.0, 20.0, 100, 10, 0.0, 0.0, 0.0),)
    told = {"epochs": 30, "patience": 3, **settings}
    return InsideRun(run, number, 41 + number, "train", told, tuple(phases), done, ended, error, progress)


def recorded(*ranks, events=(), kernel=None, processes=(), host=None, util=90.0, duration=SECONDS, **recording):
    run = make_run(
        readings((0, 10), (util, duration - 20), (0, 10)), quantities={"memory_used_mib": [143_000.0] * duration}
    )
    t_s = np.arange(float(duration))
    table = pd.DataFrame({"t_s": t_s, **{c.name: np.nan for c in schema.HOST_QUANTITIES}})
    known = {"source": "gpu-report record", "ended_by": "command", **recording}
    return dataclasses.replace(
        run,
        inside=ranks,
        events=tuple(events),
        kernel=kernel or UNREAD,
        processes=pd.DataFrame([dict(zip(PROCESSES, row, strict=True)) for row in processes], columns=PROCESSES),
        host=table.assign(**(host or {})),
        recording=dataclasses.replace(run.recording, **known),
        gpus=(Gpu(0, uuid="GPU-a", name="NVIDIA H200", memory_total_mib=143_771), Gpu(1, uuid="GPU-b")),
    )


def command(t_s=END, **fields):
    return RecordedEvent(t_s, "command_ended", None, fields)


def oom_event(t_s, where):
    return RecordedEvent(t_s, "oom_kill", None, {"where": where, "count": 1})


def log(*events):
    return KernelLog("read", "kmsg", events=tuple(events))


def killed_line(t_s, pid=41, name="python3"):
    return KernelEvent(t_s, "oom", "critical", f"Killed process {pid} ({name})", OOM, pid=pid, process=name)


def ends(run):
    return [finding for finding in analyse(run).findings if RULES[finding.rule].ending]


def texts(finding):
    return {evidence.text: evidence.value for evidence in finding.evidence}


KILL = command(signal="SIGKILL")

# --- exceptions


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("RuntimeError", "The training crashed (RuntimeError) on rank 1 (training process of GPU 1)"),
        ("OutOfMemoryError", "The training ran out of GPU memory on rank 1 (training process of GPU 1)"),
    ],
)
def test_the_rank_that_died_first_is_named(error, words):
    first = rank(1, ended="exception", error=error, end=100.0, gpu_uuid="GPU-b")
    after = rank(2, ended="exception", error="DistBackendError", end=104.0)
    (finding,) = ends(recorded(rank(), first, after, events=[command(exit_code=1)]))
    assert (finding.summary, finding.end_t_s, finding.severity) == (words, 100.0, "critical")
    assert (finding.epoch, finding.phase) == (5, "train")


def test_what_another_rank_raises_after_a_good_end_is_none():
    other = rank(1, ended="exception", error="RuntimeError")
    assert ends(recorded(rank(ended="finished"), other)) == []


def test_a_rank_of_another_training_does_not_end_this_one():
    stranger = rank(1, ended="exception", error="RuntimeError", run=2)
    (finding,) = ends(recorded(rank(ended="finished"), stranger))
    assert finding.summary == "The training crashed (RuntimeError)"


def test_who_interrupts_a_training_knows_it():
    (finding,) = ends(recorded(rank(ended="exception", error="KeyboardInterrupt")))
    assert (finding.severity, finding.summary) == ("info", "Stopped by Ctrl-C in epoch 5 of 30")


BROKEN = "an image is broken"


@pytest.mark.parametrize(
    ("error", "said", "words", "advice"),
    [
        ("KeyError", {"message": "'x'"}, "crashed (KeyError: 'x')", None),
        (
            "OSError",
            {"message": "No space left on device: /data/runs", "code": "ENOSPC"},
            "crashed: a disk was full (OSError: No space left on device: /data/runs)",
            "project=",
        ),
        ("OutOfMemoryError", {"message": "Tried to allocate 2 GiB"}, "ran out of GPU memory", "batch"),
        ("RuntimeError", {"code": "cudaErrorMemoryAllocation"}, "ran out of GPU memory", "batch"),
        (
            "AcceleratorError",
            {"message": "CUDA error: x", "code": "cudaErrorUnknown"},
            "crashed: CUDA failed (AcceleratorError: CUDA error: x)",
            "CUDA_LAUNCH_BLOCKING",
        ),
        ("RuntimeError", {"code": "cudaErrorAssert"}, "crashed: CUDA failed (RuntimeError)", "labels"),
        (
            "RuntimeError",
            {"code": "CUDNN_STATUS_EXECUTION_FAILED"},
            "crashed: CUDA failed (RuntimeError)",
            "CUDA_LAUNCH",
        ),
        (
            "MyError",
            {"bases": ("DistError", "RuntimeError")},
            "crashed: communication between its processes failed (MyError)",
            "NCCL_DEBUG",
        ),
        (
            "RuntimeError",
            {"loader_worker": "SIGBUS"},
            "crashed: a data-loader worker died (RuntimeError)",
            "--shm-size",
        ),
        ("RuntimeError", {"loader_worker": "exited"}, "crashed: a data-loader worker died (RuntimeError)", "workers=0"),
        (
            "RuntimeError",
            {"raised_in": "ultralytics.engine.trainer:_handle_nan_recovery"},
            "crashed: the loss was NaN and did not recover (RuntimeError)",
            "lr0",
        ),
        (
            "AssertionError",
            {"message": BROKEN, "raised_in": "ultralytics.data.base:load_image"},
            f"crashed: the data set could not be read (AssertionError: {BROKEN})",
            "YAML",
        ),
        (
            "RuntimeError",
            {"raised_in": "ultralytics.engine.trainer:get_dataset"},
            "crashed: the data set could not be read (RuntimeError)",
            "YAML",
        ),
        ("RuntimeError", {"raised_in": "ultralytics.data.build:__iter__"}, "crashed (RuntimeError)", None),
        ("AssertionError", {"raised_in": "ultralytics.nn.tasks:loss"}, "crashed (AssertionError)", None),
        ("ValueError", {"message": "x" * 300}, f"crashed (ValueError: {'x' * 160} ...)", None),
    ],
)
def test_an_exception_is_told_by_its_kind_and_its_own_words(error, said, words, advice):
    crashed = dataclasses.replace(rank(ended="exception", error=error), raised=Raised(**said))
    found = analyse(recorded(crashed))
    (finding,) = (each for each in found.findings if each.rule == "run-ended")
    assert finding.summary == f"The training {words}"
    assert finding.severity == "critical"
    assert [advice in each.text for each in finding.advice] == ([True] if advice else [])
    assert found.verdict.text.startswith(finding.summary)
    assert (found.ending.name, found.ending.type) == ("failed", error)
    assert found.ending.message == (said.get("message") or None)


@pytest.mark.parametrize(
    ("severity", "before_s", "told"),
    [("critical", 2.0, False), ("critical", 400.0, True), ("warning", 2.0, True)],  # a warning may be its own fault
)
def test_after_a_fault_of_the_gpu_no_operation_is_at_fault(severity, before_s, told):
    crashed = rank(ended="exception", error="AcceleratorError", end=END + 300, last=("train", 5, ""))
    crashed = dataclasses.replace(crashed, raised=Raised(message="CUDA error: x", code="cudaErrorUnknown"))
    fault = KernelEvent(END + 300 - before_s, "xid", severity, "NVRM: Xid", "fell off", "Reboot.", 0, 79)
    run = recorded(crashed, kernel=log(fault), duration=SECONDS + 300)
    (finding,) = ends(run)
    assert ["CUDA_LAUNCH_BLOCKING" in each.text for each in finding.advice] == [True] * told


IN_CALLBACK = (
    Frame("/home/me/train.py", 41, "fail"),
    Frame("/opt/site-packages/ultralytics/engine/trainer.py", 200, "run_callbacks"),
)
IN_WORKER = (
    Frame("/home/me/data.py", 7, "read"),
    Frame("/opt/site-packages/torch/utils/data/_utils/worker.py", 349, "_worker_loop"),
)
IN_YOLO = (Frame("/opt/site-packages/ultralytics/data/base.py", 85, "load_image"),)


@pytest.mark.parametrize(
    ("number", "frames", "place", "words"),
    [
        (0, IN_CALLBACK, ("main", "fail", 41), "The training crashed (ValueError) in fail (train.py:41)"),
        (0, IN_WORKER, ("workers", "read", 7), "The training crashed (ValueError) in read (data.py:7)"),
        (0, IN_YOLO, ("main", "load_image", 85), "The training crashed (ValueError)"),
        (
            1,
            IN_CALLBACK,
            ("rank 1", "fail", 41),
            "The training crashed (ValueError) on rank 1 (training process of GPU 1) in fail",
        ),
    ],
    ids=["callback", "worker", "YOLO's", "rank"],
)
def test_the_line_that_raised_it_is_named(number, frames, place, words):
    crashed = rank(number, ended="exception", error="ValueError", gpu_uuid="GPU-b")
    crashed = dataclasses.replace(crashed, raised=Raised(frames=frames))
    (finding,) = ends(recorded(*([rank(end=130.0)] if number else []), crashed))
    (where,) = finding.where
    assert (where.process, where.function, where.line) == place
    assert finding.summary.startswith(words)
    assert number or finding.summary == words
    fix = f"Fix `{place[1]}` ({'train' if 'fail' in place else 'data'}.py:{place[2]}): the exception was raised there"
    assert [each.text for each in finding.advice] == ([] if frames == IN_YOLO else [fix])


def test_ctrl_c_is_no_crash_of_the_rank_that_it_reached_last():
    other = rank(1, ended="exception", error="DistBackendError", end=104.0)
    (finding,) = ends(recorded(rank(ended="exception", error="KeyboardInterrupt", end=106.0), other))
    assert finding.summary == "Stopped by Ctrl-C in epoch 5 of 30"
    late = rank(ended="exception", error="KeyboardInterrupt", end=120.0)  # somebody ended what had crashed before
    (crash,) = ends(recorded(late, dataclasses.replace(other)))
    assert crash.severity == "critical"


@pytest.mark.parametrize(
    ("process", "events", "text"),
    [
        (rank(ended="exception", error="KeyboardInterrupt"), (), "Stopped by Ctrl-C in epoch 5 of 30"),
        (rank(), [command(signal="SIGINT")], "Stopped by Ctrl-C in epoch 5 of 30"),
        (rank(), [command(exit_code=130)], "Stopped by Ctrl-C in epoch 5 of 30"),
        (rank(), [command(exit_code=1, asked="SIGINT", asked_before_s=31.0)], "Stopped by Ctrl-C in epoch 5 of 30"),
        (rank(), [command(exit_code=255, asked="SIGINT", asked_before_s=1.0)], "Stopped by Ctrl-C in epoch 5 of 30"),
    ],
)
def test_ctrl_c_is_a_note_that_fails_no_gate_and_passes_none(process, events, text):
    found = analyse(recorded(process, events=events))
    (finding,) = (each for each in found.findings if RULES[each.rule].ending)
    assert (finding.severity, found.ending.name, ending_words(found.ending)) == ("info", "interrupted", text)
    assert f"{text}." in found.verdict.text
    results = compare((), dataclasses.replace(found, findings=(finding,)), default_gates(baseline=False)).gates
    outcomes = {result.gate.statistic: result.outcome for result in results if result.gate.metric == "findings"}
    assert (outcomes["critical"], outcomes["warning"]) == ("not measured", "not measured")  # of a part of a run


def test_ctrl_c_before_the_first_epoch_and_after_the_last():
    early = dataclasses.replace(
        rank(ended="exception", error="KeyboardInterrupt"), phases=(Phase("startup", None, 10.0, END, "inside"),)
    )
    assert [finding.summary for finding in ends(recorded(early))] == ["Stopped by Ctrl-C before its first epoch"]
    last = rank(ended="exception", error="KeyboardInterrupt", last=("final evaluation", None, ""))
    (over,) = ends(recorded(last))
    assert over.summary == "Stopped by Ctrl-C in the final evaluation, after all of its epochs"
    assert over.advice == ()  # ultralytics has taken from last.pt what a resume needs
    (after,) = ends(recorded(rank(ended="finished", end=90.0), events=[command(signal="SIGINT")]))
    assert (after.rule, after.severity) == ("command-ended", "info")


def test_slurm_says_what_it_may_have_been():
    events = [command(signal="SIGTERM")]
    (finding,) = ends(recorded(rank(), events=events, slurm_job_id="12345"))
    assert finding.summary == (
        "SIGTERM ended the command: its Slurm job was cancelled, preempted or over its time limit"
    )
    assert (finding.severity, "sacct" in finding.advice[0].text) == ("critical", True)
    (other,) = ends(recorded(rank(), events=events))
    assert other.summary == "SIGTERM ended the command"
    (crash,) = ends(recorded(rank(), events=[command(signal="SIGSEGV")], slurm_job_id="12345"))
    assert crash.summary == "SIGSEGV ended the command"


def test_a_command_that_fails_after_its_training_is_another_matter():
    (finding,) = ends(recorded(rank(ended="finished", end=90.0), events=[command(exit_code=1)]))
    assert finding.summary == "The command ended with exit code 1, after its training had finished"
    assert finding.severity == "warning"
    two = [dataclasses.replace(rank(ended="finished", end=end), run=number) for number, end in ((1, 50.0), (2, 90.0))]
    (finding,) = ends(recorded(*two, events=[command(exit_code=1)]))
    assert finding.summary == "The command ended with exit code 1, after 2 trainings had finished"
    (finding,) = ends(recorded(rank(ended="finished", end=119.0), events=[command(100.0, exit_code=1)]))
    assert finding.summary == "The command ended with exit code 1; its training continued without it, and finished"


@pytest.mark.parametrize(
    ("training", "title", "is_cut_short"),
    [
        (rank(ended="finished", end=90.0), "Command cut short after its work", False),
        (rank(ended="early stop", end=90.0), "Command cut short after its work", False),
        (rank(), "Training cut short", True),
    ],
)
def test_only_a_training_that_did_not_come_to_its_end_is_called_cut_short(training, title, is_cut_short):
    found = analyse(recorded(training, events=[command(signal="SIGTERM")]))
    changes = compare_findings([dataclasses.replace(found, findings=())], found)
    assert [finding_words(change) for change in changes if change.ids == ("ended-1",)] == [title]
    assert bool(cut_short(found)) == is_cut_short
    assert found.verdict.text.startswith("SIGTERM ended the command")


# --- the OOM killer

MEMORY = {"memory_available_mib": [50_000.0] * 100 + [1_000.0] * 20, "cgroup_memory_used_mib": 90_000.0}


@pytest.mark.parametrize(
    ("fields", "seen", "confidence"),
    [
        ({"signal": "SIGKILL"}, {"kernel": log(killed_line(109.5))}, 0.97),
        ({"exit_code": 137}, {"kernel": log(killed_line(109.5))}, 0.97),  # a shell between us and it
        ({"exit_code": 1}, {"kernel": log(killed_line(109.5))}, 0.97),  # a launcher that lost a rank
        ({"signal": "SIGKILL"}, {"kernel": log(killed_line(109.5, pid=70_041))}, 0.85),  # a container's other pids
        ({"signal": "SIGKILL"}, {"events": [oom_event(112.0, "cgroup")]}, 0.9),
        ({"exit_code": 1}, {"events": [oom_event(112.0, "cgroup")]}, 0.9),
        ({"signal": "SIGKILL"}, {"events": [oom_event(112.0, "machine")]}, 0.75),
        ({"exit_code": 137}, {"events": [oom_event(108.0, "machine"), oom_event(108.0, "cgroup")]}, 0.9),
    ],
)
def test_the_oom_killer_is_named_by_its_log_or_its_counters(fields, seen, confidence):
    events = [command(**fields), *seen.get("events", ())]
    run = recorded(rank(), events=events, kernel=seen.get("kernel"), host=MEMORY, memory_mib=100_000.0)
    (finding,) = ends(
        dataclasses.replace(run, recording=dataclasses.replace(run.recording, memory_limit_mib=100_000.0))
    )
    assert finding.summary == "The kernel's OOM killer ended the training: host memory ran out"
    assert (finding.cause.name, finding.cause.runner_up) == ("run-ended", "memory-pressure")
    assert finding.cause.confidence == confidence
    assert len(finding.kernel_events) == ("kernel" in seen)
    numbers = texts(finding)
    assert numbers["host memory in use in the last minute, at most"] == 99
    assert numbers["memory limit in use in the last minute (cgroup, page cache included)"] == 90
    assert "host memory" in finding.advice[0].text
    assert analyse(run).verdict.text.startswith(
        "The kernel's OOM killer ended the training: host memory ran out (epoch 5 of 30)."
    )


def test_a_limit_that_was_reached_is_told_from_a_machine_without_memory():
    limit = dataclasses.replace(killed_line(109.5), at_limit=True)
    (finding,) = ends(recorded(rank(), events=[KILL], kernel=log(limit)))
    assert finding.summary == ("The kernel's OOM killer ended the training: its container's memory limit was reached")


@pytest.mark.parametrize(
    ("fields", "seen"),
    [
        ({"signal": "SIGTERM"}, {"kernel": log(killed_line(109.5, pid=70_041))}),  # somebody else's
        ({"exit_code": 1}, {"events": [oom_event(112.0, "machine")]}),
        ({"signal": "SIGKILL"}, {"kernel": log(killed_line(79.0))}),  # long before
        ({"signal": "SIGKILL"}, {"events": [oom_event(79.0, "cgroup")]}),
        ({"signal": "SIGKILL"}, {"kernel": log(dataclasses.replace(killed_line(109.5), pid=None))}),
        ({"signal": "SIGKILL"}, {"events": [oom_event(112.0, "moon")]}),
    ],
)
def test_a_kill_of_something_else_is_not_the_trainings(fields, seen):
    events = [command(**fields), *seen.get("events", ())]
    (finding,) = ends(recorded(rank(), events=events, kernel=seen.get("kernel")))
    assert "OOM killer ended" not in finding.summary


@pytest.mark.parametrize(
    ("amp", "advice"),
    [
        (True, "Turn off `torch.autograd.set_detect_anomaly`: with AMP"),
        (None, "Turn off `torch.autograd.set_detect_anomaly`"),
        ("bf16", "Lower the learning rate"),  # nothing scales its gradients
        (False, "Lower the learning rate"),
    ],
)
def test_a_nan_gradient_ends_a_training_only_as_anomaly_detection_is_on(amp, advice):
    crashed = rank(ended="exception", error="RuntimeError", amp=amp)
    (finding,) = ends(recorded(dataclasses.replace(crashed, raised=Raised(code=NAN_GRADIENT))))
    assert finding.summary == "The training crashed: anomaly detection was on and met a NaN gradient (RuntimeError)"
    assert [each.text.startswith(advice) for each in finding.advice] == [True]


def test_the_line_that_switched_anomaly_detection_on_is_named():
    place = SettingLocation("detect_anomaly", "/home/me/train.py", 8)
    crashed = rank(ended="exception", error="RuntimeError", amp=True)
    crashed = dataclasses.replace(crashed, raised=Raised(code=NAN_GRADIENT), setting_locations=(place,))
    (finding,) = ends(recorded(crashed))
    assert finding.advice[0].text.startswith("Turn off `torch.autograd.set_detect_anomaly` (train.py:8): with AMP")


@pytest.mark.parametrize(("cache", "named"), [("ram", True), (True, True), ("disk", False), (None, False)])
def test_a_killed_worker_is_told_of_cached_images_only_where_they_are(cache, named):
    crashed = rank(ended="exception", error="RuntimeError", cache=cache)
    (finding,) = ends(recorded(dataclasses.replace(crashed, raised=Raised(loader_worker="SIGKILL"))))
    assert [("cache=ram" in each.text, "`workers`" in each.text) for each in finding.advice] == [(named, True)]


T_S = np.arange(float(SECONDS))
KEPT = 20_000.0 + 100.0 * np.clip(T_S - 10, 0, END - 12)  # until the kill frees it


@pytest.mark.parametrize(
    ("used_mib", "rises"),
    [
        (np.where(T_S < END - 2, KEPT, 20_000.0), True),
        (np.where(T_S < END - 8, KEPT, 20_000.0), True),  # its trainer took so long to see it
        (np.where(T_S < END - 15, KEPT, 20_000.0), False),
        (np.where(T_S < END - 2, np.minimum(KEPT, 26_000.0), 20_000.0), False),  # workers that started, and no more
        (np.where(T_S < END - 2, 20_000.0 + (KEPT - 20_000.0) / 4, 20_000.0), False),
    ],
)
def test_where_host_memory_rose_until_a_worker_was_killed_fewer_workers_only_delay_it(used_mib, rises):
    """Copies that a data set kept of each image: 3 GiB a second in six workers (H200, 2026-11-27)."""
    crashed = dataclasses.replace(rank(ended="exception", error="RuntimeError"), raised=Raised(loader_worker="SIGKILL"))
    (finding,) = ends(recorded(crashed, host={"memory_used_mib": used_mib}))
    assert (finding.advice[0].short.startswith("Find what each data-loader worker keeps: host memory rose")) == rises


def test_a_worker_that_was_killed_ends_its_trainer_with_an_exception():
    died = rank(ended="exception", error="RuntimeError")
    (finding,) = ends(recorded(died, kernel=log(killed_line(108.0, pid=99))))
    assert finding.summary == (
        "The training crashed (RuntimeError); the kernel had just killed a process to free host memory"
    )
    assert len(finding.kernel_events) == 1
    (other,) = ends(recorded(rank(ended="exception", error="ValueError"), kernel=log(killed_line(108.0, pid=99))))
    assert other.summary == "The training crashed (ValueError)"
    (cuda,) = ends(recorded(rank(ended="exception", error="OutOfMemoryError"), events=[oom_event(108.0, "cgroup")]))
    assert cuda.summary == "The training ran out of GPU memory"


# --- killed with no sign why


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"kernel": log()}, "it was not the kernel's OOM killer"),
        ({"oom_kills": {"machine": 0}}, "it was not the kernel's OOM killer"),
        ({"oom_kills": {"cgroup": 0}}, "unknown who sent it"),  # it may be in another group
        ({}, "unknown who sent it"),
        ({"host": MEMORY, "memory_mib": 100_000.0}, "host memory was full"),
        ({"host": {**MEMORY, "memory_available_mib": 4_000.0}, "memory_mib": 100_000.0}, "unknown who sent it"),
        ({"host": {"cgroup_memory_used_mib": 99.0}, "memory_limit_mib": 100.0}, "unknown who sent it"),  # page cache
        (
            {"host": {"cgroup_memory_used_mib": 99.0, "cgroup_memory_pressure_pct": 20.0}, "memory_limit_mib": 100.0},
            "host memory was full",
        ),
    ],
)
def test_a_kill_without_a_sign_says_what_is_known_of_it(known, words):
    (finding,) = ends(recorded(rank(), events=[KILL], **known))
    read = "was not" in words
    known_of_it = ": a user or a program sent it, not the kernel's OOM killer" if read else ""
    assert finding.summary == f"SIGKILL ended the command{known_of_it}"
    assert words in finding.cause.explanation
    assert [advice.text for advice in finding.advice] == [WHO_KILLED if read else "sudo dmesg"]


@pytest.mark.parametrize(
    ("fields", "severity", "words"),
    [
        ({"signal": "SIGINT"}, "info", "Ctrl-C was pressed"),
        ({"exit_code": 1, "asked": "SIGTERM", "asked_before_s": 2.0}, "critical", "somebody asked it to end"),
        ({"exit_code": 1, "asked": "SIGTERM", "asked_before_s": 600.0}, "critical", "exit code 1"),
        ({"signal": "SIGTERM"}, "critical", "asked it to end"),
        ({"exit_code": 139}, "critical", "it crashed"),
        ({"exit_code": 255}, "critical", "the command ended with exit code 255"),
        ({"exit_code": True}, "critical", "exit code True"),
    ],
)
def test_what_a_signal_means_is_said(fields, severity, words):
    (finding,) = ends(recorded(rank(), events=[command(**fields)]))
    assert finding.severity == severity
    assert words in finding.cause.explanation


GONE = (30.0, 0, 41, "python3", 900.0, "appeared", "trainer", NAN), (END, 0, 41, "python3", NAN, "gone", "trainer", NAN)


def test_a_process_that_goes_without_a_word_is_told_where_no_command_was_started():
    (finding,) = ends(recorded(rank(), processes=GONE, ended_by="signal"))
    assert (finding.summary, finding.end_t_s) == ("The training's process disappeared", END)
    (killed,) = ends(recorded(rank(), processes=GONE, ended_by="signal", kernel=log(killed_line(109.0))))
    assert killed.summary.endswith("; the kernel had just killed a process to free host memory")
    assert ends(recorded(rank(ended="finished"), processes=GONE, ended_by="signal")) == []
    early = ((30.0, 0, 41, "python3", NAN, "gone", "trainer", NAN),)
    assert ends(recorded(rank(), processes=early, ended_by="signal")) == []


def test_a_last_line_that_was_lost_is_no_bad_end():
    run = recorded(rank(), processes=GONE, events=[command(END + 2, exit_code=0)])
    assert ends(run) == []
    ending = analyse(run).ending
    assert (ending.name, ending_words(ending)) == ("unknown", "It is unknown how it ended, in epoch 5 of 30")
    (killed,) = ends(dataclasses.replace(run, events=(*run.events, oom_event(END + 1, "cgroup"))))
    assert "free host memory" in killed.summary


def test_one_killed_in_the_middle_of_a_script_is_told_beside_the_good_end_of_the_next():
    killed = rank(end=50.0, run=1)
    gone = ((50.0, 0, 41, "python3", NAN, "gone", "trainer", NAN),)
    good = dataclasses.replace(rank(ended="finished", run=2), pid=50)
    (finding,) = ends(recorded(killed, good, processes=gone, events=[command(exit_code=0)]))
    assert (finding.summary, finding.end_t_s) == ("The training's process disappeared", 50.0)


def test_a_recording_that_breaks_off_is_an_end_only_where_memory_was_full():
    full = {"host": MEMORY, "memory_mib": 100_000.0, "ended_by": None}
    (finding,) = ends(recorded(rank(), **full))
    assert finding.summary == "The recording stopped while host memory was full"
    assert ends(recorded(rank(), **{**full, "memory_mib": None})) == []
    assert ends(recorded(rank(), **{**full, "source": "nvidia-smi"})) == []
    assert ends(recorded(rank(), **{**full, "ended_by": "duration"})) == []


# --- hangs

HUNG = {"duration": 300, "util": 100.0}


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ((), "The training hung in epoch 5: it reported nothing for its last 3 min 30 s"),
        ([command(280.0, signal="SIGINT")], "The training hung in epoch 5 for 3 min 30 s, until Ctrl-C"),
    ],
)
def test_a_training_that_stopped_telling_hung(events, words):
    run = recorded(
        rank(end=280.0, heard=70.0),
        events=events,
        host={"main_cpu_pct": 100.0, "trainer_stopped": 0.0},
        **HUNG,
    )
    (finding,) = ends(run)
    assert finding.summary == words
    numbers = texts(finding)
    assert numbers["it reported nothing for"] == 210
    assert numbers["utilisation of GPU 0 meanwhile"] == pytest.approx(100)
    assert numbers["CPU of the main process meanwhile"] == 100
    assert "processes paused by a signal (mean)" not in numbers


def test_a_training_that_a_signal_had_stopped_did_not_hang_by_itself():
    host = {"trainer_stopped": [0.0] * 71 + [9.0] * 229}
    (left,) = ends(recorded(rank(end=280.0, heard=70.0), host=host, **HUNG))
    assert left.summary == "The training was paused by a signal in epoch 5: it reported nothing for its last 3 min 30 s"
    run = recorded(rank(end=280.0, heard=70.0), events=[command(280.0, signal="SIGKILL")], host=host, **HUNG)
    text = "SIGKILL ended the command, after it had been paused by a signal in epoch 5 for 3 min 30 s"
    assert [finding.summary for finding in ends(run)] == [text]
    assert ending_words(analyse(run).ending) == text  # which names the epoch itself


def test_an_exception_after_a_long_silence_was_a_hang():
    (finding,) = ends(recorded(rank(ended="exception", error="DistBackendError", end=280.0, heard=70.0), **HUNG))
    assert (
        finding.summary == "The training hung in epoch 5 for 3 min 30 s, then crashed: communication between its "
        "processes failed (DistBackendError)"
    )


def test_what_nccl_said_of_a_timeout_is_proof_and_no_headline():
    said = "WorkNCCL(SeqNum=81233, Timeout(ms)=600000) ran for 600021 milliseconds"
    died = rank(ended="exception", error="DistBackendError", end=280.0, heard=70.0)
    died = dataclasses.replace(died, raised=Raised(bases=("DistError",), message=said))
    (finding,) = ends(recorded(died, **HUNG))
    assert said not in finding.summary
    assert said in finding.cause.explanation


@pytest.mark.parametrize(
    ("waits", "seconds"),
    [
        ([(40.0, 40.5), (92.0, 110.0)], 18.0),
        ([(40.0, 45.0), (92.0, 110.0)], None),  # under 5 times the longest before
        ([(92.0, 104.0)], None),  # which was over before it was stopped
        ([(101.0, 110.0)], None),  # shorter than a drop
        ([], None),
    ],
)
def test_a_wait_for_the_loader_that_never_ended_is_a_hang(waits, seconds):
    context = build_context(recorded(rank(ended="exception", error="KeyboardInterrupt")), Options())
    context.signals._loading[None] = interval_cover(waits or np.empty((0, 2)))
    hung = find_endless_wait(context, context.rank_groups[0], END)
    assert (hung and hung.seconds) == seconds
    (ended,) = bad_endings(context)
    said = "The training hung in epoch 5 for 18 s, waiting for the data loader, until Ctrl-C"
    assert (ended.summary == said) is (seconds is not None)
    assert ended.severity == ("warning" if seconds else "info")


def test_a_hang_that_ended_a_training_has_one_length_in_the_verdict():
    ended = Finding("ended-1", "run-ended", "critical", None, 280.0, 280.0, "It hung, then crashed.")
    ended = dataclasses.replace(ended, evidence=(Evidence("it reported nothing for", 210.0, "s", key=HUNG_KEY),))
    wait = Finding("waiting-1", "waiting-for-peer", "critical", 0, 82.0, 281.0, "All waited.")
    before = dataclasses.replace(wait, id="waiting-2", start_t_s=20.0, end_t_s=60.0)
    assert in_hang([ended, wait, before]) == {"waiting-1"}
    assert in_hang([wait, before]) == frozenset()


@pytest.mark.parametrize(
    ("process", "hung"),
    [
        (rank(end=280.0, heard=221.0), False),  # 59 s
        (rank(end=280.0, heard=215.0), True),  # 65 s
        (rank(end=280.0, last=("validation", 5, ""), before=(("validation", 4, 40.0),)), True),  # 220 s
        (rank(end=280.0, last=("validation", 5, ""), before=(("validation", 4, 50.0),)), False),  # 210 s
        (rank(end=280.0, last=("validation", 5, ""), before=()), False),  # nobody knows how long one takes
        (rank(end=280.0, last=("final evaluation", None, "")), False),
        (rank(end=280.0, last=("startup", None, "data set"), before=()), False),  # it may take hours
        (rank(end=280.0, last=("startup", None, "first batch"), before=()), False),
        (rank(ended="finished", end=280.0, heard=70.0), False),
        (dataclasses.replace(rank(end=280.0), progress=()), False),  # an older recording tells of no batches
    ],
)
def test_silence_is_a_hang_only_where_work_is_never_so_silent(process, hung):
    assert len(ends(recorded(process, **HUNG))) == hung


def test_a_training_that_goes_on_when_the_recording_ends_is_no_end():
    run = recorded(rank(), ended_by="duration")
    assert ends(run) == []
    ending = analyse(run).ending
    assert (ending.name, ending_words(ending)) == (
        "going on",
        "It still ran when the recording ended, in epoch 5 of 30",
    )


def test_a_training_that_is_still_being_recorded_has_not_seen_the_end_of_its_recording():
    run = recorded(rank(), ended_by=None, goes_on=True)
    analysis = analyse(run)
    assert ending_words(analysis.ending) == "It is still running, in epoch 5 of 30"
    (obstacle,) = cut_short_obstacle(analysis, "The run")
    assert (obstacle.kind, obstacle.text) == (
        "cut short",
        "The run is still being recorded: it is still running, in epoch 5 of 30",
    )


# --- a later training


def two_trainings(**later):
    """Return a run whose first training crashed in epoch 5, and whose second one finished in epoch 30."""
    first = rank(ended="exception", error="ValueError", end=50.0, save_dir="/runs/train", resumed=False)
    second = dataclasses.replace(
        first,
        pid=42,
        settings={**first.settings, **later},
        phases=(Phase("train", 5, 70.0, 80.0, "inside"), Phase("train", 30, 80.0, END, "inside")),
        ended="finished",
        error=None,
    )
    path = YoloRun(1, "/runs/train", {}, "none", None)
    saved = dataclasses.replace(
        first, phases=(*first.phases[:-1], Phase("checkpoint", 4, 22.0, 23.0, "inside"), *first.phases[-1:])
    )
    return dataclasses.replace(recorded(saved, second), yolo_runs=(path,))


def test_a_crash_that_was_resumed_is_no_end_and_leads_nothing():
    analysis = analyse(two_trainings(resumed=True))
    (finding,) = [finding for finding in analysis.findings if RULES[finding.rule].ending]
    assert (finding.severity, finding.was_resumed) == ("warning", True)
    assert finding.summary == "The training crashed (ValueError), in epoch 5, and was resumed"
    assert not any(advice.resume for advice in finding.advice)
    assert analysis.ending.name == "finished"
    kinds = [sentence.kind for sentence in analysis.verdict.sentences]
    assert "resumed" in kinds[1:]
    assert not {"ended", "resume"}.intersection(kinds)


@pytest.mark.parametrize("was_resumed", [False, True])
def test_memory_that_ran_out_is_said_with_the_end_or_alone_where_that_was_resumed(was_resumed):
    grew = Finding("memory-1", "memory-growth", "warning", None, 10.0, 50.0, "Memory grew", ran_out=True)
    ended = Finding("ended-1", "run-ended", "warning", None, 50.0, 50.0, "It ended", was_resumed=was_resumed)
    assert [each.findings for each in other_findings([grew, ended], [])] == [("memory-1",)] * was_resumed


@pytest.mark.parametrize("later", [{"resumed": False}, {"resumed": True, "save_dir": "/runs/train-2"}])
def test_a_crash_before_another_training_is_still_one_in_its_own_epoch(later):
    analysis = analyse(two_trainings(**later))
    (finding,) = [finding for finding in analysis.findings if RULES[finding.rule].ending]
    assert (finding.severity, finding.was_resumed) == ("critical", False)
    is_there = "save_dir" in later  # else the later training has written over its weights
    assert any(advice.resume for advice in finding.advice) == is_there
    assert analysis.verdict.sentences[0].text == "The training crashed (ValueError) (epoch 5)."


# --- the certificate


@pytest.mark.parametrize(
    ("process", "events", "name", "text"),
    [
        (rank(ended="finished", last=("train", 30, "")), (), "finished", "It finished all 30 epochs"),
        (rank(ended="finished"), (), "finished", "It stopped at its time limit (`time=`) in epoch 5 of 30"),
        (
            rank(ended="early stop"),
            (),
            "early stop",
            "It stopped early after epoch 5 of 30: no better result for 3 epochs (patience)",
        ),
        (rank(ended="early stop", patience=100), (), "early stop", "It stopped early after epoch 5 of 30"),
        (rank(), [KILL], "failed", "SIGKILL ended the command, in epoch 5 of 30"),
        (rank(epochs="x"), [KILL], "failed", "SIGKILL ended the command, in epoch 5"),
        (
            rank(ended="exception", error="OutOfMemoryError"),
            (),
            "failed",
            "The training ran out of GPU memory, in epoch 5 of 30",
        ),
    ],
)
def test_a_certificate_says_how_when_and_how_far(process, events, name, text):
    run = recorded(process, events=events, host=MEMORY, memory_mib=100_000.0)
    ending = analyse(run).ending
    assert (ending.name, ending_words(ending), ending.t_s) == (name, text, END)
    asked = process.settings["epochs"]
    assert (ending.epoch, ending.epochs) == (process.phases[-1].epoch, asked if asked == 30 else None)
    numbers = {evidence.text: evidence.value for evidence in ending.last_minute}
    assert numbers["GPU 0 busy"] == pytest.approx(90)
    assert numbers["memory of that GPU in use, at most"] == pytest.approx(99.5, abs=0.1)
    assert numbers["host memory in use, at most"] == 99


def seen(epochs, args, *, exit_code=None, events=()):
    """Return a run that told nothing from inside: rows of results.csv every 10 s."""
    rows = [(epoch, 10.0 + 10 * epoch) for epoch in range(1, epochs + 1)]
    run = make_run(readings((0, 10), (90, 110)), rows=rows, events=events)
    metric = {1: 0.5}
    scored = tuple(
        dataclasses.replace(row, metrics={**row.metrics, "metrics/mAP50-95(B)": metric.get(row.epoch, 0.1)})
        for row in run.epoch_rows
    )
    recording = dataclasses.replace(run.recording, exit_code=exit_code)
    return dataclasses.replace(
        run, epoch_rows=scored, yolo_runs=(YoloRun(1, None, args, "recorded", None),), recording=recording
    )


@pytest.mark.parametrize(
    ("run", "name", "text"),
    [
        (seen(6, {"epochs": 6}), "finished", "It finished all 6 epochs"),
        (
            seen(6, {"epochs": 30, "patience": 5}),
            "early stop",
            "It stopped early after epoch 6 of 30: no better result for 5 epochs (patience)",
        ),
        (seen(6, {"epochs": 30, "time": 0.001}), "finished", "It stopped at its time limit (`time=`) in epoch 6 of 30"),
        (seen(6, {"epochs": 30}), "unknown", "It is unknown how it ended, after epoch 6 of 30"),
        (
            seen(6, {"epochs": 30}, events=[command(signal="SIGTERM")]),
            "failed",
            "SIGTERM ended the command, after epoch 6 of 30",
        ),
        (seen(6, {}), "unknown", "It is unknown how it ended, after epoch 6"),
    ],
)
def test_a_training_that_told_nothing_is_known_by_its_results(run, name, text):
    ending = analyse(run).ending
    assert (ending.name, ending_words(ending), ending.epoch) == (name, text, 6)


def test_the_verdict_says_that_a_training_stopped_early():
    stopped = analyse(seen(6, {"epochs": 30, "patience": 5})).verdict.text
    assert "The training stopped early after epoch 6 of 30: no better result for 5 epochs (patience)." in stopped
    assert "early" not in analyse(seen(6, {"epochs": 6})).verdict.text


def test_a_command_without_a_training_has_an_end_where_it_was_a_bad_one():
    bare = make_run(readings((0, 10), (90, 110)), events=[command(exit_code=3)])
    assert ending_words(analyse(bare).ending) == "The command ended with exit code 3"
    assert analyse(make_run(readings((0, 10), (90, 110)))).ending is None


@pytest.mark.parametrize("at_s", [-0.5, 0.0, 50.0])  # it may be over before the first sample
def test_an_end_is_a_moment(at_s):
    ended = RecordedEvent(at_s, "command_ended", None, {"exit_code": 1})
    (finding,) = [f for f in analyse(make_run([0.0] * 60, events=[ended])).findings if f.rule == "run-ended"]
    assert (finding.start_t_s, finding.end_t_s) == (at_s, at_s)


def test_who_asked_a_command_to_end_is_to_be_found():
    (finding,) = ends(recorded(rank(), events=[command(signal="SIGTERM")]))
    assert [each.short for each in finding.advice if not each.resume] == [WHO_ASKED]
    (killed,) = ends(recorded(rank(), events=[command(signal="SIGSEGV")]))
    assert WHO_ASKED not in [each.short for each in killed.advice]

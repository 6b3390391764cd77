"""The one sentence: it calls nothing healthy beside a bad end, another process or a set-up at odds, and says which."""

import dataclasses
from datetime import datetime

import pandas as pd
import pytest
from support.runs import PROCESSES, make_run, readings
from support.samples import analysis_of, run_of

from gpu_report.analyse import analyse
from gpu_report.analyse.build_context import build_context
from gpu_report.analyse.results.verdict import sentences
from gpu_report.analyse.results.verdict.leads.from_drops import drop_leads
from gpu_report.analyse.results.verdict.leads.from_steady_state import steady_leads
from gpu_report.analyse.results.verdict.leads.lead import Lead
from gpu_report.analyse.results.verdict.work import with_cause
from gpu_report.catalogue import USER_CODE_KEY
from gpu_report.model import (
    Advice,
    Cause,
    CodeLocation,
    Evidence,
    Finding,
    InsideEpoch,
    InsideRun,
    KernelEvent,
    Options,
    Phase,
    RecordedEvent,
    Sentence,
    YoloRun,
)
from gpu_report.render.formatting import ledger_words
from gpu_report.render.run.summary_json import build_summary
from gpu_report.render.run.terminal import render_text
from gpu_report.render.what_to_change import listed_changes

NAN = float("nan")
BUSY = "the GPU was busy 90 % of training time"
FINE = f"Nothing to fix: {BUSY}. GPU utilisation never dropped unexpectedly."


def trained(util=90.0, **settings):
    run = make_run(readings((0, 10), (util, 110)))
    phases = (Phase("startup", None, 0.0, 10.0, "inside"), Phase("train", 1, 10.0, 120.0, "inside"))
    return dataclasses.replace(run, inside=(InsideRun(1, 0, 41, "train", settings, phases, (), "finished"),))


def with_guest(run):
    came, went = (
        (20.0, 0, 77, "python3", 900.0, "appeared", "other", 86.0),
        (60.0, 0, 77, "", NAN, "gone", "other", NAN),
    )
    table = pd.DataFrame([dict(zip(PROCESSES, row, strict=True)) for row in (came, went)], columns=PROCESSES)
    return dataclasses.replace(run, processes=table)


def machine(run, **known):
    return dataclasses.replace(run, recording=dataclasses.replace(run.recording, **known))


def killed(run):
    ended = RecordedEvent(120.0, "command_ended", None, {"signal": "SIGKILL"})
    (inside,) = run.inside
    return dataclasses.replace(run, events=(ended,), inside=(dataclasses.replace(inside, ended=None),))


KILLED = (
    "SIGKILL ended the command: a user or a program sent it, not the kernel's OOM killer (epoch 1). "
    "Find who killed it: kill -9, a scheduler at its limit, a container that was stopped."
)


def test_a_run_that_nothing_mars_is_called_healthy():
    assert analyse(trained()).verdict.text == FINE


def test_a_function_of_the_users_is_to_be_looked_at_once_beside_what_switches_it_on():
    at = CodeLocation("main", "seen", "/home/me/usage.py", 13, 0.77)
    number = Evidence("its share of training time", 74.0, "%", key=USER_CODE_KEY)
    said = Cause("main-process", 0.9, "a debugger followed each line of Python")
    off = Advice("Train without a debugger", short="Train without a debugger")
    own = Finding("user-code-1", "user-code", "warning", 0, 20.0, 90.0, "It.", evidence=(number,), where=(at,))
    starved = Finding("starved-1", "starved", "warning", 0, 20.0, 90.0, "It.", cause=said, where=(at,), advice=(off,))
    context = build_context(trained(util=10.0), Options())
    assert [lead.sentence.text for lead in steady_leads(context, [starved, own], (), None)] == [
        "Train without a debugger."
    ]
    (alone,) = steady_leads(context, [starved], (), None)
    assert alone.sentence.text.startswith("Look at `seen` (usage.py:13)")


def test_a_warning_that_no_sentence_is_about_leads():
    left = RecordedEvent(119.0, "left_behind", None, {"pids": [7], "gpus": [0]})
    said = analyse(dataclasses.replace(trained(), events=(left,))).verdict.text
    assert said.startswith("Stop what still runs on GPU 0 (`ps -p 7` shows it). 1 process (pid 7) kept running")
    assert "Nothing to fix" not in said


@pytest.mark.parametrize(
    ("run", "verdict"),
    [
        (killed(trained()), f"{KILLED} T{BUSY[1:]}."),
        (
            with_guest(trained()),
            f"Keep python3 (pid 77) off GPU 0: it was there for 40 s. T{BUSY[1:]}, but 35 % of that "
            "was another process's work.",
        ),
        (
            machine(
                trained(data_folder="/data/coco", workers=8, prefetch=4, batch=16, imgsz=640),
                shm_total_mib=64.0,
            ),
            FINE,  # a note mars nothing
        ),
    ],
)
def test_no_run_is_called_healthy_beside_what_marred_it(run, verdict):
    assert analyse(run).verdict.text == verdict


def test_a_set_up_at_odds_is_told_before_the_work():
    run = machine(trained(util=0.0, torch="2.13.0+cpu", device="cpu"), cuda="13.0")
    odds = "The training ran on the CPU, not on GPU 0 (NVIDIA H200): torch 2.13.0+cpu has no CUDA."
    install = (
        "Install torch and torchvision with CUDA, 13.0 at most, which is what the driver supports, and train again."
    )
    assert analyse(run).verdict.text == f"{odds} {install} No GPU worked during this recording."


def with_a_slow_epoch(epoch_s):
    """Return a run in which the fourth of six epochs took twice as long."""
    phases, epochs, t_s = [Phase("startup", None, 0.0, 10.0, "inside")], [], 10.0
    for number, times in enumerate([1, 1, 1, 2, 1, 1], 1):
        length = times * epoch_s
        phases.append(Phase("train", number, t_s, t_s + length, "inside"))
        epochs.append(InsideEpoch(number, 1, t_s, t_s + length, 100, 10, 0.0, 0.0, 0.0))
        t_s += length
    inside = InsideRun(1, 0, 41, "train", {}, tuple(phases), tuple(epochs), "finished")
    return dataclasses.replace(make_run(readings((0, 10), (90, 7 * epoch_s))), inside=(inside,))


def test_a_slow_epoch_is_told_after_the_work():
    slow = "Training in epoch 4 took 40.0 s (typical: 20.0 s)."
    assert analyse(with_a_slow_epoch(20.0)).verdict.text == f"Little to fix: {BUSY}. {slow}"


def test_what_is_critical_is_not_little():
    run = with_a_slow_epoch(1200.0)
    assert [finding.severity for finding in analyse(run).findings] == ["critical"]
    lead = "Find what slowed some epochs: it cost about 20 min of training."
    assert analyse(run).verdict.text.startswith(f"{lead} T{BUSY[1:]}. Training in epoch 4 took 40 min")


def test_what_another_program_did_to_itself_does_not_mar_a_training():
    fault = KernelEvent(50.0, "segfault", "warning", "x", "a program crashed")
    run = make_run(readings((0, 10), (90, 110)), rows=[(1, 60), (2, 120)], kernel=[fault])
    assert analyse(run).verdict.text == f"A program crashed. T{BUSY[1:]}. GPU utilisation never dropped unexpectedly."


def test_the_kernels_line_of_a_kill_is_not_said_again_after_the_end():
    kill = KernelEvent(
        119.0, "oom", "critical", "Killed process 41", "host memory ran out: x", pid=41, process="python3"
    )
    run = killed(trained())
    run = dataclasses.replace(run, kernel=dataclasses.replace(run.kernel, events=(kill,)))
    end = "The kernel's OOM killer ended the training: host memory ran out (epoch 1)."
    less = "Use less host memory (fewer workers, no cache=ram)."
    assert analyse(run).verdict.text == f"{end} {less} T{BUSY[1:]}."


def test_a_low_utilisation_is_read_as_ever_beside_what_marred_the_run():
    assert "The GPU was busy only 30 % of training time." in analyse(killed(trained(util=30.0))).verdict.text


def test_a_run_with_an_unexpected_drop_is_not_called_healthy():
    run = make_run(readings((0, 10), (90, 50), (0, 20), (90, 40)), rows=[(1, 115)])
    assert analyse(run).verdict.text.startswith(
        "1 drop in GPU utilisation took 20 s; the cause is unknown. The GPU was busy 74 % of training time."
    )


def test_training_too_short_to_judge_is_not_said_to_have_no_drop():
    run = make_run(readings((0, 112), (90, 8)))
    assert analyse(run).verdict.text == "Too short to judge: the GPU worked for only 8 s."


def test_the_one_gpu_of_several_that_trained_is_named():
    run = make_run([readings((0, 10), (90, 110)), readings((0, 120))])
    assert analyse(run).verdict.text.startswith("Nothing to fix: GPU 0 was busy 90 % of")


@pytest.mark.parametrize(
    ("start_s", "said"), [(600, "Start-up took 10 min (33 % of the recorded GPU time)."), (200, "")]
)
def test_a_long_start_is_said_of_a_healthy_training(start_s, said):
    text = analyse(make_run(readings((0, start_s), (90, 1200)), rows=[(1, start_s + 1200)])).verdict.text
    assert text.startswith("Nothing to fix: ")
    assert ("Start-up" in text, said in text) == (bool(said), True)


def held_up(seconds):
    """Return three epochs seen from outside, in which the GPU stood still for `seconds` of each 60."""
    util = [2.0 if t % 60 < seconds else 95.0 for t in range(0, 3630, 15)]
    run = make_run([0.0, *util], interval_s=15.0, rows=[(n, 15 + 1210 * n) for n in (1, 2, 3)])
    return dataclasses.replace(run, yolo_runs=(YoloRun(1, None, {"val": False}, "recorded", None),))


def test_what_a_gpu_waited_for_unseen_may_be_a_fault():
    said = analyse(held_up(15)).verdict.text
    assert said.startswith(
        "No clear fix found: the GPU was busy 72 % of training time. It hardly worked for 15 min of it (25 %)."
    )
    assert "record the next training" in said
    assert analyse(held_up(0)).verdict.text.startswith("Nothing to fix: ")


def test_what_a_process_of_somebody_elses_did_is_told_after_the_training():
    fault = KernelEvent(50.0, "xid", "warning", "x", "a bad address", "", 0, 31, 99, "python3")
    epochs = tuple(InsideEpoch(n, 1, t_s, t_s + 50.0, 10, 1, 0.1, 0.1, 0.1) for n, t_s in ((1, 10.0), (2, 65.0)))
    phases = tuple(Phase("train", epoch.epoch, epoch.start_t_s, epoch.end_t_s, "inside") for epoch in epochs)
    run = make_run(readings((0, 10), (90, 110)), rows=[(1, 60), (2, 115)], kernel=[fault])
    said = analyse(dataclasses.replace(run, inside=(InsideRun(1, 0, 41, "train", {}, phases, epochs),))).verdict.text
    assert said.startswith("Nothing to fix: the GPU was busy 90 %")
    assert said.endswith("Xid 31 on GPU 0 came from python3 (pid 99), not this training.")


def test_a_gpu_that_only_waits_for_another_counts_as_idle_and_is_told_with_what_it_waits_for():
    late, spins = (readings((0, 10), (80, 50), (percent, 15), (80, 45)) for percent in (0, 100))
    power = [90.0] * 10 + [500.0] * 50 + [121.0] * 15 + [500.0] * 45
    run = make_run([spins, late], rows=[(1, 40), (2, 115)], quantities={"power_w": power})
    assert analyse(run).verdict.text.startswith(
        "1 drop in GPU utilisation took 15 s; the cause is unknown. 2 GPUs were busy 69 % of training time. "
        "Meanwhile GPU 0 waited for GPU 1: nvidia-smi shows this wait as 100 % busy."
    )


def test_startup_is_told_beside_the_largest_loss_of_training():
    said = analyse(make_run(readings((0, 60), (50, 60)), rows=[(1, 60), (2, 118)])).verdict.text
    assert "Start-up took " in said
    assert " of the recorded GPU time, short idle gaps in training 25 %." in said


def test_a_few_readings_are_no_proof_that_nothing_worked():
    said = "Too little was recorded to say whether a GPU worked: 1 reading in 0 s, 95 % at most."
    assert analyse(make_run([95.0], duration_s=0.0)).verdict.text == said
    assert analyse(make_run([0.0, 0.0])).verdict.text == "No GPU worked during this recording."
    crashed = make_run([0.0] * 30 + [17.0] + [0.0] * 30)
    assert analyse(crashed).verdict.text == "The GPU hardly worked: it was 17 % busy at most."
    nothing = make_run([float("nan")] * 20)
    assert analyse(nothing).verdict.text.startswith("Unknown whether a GPU worked")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (8, "Too little was recorded to say whether a GPU worked: 8 readings in 8 s, 0 % at most."),
        (20, "No GPU worked in the 20 s that were measured. 80 % of the time was not measured: what happened then is"),
        (98, "No GPU worked during this recording."),
    ],
)
def test_an_idle_beginning_is_no_proof_that_nothing_worked(seconds, said):
    assert analyse(make_run(readings((0, seconds)), duration_s=100.0)).verdict.text.startswith(said)


def test_of_a_log_that_knows_no_training_nothing_is_said_of_startup_or_batches():
    run = make_run(readings((50, 120)))
    verdict = analyse(run).verdict.text
    assert "busy only 50 % of the 2 min recorded" in verdict
    assert "steps" not in verdict
    assert "steps" not in render_text(analyse(run))
    assert "Short idle gaps in training" in render_text(
        analyse(make_run(readings((50, 120)), rows=[(1, 60), (2, 120)]))
    )


def test_a_drop_that_two_gpus_felt_at_once_is_one():
    felt = readings((0, 5), (90, 60), (0, 20), (90, 60))
    analysis = analyse(make_run([felt, felt]))
    assert analysis.verdict.text.startswith("1 drop in GPU utilisation took 20 s")
    assert len([each for each in analysis.findings if each.rule == "drop"]) == 1


@pytest.mark.parametrize(
    ("rule", "count", "said"),
    [
        ("sustained-low", 1, "1 drop in GPU utilisation took 20 s"),
        ("drop", 2, "2 drops in GPU utilisation took 40 s"),
        ("slow-validation", 1, "Slow validation took 20 s"),
        ("slow-validation", 3, "Slow validation (3 times) took 60 s"),
    ],
)
def test_what_took_time_for_no_known_reason_is_called_what_it_is(rule, count, said):
    (drop,) = (f for f in analyse(make_run(readings((90, 100), (5, 20), (90, 100)))).findings if f.rule == "drop")
    alike = [
        dataclasses.replace(drop, id=f"{rule}-{n}", rule=rule, start_t_s=100.0 * n, end_t_s=100.0 * n + 20)
        for n in range(count)
    ]
    (lead,) = drop_leads(build_context(make_run(readings((90, 400))), Options()), alike, (), 1)
    assert lead.sentence.text == f"{said}; the cause is unknown."


def test_drops_are_counted_once_however_short_some_are():
    long = [(90, 2000), (5, 90)] * 3
    verdict = analyse(make_run(readings(*long, (90, 2000), (5, 12), (90, 2000)))).verdict.text
    assert "4 drops in GPU utilisation took 4 min 40 s; the cause is unknown." in verdict
    assert "unexpected drop" not in verdict


@pytest.mark.parametrize(
    ("source", "way_out"),
    [("gpustat", "log every 3 s"), ("dcgm-exporter", "let dcgm-exporter collect and Prometheus scrape every 3 s")],
)
def test_drops_too_short_to_see_are_others_than_those_found(source, way_out):
    run = make_run(readings((0, 15), (90, 300), (0, 75), (90, 120), interval_s=15), interval_s=15)
    coarse = dataclasses.replace(run.recording, source=source, interval_s=15.0)
    said = analyse(dataclasses.replace(run, recording=coarse)).verdict.text
    assert "Not checked" not in said
    assert f"Drops under 45 s cannot be seen in readings 15 s apart; {way_out}." in said


def test_a_gpu_that_others_used_for_a_moment_is_not_called_never_used():
    rows = (
        (1.0, 0, 41, "python3", 900.0, "appeared", "trainer", 86.0),
        (1.0, 1, 77, "python3", 900.0, "appeared", "other", 50.0),
        (3.0, 1, 77, "", NAN, "gone", "other", NAN),
    )
    table = pd.DataFrame([dict(zip(PROCESSES, row, strict=True)) for row in rows], columns=PROCESSES)
    one = trained()
    run = make_run([readings((0, 10), (90, 110)), readings((50, 1), (0, 119))])
    said = analyse(dataclasses.replace(run, inside=one.inside, processes=table)).verdict.text
    assert "GPU 1 was not part of this training: another process used it (0 % busy)." in said
    assert "never used" not in said


def test_a_gpu_that_only_another_process_used_is_said_once():
    said = [each.text for each in analysis_of("s-shared-gpu").verdict.sentences if "GPU 1" in each.text]
    assert said == ["GPU 1 was not part of this training: another process used it (58 % busy)."]


@pytest.mark.parametrize("owners", [(), ("trainer",)])
def test_a_gpu_that_nobody_seen_kept_busy_is_neither_the_trainings_nor_unused(owners):
    """As in a container, where processes of others do not show; callbacks name the GPU of the only rank."""
    run = run_of("s-shared-gpu")
    seen = dataclasses.replace(run, processes=run.processes[run.processes["owner"].isin(owners)])
    analysis = analyse(seen)
    said = [each.text for each in analysis.verdict.sentences if "GPU 1" in each.text]
    assert said == ["GPU 1 was not part of this training: something else used it (58 % busy)."]
    assert [gpu.of_others for gpu in analysis.gpus] == [False, True]
    assert {ledger_words(row, analysis) for row in analysis.ledger if row.name == "idle"} == {"Idle, outside training"}
    assert sum(row.gpu_seconds for row in analysis.ledger) == pytest.approx(run.duration_s)


@pytest.mark.parametrize(
    ("cause", "sentences"),
    [
        ("images came late", ["The GPU was busy 9 % of training time, because images came late."]),
        (
            "the program python3 of user eve (40 processes) used 15 of 16 CPU cores",
            [
                "The GPU was busy 9 % of training time.",
                "The program python3 of user eve (40 processes) used 15 of 16 CPU cores.",
            ],
        ),
    ],
)
def test_a_long_cause_is_a_sentence_of_its_own(cause, sentences):
    said = list(with_cause("work", "The GPU was busy 9 % of training time", ("", cause), ("starved-1",)))
    assert [each.text for each in said] == sentences
    assert said[-1].findings == ("starved-1",)


@pytest.mark.parametrize(
    ("start", "end", "said"),
    [
        ({"retired_pages_pending": 0}, {"retired_pages_pending": 1}, "a bad memory page is retired at the next reboot"),
        ({"row_remap_pending": 1}, None, "a bad memory row is remapped at the next reset"),
        ({"row_remap_failed": 1}, {}, "have the card replaced"),
        ({"row_remap_pending": 1}, {"row_remap_pending": 0}, ""),  # somebody reset it meanwhile
        (None, None, ""),
    ],
)
def test_memory_that_went_bad_is_for_an_administrator(start, end, said):
    run = trained()
    gpus = tuple(dataclasses.replace(gpu, health_start=start, health_end=end) for gpu in run.gpus)
    sentences = [
        each.text
        for each in analyse(dataclasses.replace(run, gpus=gpus)).verdict.sentences
        if each.kind == "GPU health"
    ]
    assert len(sentences) == bool(said)
    assert all(text.startswith("On GPU 0 ") and said in text for text in sentences)


RECORD = "record the next training with `gpu-report record -- COMMAND`"


def test_a_wait_that_a_log_from_outside_cannot_explain_names_the_recording_that_would():
    outside = make_run(readings((0, 10), (20, 300)))
    assert RECORD in analyse(outside).verdict.text
    assert RECORD not in analyse(machine(outside, command=("python", "train.py"))).verdict.text
    assert RECORD not in analyse(make_run(readings((0, 10), (90, 300)))).verdict.text


@pytest.mark.parametrize(("trained_s", "is_foretold"), [(8, False), (110, True)])
def test_after_a_crash_in_the_first_seconds_nothing_is_foretold(trained_s, is_foretold, monkeypatch):
    lead = Lead(Sentence("fix", "Set `batch=64`."), 5.0)
    monkeypatch.setattr(sentences, "leads", lambda *_: [lead])
    run = make_run(readings((0, 10), (90, trained_s)))
    ended = RecordedEvent(10.0 + trained_s, "command_ended", None, {"signal": "SIGKILL"})
    assert ("batch" in analyse(dataclasses.replace(run, events=(ended,))).verdict.text) is is_foretold


@pytest.mark.parametrize(("ended_by", "told"), [(None, True), ("signal", False)])
def test_training_that_went_on_after_the_recorder_was_killed_is_told_and_not_covered(ended_by, told):
    run = machine(trained(), ended_by=ended_by)
    (inside,) = run.inside
    epochs = (
        InsideEpoch(1, 1, 10.0, 110.0, 640, 10, 1.0, 0.1, 0.1),
        InsideEpoch(2, 1, 110.0, 160.0, 640, 10, 1.0, 0.1, 0.1),
    )
    analysis = analyse(dataclasses.replace(run, inside=(dataclasses.replace(inside, epochs=epochs),)))
    assert ("The recorder was killed: the last 40 s of training have no readings." in analysis.verdict.text) is told
    assert (analysis.coverage < 0.8) is told


def test_a_gpu_that_waits_beside_busy_ones_is_named_and_nothing_is_called_fine():
    text = analyse(
        make_run([readings((0, 10), (97, 600)), readings((0, 10), (98, 600)), readings((0, 10), (26, 600))])
    ).verdict.text
    assert text.startswith("No clear fix found: 3 GPUs were busy 74 %")
    assert "GPU 2 was busy only 26 %." in text


def slept(*seconds, at_s=60.0):
    events = tuple(RecordedEvent(at_s, "suspend", None, {"seconds": each}) for each in seconds)
    return analyse(dataclasses.replace(trained(), events=events))


@pytest.mark.parametrize(
    ("seconds", "said"), [((1800.0, 1800.0), "the machine slept for 1 h of this training"), ((20.0, None), "")]
)
def test_a_machine_that_slept_for_most_of_a_training_leads(seconds, said):
    """What takes most of the time comes first, and what to do about it is what to change."""
    analysis = slept(*seconds)
    text = analysis.verdict.text
    assert said in text
    assert text.startswith("Keep the machine awake while it trains: ") == bool(said)
    assert text.count("slept") == bool(said)
    assert any("systemd-inhibit" in each.text for each in listed_changes(analysis)) == bool(said)
    found = [each for each in analysis.findings if each.rule == "environment"]
    assert [each.span for each in found] == [(60.0, 60.0)] * bool(said)  # not of the whole training


def test_the_length_of_a_recording_is_that_of_the_clock_on_the_wall():
    analysis = slept(1800.0, 1800.0)
    assert "1 h 2 min, asleep for 1 h of it" in render_text(analysis)
    said = build_summary(analysis)["run"]
    assert (said["duration_s"], said["slept_s"]) == (120, 3600)
    start, end = (datetime.fromisoformat(said[name]) for name in ("start", "end"))
    assert (end - start).total_seconds() == 3720


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), 1e300, -1800.0, "1800", None])
def test_a_length_that_no_sleep_has_is_none(seconds):
    assert "slept" not in slept(seconds).verdict.text


def test_a_sleep_outside_of_the_training_does_not_lead():
    analysis = slept(1800.0, at_s=-5.0)
    assert "nothing ran: prevent its suspend." in analysis.verdict.text
    assert not analysis.verdict.text.startswith("Keep")


@pytest.mark.parametrize(
    ("name", "said"),
    [("NVIDIA H100 MIG 3g.40gb", "GPU 0:2 (MIG 3g.40gb)"), (None, "GPU 0:2 (MIG device)")],
)
def test_a_mig_device_has_the_name_that_people_know(name, said):
    run = trained()
    (gpu,) = run.gpus
    device = dataclasses.replace(gpu, index=1002, name=name, parent_index=0, mig_index=2)
    samples = run.samples.assign(gpu=1002)
    words = analyse(dataclasses.replace(run, gpus=(gpu, device), samples=samples)).verdict.text
    assert said in words
    assert "GPU 1002" not in words

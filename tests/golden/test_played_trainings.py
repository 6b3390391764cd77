"""Trainings that nobody can record here, and what a report must say of each (support/played_training.py)."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from support.matching import is_alarm
from support.played_folder import write_played
from support.played_training import Card, Low, Played, play
from support.played_yolo import MONO_S

from gpu_report.analyse import analyse
from gpu_report.analyse.compare import compare
from gpu_report.analyse.compare.gate_syntax import default_gates
from gpu_report.load import load_run
from gpu_report.model import Analysis
from gpu_report.render.run.summary_json import build_summary

T4 = Card("Tesla T4", memory_mib=15360, limit_w=70.0, idle_w=10.0, clock_mhz=1590)
STARVED = Played(
    epochs=5,
    train_s=300,
    inside=True,
    ring=True,
    train_pct=25,
    train_w=120,
    validation_pct=70,
    validation_w=220,
    cores=64,
    workers=2,
    worker_cpu_pct=97,
    data_wait_share=0.72,
    main_cpu_pct=45,
)
OUTSIDE = Played(epochs=40, train_s=300, validation_s=60, ring=True, validation_pct=20)
DAY = Played(epochs=70, train_s=1160, validation_s=60, checkpoint_s=4, validation_pct=25, inside=True)
LONG = Played(epochs=22, validation_s=30, inside=True, interval_s=5.0)  # the mosaic closes with epoch 13
TRAININGS = {
    "starved, validation of 20 s": replace(STARVED, validation_s=20),
    "starved, validation of 31 s": replace(STARVED, validation_s=31),
    "validation of 60 s, 5 % jitter": replace(OUTSIDE, validation_jitter=0.05),
    "validation of 20 s, 10 % jitter": replace(OUTSIDE, train_s=120, validation_s=20, validation_jitter=0.1),
    "validation from 120 to 40 s": replace(
        OUTSIDE,
        train_s=580,
        validation_of=lambda epoch: 40 + 80 * 2.718 ** (-(epoch - 1) / 5),
        validation_w=150,
        checkpoint_s=4,
        ring=False,
    ),
    "a reading every 5 s": replace(OUTSIDE, epochs=25, validation_s=36, interval_s=5.0, ring=False),
    "validation four times the training": Played(
        epochs=6, train_s=60, validation_s=240, ring=True, validation_pct=30, validation_w=120
    ),
    "epochs of 2 s": Played(
        epochs=200, train_s=1.2, validation_s=0.6, checkpoint_s=0.3, ring=True, train_pct=60, images=128
    ),
    "a T4 at its limit": Played(
        epochs=6,
        train_s=300,
        validation_s=40,
        card=T4,
        train_w=69,
        validation_w=60,
        train_pct=99,
        validation_pct=85,
        noise_pct=1,
        train_clock_mhz=900,
        train_clock_reasons=4,
        validation_clock_mhz=1590,
        inside=True,
    ),
    "a T4 that idles half of the time": Played(
        epochs=6,
        train_s=300,
        validation_s=40,
        card=T4,
        train_w=40,
        validation_w=60,
        train_pct=50,
        validation_pct=85,
        train_clock_mhz=900,
        train_clock_reasons=4,
        validation_clock_mhz=1590,
        inside=True,
        images=16000,
    ),
    "a callback busy in Python": Played(
        epochs=8, ring=True, inside=True, lows=(Low(150, 170), Low(300, 318)), low_main_cpu_pct=101
    ),
    "no utilisation": Played(epochs=6, has_utilisation=False, inside=True),
    "no utilisation, starved": Played(
        epochs=6,
        has_utilisation=False,
        inside=True,
        workers=2,
        worker_cpu_pct=97,
        main_cpu_pct=45,
        data_wait_share=0.72,
    ),
    "slower from epoch 10 on": replace(LONG, train_of=lambda epoch: 900 if epoch < 10 else 1400),
    "slow for four epochs": replace(LONG, train_of=lambda epoch: 1400 if 7 <= epoch <= 10 else 1100),
    "a day, one stall": replace(DAY, lows=(Low(40000, 40130),)),
    "a day, many stalls": replace(DAY, lows=tuple(Low(t_s, t_s + 39) for t_s in range(2000, 84000, 600))),
}
HEALTHY = [
    "validation of 60 s, 5 % jitter",
    "validation of 20 s, 10 % jitter",
    "validation from 120 to 40 s",
    "a reading every 5 s",
]
NEAR = 0.1  # phases may be so far off ...
EDGE_S = 1.0  # ... or this much an epoch, seen from outside


@pytest.fixture(scope="module")
def examined(tmp_path_factory):
    """Return a function that plays a training and returns what it was and what is said of it, once each."""
    known = {}

    def of(name):
        if name not in known:
            folder = tmp_path_factory.mktemp("played") / "run"
            known[name] = write_played(folder, TRAININGS[name]), analyse(load_run(folder))
        return known[name]

    return of


def alarms(analysis):
    return [finding for finding in analysis.findings if is_alarm(finding)]


def share_of(analysis, row):
    return sum(each.share for each in analysis.ledger if each.name == row)


def phase_s(analysis, name):
    return sum(phase.duration_s for phase in analysis.phases if phase.name == name)


@pytest.mark.parametrize("name", [name for name in TRAININGS if name.startswith("starved")])
def test_a_starved_training_is_starved_by_its_loader_and_no_row_of_drops(examined, name):
    _, analysis = examined(name)
    (finding,) = alarms(analysis)
    assert (finding.rule, finding.severity, finding.cause.name) == ("starved", "warning", "input-cpu")
    assert "workers" in [advice.argument for advice in finding.advice]


@pytest.mark.parametrize("name", HEALTHY)
def test_validations_that_vary_are_no_alarm(examined, name):
    _, analysis = examined(name)
    assert alarms(analysis) == []


@pytest.mark.parametrize("name", ["validation four times the training", *HEALTHY])
def test_phases_are_told_from_outside(examined, name):
    training, analysis = examined(name)
    for phase in ("train", "validation"):
        edges_s = EDGE_S * training.played.epochs
        assert phase_s(analysis, phase) == pytest.approx(training.seconds_of(phase), rel=NEAR, abs=edges_s)


def test_long_validations_are_nothing_critical(examined):
    _, analysis = examined("validation four times the training")
    assert [finding for finding in alarms(analysis) if finding.severity == "critical"] == []
    assert analysis.verdict.text.startswith("Set `val=False` (now True): validation, saving and callbacks take 80 %")


def test_long_validations_lead_where_arguments_are_unknown(tmp_path):
    write_played(tmp_path / "run", TRAININGS["validation four times the training"])
    run = load_run(tmp_path / "run")
    text = analyse(replace(run, yolo_runs=tuple(replace(each, args={}) for each in run.yolo_runs))).verdict.text
    assert text.startswith("Validate on fewer images, or less often: validation, saving and callbacks take 80 %")


def test_the_validations_of_short_epochs_are_told(examined):
    training, analysis = examined("epochs of 2 s")
    assert phase_s(analysis, "validation") == pytest.approx(training.seconds_of("validation"), rel=NEAR)


def test_a_card_at_its_limit_by_design_loses_nothing_that_could_be_won(examined):
    _, analysis = examined("a T4 at its limit")
    (finding,) = (finding for finding in analysis.findings if finding.rule == "power-cap")
    assert finding.severity == "info"
    assert share_of(analysis, "power-cap") == 0


def test_a_card_that_draws_far_less_than_its_limit_is_not_held_by_it(examined):
    _, analysis = examined("a T4 that idles half of the time")
    assert [finding.rule for finding in alarms(analysis)] == ["starved"]
    assert share_of(analysis, "power-cap") == 0


def test_a_busy_callback_is_the_main_process(examined):
    _, analysis = examined("a callback busy in Python")
    assert [finding.cause.name for finding in alarms(analysis)] == ["main-process"] * 2


def test_without_utilisation_callbacks_tell_the_time(examined):
    training, analysis = examined("no utilisation")
    assert share_of(analysis, "validation") == pytest.approx(
        training.seconds_of("validation") / training.duration_s, rel=NEAR
    )
    assert share_of(analysis, "unmeasured") < 0.9
    assert "100 %" not in analysis.verdict.text
    assert {each.rule for each in analysis.not_checked} >= {"drop", "starved"}


def test_without_utilisation_a_wait_for_data_has_its_cause(examined):
    _, analysis = examined("no utilisation, starved")
    (finding,) = alarms(analysis)
    assert (finding.rule, finding.cause.name) == ("starved", "input-cpu")
    assert share_of(analysis, "input-cpu") == pytest.approx(0.72 * share_of_training(analysis), rel=NEAR)


def share_of_training(analysis: Analysis) -> float:
    return phase_s(analysis, "train") / analysis.run.duration_s


def test_a_stall_of_two_minutes_in_a_day_is_a_warning(examined):
    _, analysis = examined("a day, one stall")
    (finding,) = alarms(analysis)
    assert (finding.rule, finding.severity) == ("drop", "warning")
    assert finding.span == pytest.approx((40000, 40130), abs=2)
    assert compare((), analysis, default_gates(baseline=False)).outcome == "passed"


def test_what_recurs_is_one_finding(examined):
    training, analysis = examined("a day, many stalls")
    found = [each for each in build_summary(analysis)["findings"] if not each["expected"]]
    (finding,) = (each for each in found if each["rule"] != "slow-validation")  # lows in two validations: those, too
    assert finding["severity"] == "critical"  # 6 % of the training went there
    assert len(finding["occurrences"]) == pytest.approx(len(training.played.lows), rel=NEAR)


def test_what_slows_long_epochs_for_good_is_told_from_its_first_one(examined):
    """The last ten have no mosaic: beside each other alone they are as long as usual."""
    _, analysis = examined("slower from epoch 10 on")
    (finding,) = alarms(analysis)
    assert finding.rule == "epochs-slowing"
    assert "from epoch 10 on" in finding.summary


def test_what_slowed_a_few_long_epochs_is_no_trend(examined):
    _, analysis = examined("slow for four epochs")
    (finding,) = alarms(analysis)
    assert (finding.rule, finding.epoch) == ("slow-epoch", 7)
    assert "each of epochs 7 to 10" in finding.summary


def _with_slow_storage(folder, training, epochs):
    """Let the loader wait for storage in the training of some epochs, in what the host says."""
    host = pd.read_csv(folder / "host.csv")
    trains = [epoch for epoch in training.epochs if epoch.number in epochs]
    slow = np.any([host.mono_s.between(MONO_S + e.train_s, MONO_S + e.validation_s) for e in trains], axis=0)
    for name, value in {"io_pressure_pct": 65, "io_full_pressure_pct": 40, "workers_blocked": 5}.items():
        host.loc[slow, name] = value
    host.loc[slow, ["main_cpu_pct", "busiest_worker_cpu_pct", "workers_cpu_pct"]] = 60, 30, 200
    host.to_csv(folder / "host.csv", index=False)


def _slow_storage(folder, epochs, falls=(), **changes):
    """Return what is said of four GPUs whose loader waits for storage in some epochs, with falls in some of these."""
    played = Played(gpus=4, ring=True, train_of=lambda epoch: 120 if epoch in epochs else 60, **changes)
    timed = play(played).epochs
    slow = [Low(each.train_s, each.validation_s, 55) for each in timed if each.number in epochs]
    deep = [Low(timed[n - 1].train_s + 20, timed[n - 1].train_s + 34, 3) for n in falls]
    training = write_played(folder, replace(played, lows=(*slow, *deep)))
    _with_slow_storage(folder, training, epochs)
    return analyse(load_run(folder))


def test_falls_within_slow_storage_are_of_slow_storage_on_all_gpus(tmp_path):
    """It lasts from epoch 3 on: what is typical is that, and a fall is compared with it."""
    found = alarms(_slow_storage(tmp_path / "run", range(3, 11), falls=(4, 6, 8)))
    assert {each.cause.name for each in found} == {"input-storage"}
    assert {each.gpus for each in found} == {(0, 1, 2, 3)}


def test_the_verdict_names_all_gpus_that_a_fall_was_felt_on(tmp_path):
    said = _slow_storage(tmp_path / "run", range(3, 6), falls=(3, 4, 5), inside=True, data_wait_share=0.1).verdict.text
    assert "Utilisation of GPUs 0 to 3 fell" in said
    assert "of GPU 0 fell" not in said

"""Faults of a third round of played trainings, cut down to what each was about (docs/accuracy.md)."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from support.matching import is_alarm
from support.played_folder import write_played
from support.played_training import Low, Played, Stall, play
from support.played_yolo import MONO_S, PID, line

from gpu_report.analyse import analyse
from gpu_report.load import load_run
from gpu_report.model import Analysis, Finding

LONG = Played(epochs=12, train_s=300, validation_s=45, inside=True, ring=True, interval_s=2.0)


def alarms(analysis: Analysis) -> list[Finding]:
    return [finding for finding in analysis.findings if is_alarm(finding)]


def analysed(folder: Path, played: Played) -> Analysis:
    write_played(folder, played)
    return analyse(load_run(folder))


def test_saving_that_takes_minutes_each_fifth_epoch_is_found_behind_a_validation_that_rests_the_gpu(tmp_path):
    """The drop begins with the validation, which is no training that it reaches into."""
    played = replace(LONG, checkpoint_of=lambda epoch: 200 if epoch % 5 == 0 else 9)
    found = alarms(analysed(tmp_path / "run", played))
    assert {each.rule for each in found} == {"slow-checkpoint"}
    assert [round(each.lost_gpu_s) for each in found] == [191, 191]


def test_epochs_that_slow_while_pytorch_empties_its_cache_are_of_full_gpu_memory(tmp_path):
    """The main process computes in each retry, so that it looked like a callback that grows."""
    played = replace(LONG, epochs=10, train_of=lambda epoch: 300 + 15 * epoch, memory_mib=23700)
    training = write_played(tmp_path / "run", played)
    _tell_retries(tmp_path / "run", [(each.validation_s, 40 * each.number) for each in training.epochs])
    found = analyse(load_run(tmp_path / "run"))
    assert "Lower `batch`" in found.verdict.text
    assert "main process" not in found.verdict.text
    slowing = next(f for f in found.findings if f.rule == "epochs-slowing")
    assert "emptied its cache 360 times" in slowing.advice[0].text  # since the first epoch, which is compared with none


@pytest.mark.parametrize("in_epoch", [3, 12])
def test_what_emptied_the_cache_before_epochs_were_slow_is_no_cause_of_them(tmp_path, in_epoch):
    played = replace(LONG, epochs=20, train_of=lambda epoch: 400 if epoch in range(10, 15) else 300)
    training = write_played(tmp_path / "run", played)
    _tell_retries(tmp_path / "run", [(training.epochs[in_epoch - 1].validation_s, 600)])
    (slow,) = (f for f in analyse(load_run(tmp_path / "run")).findings if f.rule == "slow-epoch")
    assert ["Lower `batch`" in each.text for each in slow.advice] == ([True] if in_epoch == 12 else [])


def _tell_retries(folder: Path, counts: list[tuple[float, int]]) -> None:
    told = [line(at_s, "settings", memory_retries=count) for at_s, count in counts]
    with (folder / "inside" / f"{PID}.jsonl").open("a") as file:
        file.writelines(f"{json.dumps(each)}\n" for each in told)


@pytest.mark.parametrize(
    ("inside", "after", "severity", "every", "begins"),
    [
        (False, (10, 20, 30, 40, 50), "warning", 10, "Look at what runs every 10 epochs (callbacks, an evaluation"),
        (True, (10, 20, 30, 40, 50), "warning", 10, "Look at what runs every 10 epochs (callbacks, an evaluation"),
        (False, (10, 20, 40, 50), "warning", 10, "Look at what runs every 10 epochs (callbacks, an evaluation"),
        (False, (9, 20, 33, 36, 51), "critical", None, "Look at what the main process did"),
    ],
)
def test_what_comes_after_every_tenth_epoch_is_planned(tmp_path, inside, after, severity, every, begins):
    """An evaluation of one's own takes 150 s of Python; what befalls a training by itself keeps to no epochs."""
    played = Played(epochs=55, train_s=120, main_cpu_pct=60, low_main_cpu_pct=100, inside=inside)
    played = replace(played, checkpoint_of=lambda epoch: 152 if epoch in after else 2)
    rows = [each.row_s + 2 for each in play(played).epochs if each.number in after]
    found = analysed(tmp_path / "run", replace(played, lows=tuple(Low(row_s, row_s + 150) for row_s in rows)))
    (finding,) = alarms(found)
    assert (finding.severity, finding.cause.name, finding.every_epochs) == (severity, "main-process", every)
    assert finding.summary.endswith("in all, every 10 epochs" if every else "in all")
    assert found.verdict.text.startswith(begins)


def test_a_lower_clock_makes_validations_longer_and_no_drops_seen_from_outside(tmp_path):
    """The ends of epochs are fitted to be alike, so that what is longer lies before them."""
    slow = range(6, 10)
    played = Played(
        epochs=14,
        train_of=lambda epoch: 800 if epoch in slow else 400,
        validation_of=lambda epoch: 140 if epoch in slow else 100,
        interval_s=5.0,
        validation_pct=40,
        noise_pct=15,
    )
    training = write_played(tmp_path / "run", played)
    _with_clock(tmp_path / "run", [(training.epochs[5].start_s, training.epochs[8].end_s)], mhz=1350, watts=150)
    found = alarms(analyse(load_run(tmp_path / "run")))
    assert {each.rule for each in found} == {"lower-clock"}


def _with_clock(folder: Path, spans: list[tuple[float, float]], mhz: float, watts: float) -> None:
    """Lower the clock of work in some stretches."""
    path = folder / "samples.csv"
    rows = pd.read_csv(path)
    t_s = rows["mono_s"] - MONO_S
    low = np.any([(t_s >= start) & (t_s < end) for start, end in spans], axis=0) & (rows["gpu_util_pct"] > 0)
    rows.loc[low, ["sm_clock_mhz", "power_w"]] = mhz, watts
    rows.to_csv(path, index=False)


@pytest.mark.parametrize("validation_pct", [30, 75])
def test_a_stall_in_one_of_two_epochs_is_all_that_coarse_readings_tell(tmp_path, validation_pct):
    """They show no validation to compare with; the final one is as long, and means spread what the stall took."""
    played = Played(epochs=2, train_s=1500, validation_s=200, final_s=200, interval_s=30.0, final_pct=30,
                    validation_pct=validation_pct, stall=Stall(2, 0.3, 400))  # fmt: skip
    (found,) = alarms(analysed(tmp_path / "run", played))
    assert found.duration_s == pytest.approx(400, abs=30)


@pytest.mark.parametrize(("fast", "said"), [((1, 2), "; epochs 1 to 2 trained 2.0\u00d7 faster"), ((), "")])
def test_a_training_that_waits_says_which_epochs_did_not(tmp_path, fast, said):
    """Such as those whose images came from memory, before something else took it."""
    host = {"cores": 64, "workers": 2, "worker_cpu_pct": 97, "data_wait_share": 0.6, "main_cpu_pct": 45}
    played = replace(LONG, epochs=16, train_of=lambda epoch: 150 if epoch in fast else 300, train_pct=35, **host)
    (found,) = [each for each in analysed(tmp_path / "run", played).findings if each.rule == "starved"]
    assert found.summary.partition("could not keep up")[2] == said

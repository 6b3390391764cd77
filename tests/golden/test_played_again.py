"""Faults of a third round of played trainings, cut down to what each was about (docs/accuracy.md)."""

import json
from dataclasses import replace
from pathlib import Path

from support.matching import is_alarm
from support.played_folder import write_played
from support.played_training import Played
from support.played_yolo import PID, line

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
    told = [line(each.row_s, "settings", memory_retries=40 * each.number) for each in training.epochs]
    with (tmp_path / "run" / "inside" / f"{PID}.jsonl").open("a") as file:
        file.writelines(f"{json.dumps(each)}\n" for each in told)
    found = analyse(load_run(tmp_path / "run"))
    assert "Lower `batch`" in found.verdict.text
    assert "main process" not in found.verdict.text
    assert "emptied its cache 400 times" in next(f for f in found.findings if f.rule == "epochs-slowing").advice[0].text

"""Faults of a third round of played trainings, cut down to what each was about (docs/accuracy.md)."""

from dataclasses import replace
from pathlib import Path

from support.matching import is_alarm
from support.played_folder import write_played
from support.played_training import Played

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

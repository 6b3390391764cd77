"""A run that a recorder still writes is not said to have been killed."""

import fcntl
import shutil

from support.samples import SAMPLES

from gpu_report.load import load_run
from gpu_report.model import Recording
from gpu_report.render.formatting import how_it_ended


def test_a_recorder_that_holds_the_samples_goes_on(tmp_path):
    shutil.copytree(SAMPLES / "n-starved", tmp_path / "run")
    assert not load_run(tmp_path / "run").recording.goes_on
    with (tmp_path / "run" / "samples.csv").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert load_run(tmp_path / "run").recording.goes_on


def test_its_end_is_that_there_is_none_yet():
    assert how_it_ended(Recording(goes_on=True)) == "still being recorded"
    assert "killed" in how_it_ended(Recording())

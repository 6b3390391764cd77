"""others.csv as it comes back: programs of others on the run's clock, without what cannot be."""

import math

import pytest

from gpu_report.load.limits import Limits
from gpu_report.load.other_programs import load_other_programs
from gpu_report.load.run_clock import Boot, RunClock
from gpu_report.model import OtherProgram

CLOCK = RunClock((Boot(0.0, 1000.0, 0.0),))
HEAD = "wall_s,mono_s,seconds,name,user,pid,processes,cpu_pct,on_trainer_cores_pct\n"
GOOD = "12,1012,2,stress-ng,bob,4711,40,3805,100\n"


@pytest.fixture
def load(tmp_path):
    def read(text, limits=Limits(3600.0)):  # noqa: B008 - frozen
        (tmp_path / "others.csv").write_text(HEAD + text)
        return load_other_programs(tmp_path / "others.csv", CLOCK, 100.0, limits)

    return read


def test_a_row_is_of_the_time_before_it(load):
    programs, problems = load("104,1104,6,gzip,1002,12,1,99.5,\n" + GOOD)
    assert problems == ()
    assert programs == (
        OtherProgram(10.0, 12.0, "stress-ng", "bob", 4711, 40, 3805.0, 1.0),
        OtherProgram(98.0, 100.0, "gzip", "1002", 12, 1, 99.5, None),
    )


@pytest.mark.parametrize(
    "row",
    [
        ",,2,a,bob,1,1,100,100",
        "12,1012,0,a,bob,1,1,100,100",
        "12,1012,1e9,a,bob,1,1,100,100",
        "12,1012,2,a,bob,1.5,1,100,100",
        "12,1012,2,a,bob,1,0,100,100",
        "12,1012,2,a,bob,1,1e300,100,100",
        "12,1012,2,a,bob,1,1,1e300,100",
        "12,1012,2,a,bob,1,1,-5,100",
        "12,1012,2,a,bob,1,1,nan,100",
    ],
)
def test_what_cannot_be_is_left_out(load, row):
    assert load(f"{row}\n{GOOD}")[0] == load(GOOD)[0]


def test_a_name_is_one_line_of_some_length(load):
    ((program,), _) = load('12,1012,2,"a\n`b`  <i>' + 200 * "x" + '",,1,1,50,700\n')
    assert program.name.startswith("a `b` <i>xxx")
    assert len(program.name) <= 100
    assert program.shared is None
    assert program.who.startswith("a 'b' <i>")
    assert not math.isnan(program.cpu_pct)


def test_more_than_a_recording_can_hold_are_cut_and_said(load):
    programs, (problem,) = load(1200 * GOOD, Limits())
    assert len(programs) == 1000
    assert "1,200 rows" in problem


def test_an_older_recording_has_none(tmp_path):
    assert load_other_programs(tmp_path / "others.csv", CLOCK, 100.0) == ((), ())

"""waits.csv as it comes back: the longest row of a wait, without what cannot be one."""

import pytest

from gpu_report.load.limits import Limits
from gpu_report.load.run_clock import Boot, RunClock
from gpu_report.load.waits import load_waits
from gpu_report.model import ProcessWait

CLOCK = RunClock((Boot(0.0, 1000.0, 0.0),))
HEAD = "wall_s,mono_s,pid,role,seconds,state,channel,call,file,filesystem\n"
READ = "D,rpc_wait_bit,read,/mnt/nfs/a.npy,nfs4"


@pytest.fixture
def load(tmp_path):
    def read(text, limits=Limits(3600.0)):  # noqa: B008 - frozen
        (tmp_path / "waits.csv").write_text(HEAD + text)
        return load_waits(tmp_path / "waits.csv", CLOCK, 100.0, limits)

    return read


def test_a_wait_that_was_told_again_is_one(load):
    waits, problems = load(f"30,1030,7,worker,5,S,futex_wait,,,\n10,1010,7,main,5,{READ}\n10,1010,7,main,11.5,{READ}\n")
    assert problems == ()
    assert waits == (
        ProcessWait(10.0, 21.5, 7, "main", "D", "rpc_wait_bit", "read", "/mnt/nfs/a.npy", "nfs4"),
        ProcessWait(30.0, 35.0, 7, "worker", "S", "futex_wait"),
    )


def test_a_wait_ends_with_the_recording(load):
    ((wait,), _) = load(f"90,1090,7,main,50,{READ}\n")
    assert wait.end_t_s == 100.0


@pytest.mark.parametrize(
    "row", [f"10,1010,7.5,main,5,{READ}", f"10,1010,7,king,5,{READ}", f"10,1010,7,main,-5,{READ}", f",,7,main,5,{READ}"]
)
def test_what_cannot_be_is_left_out(load, row):
    assert load(f"{row}\n10,1010,8,main,5,{READ}\n")[0] == load(f"10,1010,8,main,5,{READ}\n")[0]


def test_more_than_a_recording_can_hold_are_cut_and_said(load):
    waits, (problem,) = load("".join(f"{n / 100},{1000 + n / 100},7,main,1,{READ}\n" for n in range(1200)), Limits())
    assert len(waits) == 1000
    assert "1,200 waits" in problem


def test_an_older_recording_has_none(tmp_path):
    assert load_waits(tmp_path / "waits.csv", CLOCK, 100.0) == ((), ())

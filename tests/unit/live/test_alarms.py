"""What goes wrong now, and the conditions that commands wait for."""

import pytest

from gpu_report.errors import UsageError
from gpu_report.live.alarms import alarms
from gpu_report.live.conditions import Condition, condition_of, happened
from gpu_report.live.report_so_far import SoFar


def kinds(run, now_s):
    return [(alarm.kind, alarm.gpu) for alarm in alarms(run, now_s)]


def keys(text, run, now_s, so_far=None):
    return [each.key for each in happened(condition_of(text), run, so_far, now_s)]


def test_a_fall_is_an_alarm_after_ten_seconds(growing, looked_at):
    growing.rows(0, 90, seconds=60)
    growing.rows(60, 2, seconds=9)
    assert kinds(*looked_at(growing, 69)) == []
    growing.rows(69, 2, seconds=2)
    run, now_s = looked_at(growing, 71)
    (alarm,) = alarms(run, now_s)
    assert (alarm.kind, alarm.text) == ("drop", "GPU 0 fell from 90 % to 2 %")
    assert keys("drop>10s", run, now_s) == keys("drop>10s", run, now_s + 1) != []
    assert keys("drop>5m", run, now_s) == []


def test_gpus_that_fall_together_are_one_event(pair, looked_at):
    pair.rows(0, 90, seconds=60)
    pair.rows(60, (2, 90))
    pair.rows(61, 2, seconds=20)
    run, now_s = looked_at(pair, 81)
    (alarm,) = alarms(run, now_s)
    assert alarm.text == "GPUs 0 and 1 fell from 90 % to 2 %"
    (what,) = happened(condition_of("drop>10s"), run, None, now_s)
    assert what.facts["GPU"] == "0,1"


def test_a_validation_is_no_drop_while_it_is_no_longer_than_others(growing, looked_at):
    growing.inside("run", 0, task="train", rank=0)
    for begin in (0, 100):
        growing.inside("phase", begin, name="train", epoch=begin // 100 + 1)
        growing.inside("phase", begin + 60, name="validation", epoch=begin // 100 + 1)
    growing.rows(0, 90, seconds=60)
    growing.rows(60, 5, seconds=40)
    assert "drop" not in dict(kinds(*looked_at(growing, 100)))
    growing.rows(100, 90, seconds=60)
    growing.rows(160, 5, seconds=55)
    assert "drop" not in dict(kinds(*looked_at(growing, 215)))
    growing.rows(215, 5, seconds=10)
    run, now_s = looked_at(growing, 225)  # 65 s; the first one took 40
    assert dict(kinds(run, now_s)) == {"drop": 0}
    assert keys("drop>1m", run, now_s) != []


def test_idle_is_said_of_all_gpus_together(pair, looked_at):
    pair.rows(0, 90, seconds=20)
    pair.rows(20, (0, 90), seconds=100)
    run, now_s = looked_at(pair, 120)
    assert "idle" not in dict(kinds(run, now_s))
    pair.rows(120, 0, seconds=100)
    run, now_s = looked_at(pair, 220)
    (what,) = happened(Condition("", "idle", 90.0), run, None, now_s)
    assert what.facts["SECONDS"] == "101"
    assert keys("idle>2m", run, now_s) == []


def test_a_recorder_that_is_gone_says_nothing_of_now(growing, looked_at):
    growing.rows(0, 0, seconds=2000)
    run, now_s = looked_at(growing, 2000)
    assert keys("idle>15m", run, now_s)
    assert keys("idle>15m", run, now_s + 600) == []


def test_memory_is_full(growing, looked_at):
    growing.rows(0, 90, seconds=3, memory_used_mib=78_500.0)
    run, now_s = looked_at(growing, 3)
    assert kinds(run, now_s) == [("memory", 0)]
    assert keys("memory>97%", run, now_s) == ["memory-0"]
    assert keys("memory>99%", run, now_s) == []


@pytest.mark.parametrize(
    ("ended", "finished", "failed"),
    [({"exit_code": 0}, True, False), ({"exit_code": 3}, False, True), ({"signal": "SIGKILL"}, False, True)],
)
def test_the_end_of_a_command_is_one_or_the_other(growing, looked_at, ended, finished, failed):
    growing.rows(0, 90)
    growing.event("command_ended", 5, **ended)
    growing.event("recording_ended", 6, ended_by="command", signal=None, exit_code=ended.get("exit_code"))
    run, now_s = looked_at(growing, 7)
    assert bool(keys("finished", run, now_s)) == finished
    assert bool(keys("failed", run, now_s)) == failed


@pytest.mark.parametrize(("how", "condition"), [("finished", "finished"), ("exception", "failed")])
def test_a_training_that_is_watched_ends_without_a_command(growing, looked_at, how, condition):
    growing.inside("run", 0, task="train", rank=0)
    growing.inside("ended", 9, how=how)
    growing.rows(0, 90, seconds=10)
    assert keys(condition, *looked_at(growing, 10))


def test_a_fatal_xid_is_what_the_analysis_says_is_one(growing, looked_at):
    growing.rows(0, 90)
    growing.event("xid", 1, gpu=0, code=79)
    run, now_s = looked_at(growing, 2)
    assert ("xid", 0) in kinds(run, now_s)
    assert keys("xid.fatal", run, now_s) == []
    found = SoFar(now_s, (), (), ("2026-11-25T12:00:00.000Z",))
    assert keys("xid.fatal", run, now_s, found) == ["xid-2026-11-25T12:00:00.000Z"]


@pytest.mark.parametrize("text", ["idle", "idle>", "idle>5", "idle>9s", "memory>97", "drop<5m", "xid", "", "rm -rf /"])
def test_what_is_no_condition_is_refused(text):
    with pytest.raises(UsageError, match="--on"):
        condition_of(text)


def test_conditions_are_read_as_they_are_written():
    assert condition_of("idle > 15m") == Condition("idle>15m", "idle", 900.0)
    assert condition_of("drop>1.5h").least == 5400.0
    assert condition_of("memory>97.5%").least == pytest.approx(0.975)

"""What goes wrong now, and the conditions that commands wait for."""

import pytest

from gpu_report.errors import UsageError
from gpu_report.live.alarms import alarms
from gpu_report.live.conditions import Condition, condition_of, happened
from gpu_report.live.report_so_far import SoFar


def kinds(run, now_s):
    return [(alarm.kind, alarm.gpu) for alarm in alarms(run, now_s)]


def keys(text, run, now_s, so_far=None):
    return [each.key for each in happened(condition_of(text), run, so_far, now_s) if each.begins]


def test_a_fall_is_an_alarm_after_ten_seconds(growing, looked_at):
    growing.rows(0, 90, seconds=60)
    growing.rows(60, 2, seconds=9)
    assert kinds(*looked_at(growing, 69)) == []
    growing.rows(69, 2, seconds=2)
    run, now_s = looked_at(growing, 71)
    (alarm,) = alarms(run, now_s)
    assert (alarm.kind, alarm.text) == ("drop", "Utilisation of GPU 0 fell from 90 % to 2 %")
    assert keys("drop>10s", run, now_s) == keys("drop>10s", run, now_s + 1) != []
    assert keys("drop>5m", run, now_s) == []


def test_gpus_that_fall_together_are_one_event(pair, looked_at):
    pair.rows(0, 90, seconds=60)
    pair.rows(60, (2, 90))
    pair.rows(61, 2, seconds=20)
    run, now_s = looked_at(pair, 81)
    (alarm,) = alarms(run, now_s)
    assert alarm.text == "Utilisation of GPUs 0 and 1 fell from 90 % to 2 %"
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
    assert what.facts["SECONDS"] == "100"
    assert keys("idle>2m", run, now_s) == []


def test_a_recorder_that_is_gone_says_nothing_of_now(growing, looked_at):
    growing.rows(0, 0, seconds=2000)
    run, now_s = looked_at(growing, 2000)
    assert keys("idle>15m", run, now_s)
    assert keys("idle>15m", run, now_s + 600) == []


def test_a_gpu_that_gives_no_reading_is_an_alarm_and_neither_idle_nor_low(growing, looked_at):
    growing.rows(0, 90, seconds=60)
    growing.rows(60, 0, seconds=5)
    nothing = dict.fromkeys(("memory_used_mib", "power_w", "temperature_c"))
    growing.rows(65, None, seconds=30, **nothing)
    run, now_s = looked_at(growing, 95)
    assert kinds(run, now_s) == [("unread", 0)]
    assert keys("drop>10s", run, now_s) == keys("idle>10s", run, now_s) == []


def test_what_was_not_sampled_counts_for_nothing(growing, looked_at):
    growing.rows(0, 90, seconds=60)
    growing.rows(60, 0, seconds=9)
    run, now_s = looked_at(growing, 68 + 4)
    assert keys("drop>10s", run, now_s) == keys("idle>10s", run, now_s) == []


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


def test_the_first_training_of_a_command_is_not_its_end(growing, looked_at):
    growing.event("command_started", 0, pid=1, command=["python", "sweep.py"])
    growing.inside("run", 0, task="train", rank=0)
    growing.inside("ended", 9, how="finished")
    growing.rows(0, 90, seconds=10)
    assert keys("finished", *looked_at(growing, 10)) == []


def test_a_gpu_without_a_reading_is_not_idle(pair, looked_at):
    pair.rows(0, (90, 0), seconds=1000)
    pair.rows(1000, (None, 0))
    run, now_s = looked_at(pair, 1001)
    assert keys("idle>10m", run, now_s) == []
    assert kinds(run, now_s) == []


def test_after_a_validation_a_drop_begins_anew(growing, looked_at):
    growing.inside("run", 0, task="train", rank=0)
    for begin in (0, 200):
        growing.inside("phase", begin, name="train", epoch=begin // 200 + 1)
        growing.inside("phase", begin + 160, name="validation", epoch=begin // 200 + 1)
    growing.rows(0, 90, seconds=160)
    growing.rows(160, 5, seconds=40)
    growing.rows(200, 90, seconds=160)
    growing.rows(360, 5, seconds=41)
    growing.inside("phase", 400, name="train", epoch=3)
    run, now_s = looked_at(growing, 401)
    assert kinds(run, now_s) == []
    assert keys("drop>30s", run, now_s) == []


def test_a_validation_beside_it_explains_no_drop(pair, looked_at):
    for pid, phase in ((7, "train"), (8, "validation")):
        pair.inside("run", 0, pid=pid, task="train", rank=0)
        pair.inside("phase", 1, pid=pid, name="train", epoch=1)
        pair.inside("phase", 60, pid=pid, name=phase, epoch=1)
    pair.rows(0, 90, seconds=60)
    pair.rows(60, (2, 30), seconds=60)
    assert ("drop", 0) in kinds(*looked_at(pair, 120))


def test_a_clock_that_is_set_makes_no_idle_hour(growing, looked_at):
    growing.rows(0, 90, seconds=100)
    growing.rows(3700, 0, seconds=20, mono_s=None)
    _set_mono(growing, 100, 100)
    run, now_s = looked_at(growing, 3720)
    assert keys("idle>15m", run, now_s) == []
    assert kinds(run, now_s) == []


def test_after_a_clock_was_set_back_the_rows_are_of_now(growing, looked_at):
    growing.rows(5000, 90, seconds=100)
    growing.rows(1500, 40, seconds=5, mono_s=None)
    _set_mono(growing, 100, 5200)
    run, now_s = looked_at(growing, 1505)
    (gpu,) = run.gpus
    assert gpu.newest["gpu_util_pct"] == 40.0
    assert run.is_of_now(gpu, now_s)


def _set_mono(growing, rows, begin_s):
    """Number the rows after so many on the recorder's own clock, a second apart."""
    path = growing.folder / "samples.csv"
    head, *lines = path.read_text().splitlines()
    for at in range(rows, len(lines)):
        wall, _, rest = lines[at].split(",", 2)
        lines[at] = f"{wall},{100 + begin_s + at - rows:.3f},{rest}"
    path.write_text("\n".join([head, *lines]) + "\n")


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
    assert keys("xid.fatal", run, now_s, SoFar(now_s, (), (), (now_s - 1,))) == [f"xid-{now_s - 1:.3f}"]


@pytest.mark.parametrize("text", ["idle", "idle>", "idle>5", "idle>9s", "memory>97", "drop<5m", "xid", "", "rm -rf /"])
def test_what_is_no_condition_is_refused(text):
    with pytest.raises(UsageError, match="--on"):
        condition_of(text)


def test_conditions_are_read_as_they_are_written():
    assert condition_of("idle > 15m") == Condition("idle>15m", "idle", 900.0)
    assert condition_of("drop>1.5h").least == 5400.0
    assert condition_of("memory>97.5%").least == pytest.approx(0.975)

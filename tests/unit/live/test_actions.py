"""Commands that run when something happens: once, with the facts, for no longer than allowed."""

import asyncio
import json

import pytest
from support.coroutines import finish
from support.growing import START_S

from gpu_report.live.actions import Action, Actions, run_command
from gpu_report.live.conditions import condition_of
from gpu_report.live.reading.run_now import RunNow


def look_at(growing, actions, *times_s):
    """Look at a run at these moments, and wait for what that starts."""

    async def looks():
        run = RunNow(growing.folder)
        for at_s in times_s:
            while run.look() or run.samples.is_behind:
                pass
            actions.look(run, None, START_S + at_s)
        await actions.finish()

    finish(looks())


def done(growing):
    path = growing.folder / "actions.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def one(growing, on, run, since=0.0):
    return Actions(growing.folder, [Action(condition_of(on), run)], START_S + since)


def test_a_command_runs_once_for_an_event_with_its_facts(growing):
    growing.rows(0, 90, seconds=60)
    growing.rows(60, 2, seconds=30)
    look_at(
        growing, one(growing, "drop>10s", 'echo "$GPU_REPORT_CONDITION $GPU_REPORT_GPU $GPU_REPORT_RUN"'), 75, 80, 90
    )
    (line,) = done(growing)
    assert line["output"] == f"drop>10s 0 {growing.folder}\n"
    assert line["exit_code"] == 0
    assert line["time"] == "2026-11-18T11:07:55.000Z"


def test_another_time_is_another_event(growing):
    growing.rows(0, 0, seconds=100)
    actions = one(growing, "idle>1m", "echo x")
    look_at(growing, actions, 99)
    growing.rows(100, 90, seconds=5)
    growing.rows(105, 0, seconds=100)
    look_at(growing, actions, 204)
    assert len(done(growing)) == 2


@pytest.mark.parametrize(("since", "times"), [(8, 0), (4, 1)])
def test_how_a_run_ended_before_anybody_watched_is_old(growing, since, times):
    growing.rows(0, 90)
    growing.event("command_ended", 5, exit_code=0)
    growing.event("recording_ended", 6, ended_by="command", exit_code=0)
    look_at(growing, one(growing, "finished", "echo x", since), 10, 20)
    assert len(done(growing)) == times


def test_memory_that_wavers_about_the_line_is_one_time(growing):
    actions = one(growing, "memory>97%", "echo x")
    for second, mib in enumerate((77_700, 77_590, 77_700, 77_590, 77_700)):
        growing.rows(second, 90, memory_used_mib=float(mib))
        look_at(growing, actions, second + 0.5)
    assert len(done(growing)) == 1
    growing.rows(5, 90, memory_used_mib=40_000.0)
    look_at(growing, actions, 5.5)
    growing.rows(6, 90, memory_used_mib=77_700.0)
    look_at(growing, actions, 6.5)
    assert len(done(growing)) == 2


def test_a_command_that_leaves_something_running_has_ended(tmp_path):
    outcome = finish(run_command("sleep 20 & echo hi; exit 3", {}))
    assert (outcome.exit_code, outcome.output) == (3, "hi\n")
    assert outcome.seconds < 5


def test_the_token_is_nothing_of_a_commands(monkeypatch):
    monkeypatch.setenv("GPU_REPORT_TOKEN", "secret")
    assert finish(run_command('echo "[$GPU_REPORT_TOKEN$GPU_REPORT_GPU]"', {"GPU_REPORT_GPU": "1"})).output == "[1]\n"


def test_an_end_that_is_seen_to_come_is_not(growing):
    growing.rows(0, 90)
    actions = one(growing, "finished", "echo x")
    look_at(growing, actions, 1)
    growing.event("command_ended", 5, exit_code=0)
    growing.event("recording_ended", 6, ended_by="command", exit_code=0)
    look_at(growing, actions, 10, 20)
    assert len(done(growing)) == 1


def test_what_takes_too_long_is_ended_with_all_it_started(tmp_path):
    mark = tmp_path / "mark"
    outcome = finish(run_command(f"echo begun; (sleep 3; touch {mark}) & sleep 30", {}, limit_s=0.5))
    assert outcome.seconds < 3
    assert outcome.output.startswith("begun\n\nended: it took more than")
    assert outcome.exit_code is None
    finish(asyncio.sleep(3))
    assert not mark.exists()


def test_output_without_end_is_cut(tmp_path):
    outcome = finish(run_command("head -c 3000000 /dev/zero | tr '\\0' x; echo end; exit 4", {}))
    assert outcome.exit_code == 4
    assert len(outcome.output) <= 4000
    assert outcome.output.endswith("end\n")


@pytest.mark.parametrize(
    "text", ["--token=aB3dE5fG7hJ9kL1mN3pQ5r", "https://user:aB3dE5fG7hJ9kL1mN3pQ5r@example.org/hook"]
)
def test_no_secret_of_a_command_reaches_the_disk(growing, text):
    growing.rows(0, 0, seconds=100)
    look_at(growing, one(growing, "idle>1m", f"echo '{text}'"), 99)
    assert "aB3dE5fG7hJ9kL1mN3pQ5r" not in (growing.folder / "actions.jsonl").read_text()


def test_a_full_disk_keeps_nothing_and_the_command_runs(growing, tmp_path):
    growing.rows(0, 0, seconds=100)
    (growing.folder / "actions.jsonl").mkdir()
    look_at(growing, one(growing, "idle>1m", f"touch {tmp_path}/ran"), 99)
    assert (tmp_path / "ran").exists()

"""What is sent to who watches: everything first, then what is new, and after a break what was missed."""

import asyncio
import json
from contextlib import suppress

import pytest
from support.coroutines import finish
from support.growing import GrowingRun

from gpu_report.live import follower as module
from gpu_report.live.actions import Actions
from gpu_report.live.follower import Follower
from gpu_report.live.reading.run_now import RunNow
from gpu_report.live.report_so_far import Reports


def parsed(message):
    """Return an event's name, id and data."""
    fields = dict(line.split(": ", 1) for line in message.decode().strip().split("\n"))
    return fields["event"], fields["id"], json.loads(fields["data"])


def following(growing, watch):
    """Follow a run while `watch(follower)` runs."""

    async def follows():
        follower = Follower(RunNow(growing.folder), Reports(growing.folder, None), Actions(growing.folder, []), None)
        task = asyncio.create_task(follower.follow())
        try:
            async with asyncio.timeout(20):
                return await watch(follower)
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await follower.close()
            assert not follower.reports._page.parent.exists()  # what was made is no more

    return finish(follows())


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(module, "LOOK_EVERY_S", 0.02)


def test_who_comes_gets_everything_and_then_what_is_new(growing, quick):
    growing.rows(0, 90, seconds=5)

    async def watch(follower):
        while not follower.run.gpus:
            await asyncio.sleep(0.02)
        messages = follower.messages("")
        first = parsed(await anext(messages))
        growing.rows(5, 40)
        second = parsed(await anext(messages))
        while not second[2]["rows"]:
            second = parsed(await anext(messages))
        return first, second

    (event, _, everything), (tick, _, new) = following(growing, watch)
    assert (event, tick) == ("everything", "tick")
    assert [row[2] for row in everything["history"]["0"]["gpu_util_pct"]] == [90.0] * 5
    assert [(gpu, values["gpu_util_pct"]) for gpu, _, values in new["rows"]] == [(0, 40.0)]


def test_who_was_away_gets_what_was_missed_and_a_stranger_everything(growing, quick):
    growing.rows(0, 90)

    async def watch(follower):
        while not follower.run.gpus:
            await asyncio.sleep(0.02)
        messages = follower.messages("")
        growing.rows(1, 80)
        name, known, data = parsed(await anext(messages))
        while name != "tick" or not data["rows"]:
            name, known, data = parsed(await anext(messages))
        for second in (2, 3):
            growing.rows(second, 70)
            await asyncio.sleep(0.3)
        back = follower.messages(known)
        missed = [parsed(await anext(back)) for _ in range(2)]
        other = parsed(await anext(follower.messages("cafe-1")))
        later = parsed(await anext(follower.messages(known.partition("-")[0] + "-99999")))
        return missed, other, later

    missed, other, later = following(growing, watch)
    assert [name for name, _, _ in missed] == ["tick", "tick"]
    assert [len(data["rows"]) for _, _, data in missed] == [1, 1]
    assert other[0] == later[0] == "everything"


def test_silence_is_broken_by_a_comment(growing, quick, monkeypatch):
    monkeypatch.setattr(module, "ALIVE_EVERY_S", 0.05)
    monkeypatch.setattr(module, "TICK_AT_LEAST_S", 60.0)

    async def watch(follower):
        messages = follower.messages("")
        return [await anext(messages) for _ in range(4)]

    assert following(growing, watch)[-1] == module.ALIVE


def test_a_disk_that_says_no_is_said_and_the_page_goes_on(growing, quick, monkeypatch):
    growing.rows(0, 90)

    async def watch(follower):
        while not follower.run.gpus:
            await asyncio.sleep(0.02)

        def fails():
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(follower.run, "look", fails)
        while not follower.error:
            await asyncio.sleep(0.02)
        return await follower.status()

    status = following(growing, watch)
    assert status["error"] == "Input/output error"
    assert status["gpus"][0]["gpu_util_pct"] is None  # it is old: the fixture's rows are


def test_the_report_is_made_once_the_run_has_ended(tmp_path, quick):
    growing = GrowingRun(tmp_path / "run")
    growing.rows(0, 90, seconds=30)
    growing.event("recording_ended", 30, ended_by="command", signal=None, exit_code=0)

    async def watch(follower):
        while not follower.reports.is_final:
            await asyncio.sleep(0.1)
        return (await follower.reports.page(is_final=True)).read_text()[:500]

    assert "<!doctype html>" in following(growing, watch)

"""When the training is asked for a window of the profiler, and what becomes of the trace that it leaves."""

import gzip
import json
import os
import time

import pytest

from gpu_report import schema
from gpu_report.errors import UsageError
from gpu_report.record.clocks import Clocks
from gpu_report.record.profile.packing import TracePacker
from gpu_report.record.profile.requests import ProfileRequests
from gpu_report.record.profile_plan import ProfilePlan, ask, plan_of
from tests.conftest import wait_for


def at(second):
    return Clocks(1_795_000_000.0 + second, second, second)


@pytest.mark.parametrize(
    ("profile", "when", "plan"),
    [
        (None, None, None),
        ("8", None, ProfilePlan()),
        ("3", None, ProfilePlan(steps=3)),
        ("full", None, ProfilePlan(full=True)),
        (None, "epoch:5", ProfilePlan(epoch=5)),
        ("4", "30m", ProfilePlan(steps=4, epoch=None, after_s=1800.0)),
        (None, "1.5h", ProfilePlan(epoch=None, after_s=5400.0)),
        (None, "drop", ProfilePlan(at_drops=True)),
    ],
)
def test_what_the_options_ask_for(profile, when, plan):
    assert plan_of(profile, when) == plan


@pytest.mark.parametrize(
    ("profile", "when"), [("0", None), ("65", None), ("many", None), ("-1", None), (None, "epoch:0"), (None, "soon")]
)
def test_what_is_no_plan_is_said(profile, when):
    with pytest.raises(UsageError, match="--profile"):
        plan_of(profile, when)


def request_in(folder):
    path = folder / schema.PROFILE_DIR / schema.PROFILE_REQUEST
    return json.loads(path.read_text()) if path.exists() else None


def test_a_request_is_whole_or_not_there(tmp_path):
    ask(tmp_path, 4, full=True, reason="asked")
    assert request_in(tmp_path) == {"steps": 4, "epoch": None, "full": True, "reason": "asked"}
    assert [path.name for path in (tmp_path / schema.PROFILE_DIR).iterdir()] == [schema.PROFILE_REQUEST]


def test_it_is_asked_once_at_the_time_of_the_plan(tmp_path):
    requests = ProfileRequests(tmp_path, ProfilePlan(epoch=None, after_s=60.0), at(1000))
    requests.tick(at(1059), {0: 90.0})
    time.sleep(0.05)
    assert request_in(tmp_path) is None
    requests.tick(at(1060), {0: 90.0})
    wait_for(lambda: request_in(tmp_path) is not None)
    assert request_in(tmp_path)["reason"] == "time"
    (tmp_path / schema.PROFILE_DIR / schema.PROFILE_REQUEST).unlink()
    requests.tick(at(1061), {0: 90.0})
    time.sleep(0.05)
    assert request_in(tmp_path) is None


def test_a_drop_is_asked_about_once_after_ten_seconds(tmp_path):
    requests = ProfileRequests(tmp_path, ProfilePlan(at_drops=True), at(1000))
    asked = []
    for second in range(60):
        requests.tick(at(1000 + second), {0: 90.0 if second < 20 else 5.0})
        time.sleep(0.005)
        if request_in(tmp_path) is not None:
            asked.append(second)
            (tmp_path / schema.PROFILE_DIR / schema.PROFILE_REQUEST).unlink()
    assert len(asked) == 1
    assert 29 <= asked[0] <= 32


def test_no_more_than_three_drops_are_asked_about(tmp_path):
    requests = ProfileRequests(tmp_path, ProfilePlan(at_drops=True), at(1000))
    asked = 0
    for second in range(300):
        requests.tick(at(1000 + second), {0: 90.0 if second % 50 < 30 else 5.0})
        time.sleep(0.002)
        if request_in(tmp_path) is not None:
            asked += 1
            (tmp_path / schema.PROFILE_DIR / schema.PROFILE_REQUEST).unlink()
    assert asked == 3


def exported(tmp_path, name="12-1.json", data=b'{"traceEvents": []}'):
    folder = tmp_path / "tmp" / "gpu-report-profile-abc"
    folder.mkdir(parents=True)
    (folder / name).write_bytes(data)
    return folder / name


def packed(tmp_path, trace):
    run, events = tmp_path / "run", []
    run.mkdir()
    packer = TracePacker(run, lambda kind, _at, fields: events.append((kind, dict(fields))))
    packer.pack(trace)
    packer.finish(10)
    return run / schema.PROFILE_DIR, events


def test_a_trace_is_packed_and_its_folder_removed(tmp_path):
    trace = exported(tmp_path)
    into, events = packed(tmp_path, trace)
    assert gzip.decompress((into / "12-1.json.gz").read_bytes()) == b'{"traceEvents": []}'
    assert [path.name for path in into.iterdir()] == ["12-1.json.gz"]
    assert (events, trace.parent.exists()) == ([], False)


def test_a_trace_that_cannot_be_packed_is_an_event_and_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copyfileobj", full)
    into, events = packed(tmp_path, exported(tmp_path))
    assert [kind for kind, _ in events] == ["trace_lost"]
    assert "No space left" in events[0][1]["reason"]
    assert list(into.iterdir()) == []


def test_what_is_no_file_is_not_read_and_its_folder_stays(tmp_path):
    trace = tmp_path / "tmp" / "pipe.json"
    trace.mkdir(parents=True)
    _, events = packed(tmp_path, trace)
    assert [kind for kind, _ in events] == ["trace_lost"]
    assert trace.exists()


def test_traces_that_a_killed_recorder_left_are_removed_after_a_day(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    old, new, other = (tmp_path / name for name in ("gpu-report-profile-old", "gpu-report-profile-new", "other"))
    for folder in (old, new, other):
        folder.mkdir()
    for folder in (old, other):
        os.utime(folder, (1, 1))
    packed(tmp_path, exported(tmp_path))
    assert [folder.exists() for folder in (old, new, other)] == [False, True, True]

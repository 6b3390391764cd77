"""Import of gpustat's JSON: its own package wrote the documents, of a run that was played to NVML."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from gpu_report.analyse import analyse
from gpu_report.errors import InputError
from gpu_report.imports.formats import format_of
from gpu_report.load import load_run

from .conftest import DATA

LOG = "imports/gpustat.json"


def document(second=0, **gpu):
    known = {
        "index": 0,
        "uuid": "GPU-1",
        "name": "NVIDIA H100",
        "utilization.gpu": 7,
        "memory.used": 100,
        "processes": [],
    }
    return {"hostname": "node1", "query_time": f"2026-11-21T01:00:{second:02d}.5", "gpus": [{**known, **gpu}]}


def log_of(*documents):
    return "\n".join(json.dumps(each, indent=4) for each in documents) + "\n"


def test_a_real_log(imported):
    run = imported(LOG)
    assert run.facts["source"] == "gpustat"
    assert (len(run.rows), run.facts["interval_s"]) == (32, pytest.approx(4.3, abs=0.1))
    assert max(run.column("gpu_util_pct")) > 90
    assert [(row["name"], row["change"]) for row in run.processes] == [("sleep", "appeared")]
    first = json.JSONDecoder().raw_decode((DATA / LOG).read_text())[0]
    assert run.facts["host"]["name"] == first["hostname"]
    assert run.facts["gpus"][0]["uuid"] == first["gpus"][0]["uuid"]
    assert run.column("power_w")[0] == first["gpus"][0]["power.draw"]
    assert run.column("memory_used_mib")[0] == first["gpus"][0]["memory.used"]
    assert any("utilization.enc" in note for note in run.notes)


@pytest.mark.parametrize("timezone", [None, "America/New_York"])
def test_a_time_of_year_1_is_damaged(imported, written, timezone):
    early = {**document(), "query_time": "0001-01-01T00:00:00"}
    run = imported(written(log_of(early, document(), document(5)), "log.json"), timezone=timezone)
    assert len(run.rows) == 2
    assert any("1 object of" in note for note in run.notes)


def test_times_are_local_and_that_is_said(imported, written):
    log = written(log_of(document()), "log.json")
    assert imported(log, timezone="Europe/Berlin").rows[0]["wall_s"] == "1795219200.500"
    assert any("gpustat's times carry no zone" in note for note in imported(log, timezone=None).notes)


def test_processes(imported, written):
    process = {"pid": 7, "command": "python", "full_command": ["python", "--key=s3cret"], "gpu_memory_usage": 90}
    run = imported(written(log_of(document(0, processes=[process]), document(1)), "log.json"))
    assert [(row["pid"], row["name"], row["memory_used_mib"], row["change"]) for row in run.processes] == [
        ("7", "python", "90", "appeared"),
        ("7", "python", "", "gone"),
    ]
    assert "s3cret" not in "".join(path.read_text() for path in run.folder.iterdir())


def test_a_lost_gpu_has_no_readings(imported, written):
    lost = {**document(1), "gpus": [{"index": 0, "name": "((GPU is lost))", "processes": None}]}
    run = imported(written(log_of(document(0), lost, document(2)), "log.json"))
    assert run.column("gpu_util_pct") == [7, None, 7]
    assert run.facts["gpus"][0]["name"] == "NVIDIA H100"
    assert {event["quantity"] for event in run.of_kind("nvml_recovered")} == {
        "gpu_util_pct",
        "memory_used_mib",
        "all",
    }


@pytest.mark.parametrize(
    "broken", ['{"query_time": "2026', "Error on querying NVIDIA devices\n", '{"query_time": 5}\n']
)
def test_what_is_damaged_is_left_out_and_said(imported, written, broken):
    run = imported(written(log_of(document(0)) + broken + "\n" + log_of(document(1)), "log.json"), source="gpustat")
    assert len(run.rows) == 2
    assert any("1 object of" in note and "no whole JSON" in note for note in run.notes)


@pytest.mark.parametrize("name", ["Error on querying\n", "2026-11-25 17:40:52\n"])
def test_a_log_that_begins_with_something_else_is_known(imported, written, name):
    run = imported(written(name + log_of(document(0)) + name + log_of(document(1))))
    assert len(run.rows) == 2
    assert [note for note in run.notes if note.startswith("2 objects of")]


def test_rotated_logs_in_any_order_are_one_run(imported, written):
    later, earlier = (written(log_of(*map(document, seconds)), f"{seconds}.json") for seconds in ((2, 3), (0, 1)))
    run = imported(later, earlier)
    assert [float(row["mono_s"]) for row in run.rows] == [0, 1, 2, 3]
    assert run.of_kind("clock_step") == []


def test_processes_of_the_hour_that_autumn_repeats(imported, written):
    process = {"pid": 7, "command": "python", "gpu_memory_usage": 90}
    clocks = [f"2026-10-25T02:{minute:02d}:00" for minute in range(0, 60, 5)] * 2
    looks = [
        {**document(processes=[process] if at < 14 else []), "query_time": clock} for at, clock in enumerate(clocks)
    ]
    run = imported(written(log_of(*looks)), timezone="Europe/Berlin")
    assert [(row["change"], float(row["mono_s"])) for row in run.processes] == [("appeared", 0), ("gone", 14 * 300)]


def test_a_lost_gpu_is_lost(imported, written):
    lost = {**document(1), "gpus": [{"index": 0, "name": "((GPU is lost))", "processes": None}]}
    events = imported(written(log_of(document(0), lost))).of_kind("nvml_error")
    assert [(each["quantity"], each["reason"]) for each in events if each["quantity"] == "all"] == [
        ("all", "GPU is lost")
    ]


@pytest.mark.parametrize("cut", [0.4, 0.7, 0.95])
def test_a_cut_document_is_one_object(imported, written, cut):
    whole = log_of({**document(1), "gpus": [{**document()["gpus"][0], "index": gpu} for gpu in range(4)]})
    broken = whole[: int(cut * len(whole))] + "\n"
    run = imported(written(log_of(document(0)) + broken + broken + log_of(document(2)), "log.json"))
    assert len(run.rows) == 2
    assert any(note.startswith("2 objects of") for note in run.notes)


def test_an_empty_log_is_called_empty(imported, written):
    with pytest.raises(InputError, match="is empty"):
        imported(written("", "log.json"), source="gpustat")


@pytest.mark.parametrize("text", ["[]", '{"query_time": "x", "gpus": []}'])
def test_a_log_without_gpus_is_refused(imported, written, text):
    with pytest.raises(InputError, match="gpustat --json"):
        imported(written(text, "log.json"), source="gpustat")


def test_it_is_known_by_its_content():
    assert format_of(DATA / LOG) == "gpustat"


def test_coverage_goes_by_the_interval_around_each_moment(imported, written):
    """Two minutes of readings every second, ten every 5 s by another tool, which alone saw the GPU idle."""
    start = datetime(2026, 11, 21, 1, tzinfo=UTC)
    at = [start + timedelta(seconds=second) for second in range(600)]
    util = [2 if 300 <= second < 420 else 95 for second in range(600)]
    fine = [f"{at[s]:%Y/%m/%d %H:%M:%S}, 0, GPU-1, {util[s]} %" for s in range(120)]
    smi = written("\n".join(["timestamp, index, uuid, utilization.gpu [%]", *fine]) + "\n", "smi.csv")
    coarse = [
        {**document(**{"utilization.gpu": util[s]}), "query_time": f"{at[s]:%Y-%m-%dT%H:%M:%S}"}
        for s in range(0, 600, 5)
    ]
    analysis = analyse(load_run(imported(smi, written(log_of(*coarse), "gpustat.json")).folder))
    assert analysis.coverage == pytest.approx(1, abs=0.02)
    assert [(drop.start_t_s, drop.duration_s) for drop in analysis.findings if drop.rule == "drop"] == [
        pytest.approx((300, 120), abs=5)
    ]
    assert not any("no rows" in problem for problem in analysis.run.problems)


def test_a_hole_in_a_log_is_still_one(imported, written):
    at = [datetime(2026, 11, 21, 1, tzinfo=UTC) + timedelta(seconds=s) for s in (*range(100), *range(160, 300))]
    rows = [f"{each:%Y/%m/%d %H:%M:%S}, 0, 95 %" for each in at]
    log = written("\n".join(["timestamp, index, utilization.gpu [%]", *rows]) + "\n", "smi.csv")
    analysis = analyse(load_run(imported(log).folder))
    assert [gap.end_t_s - gap.start_t_s for gap in analysis.gaps] == [pytest.approx(60)]
    assert any("no rows for 1 min after" in problem for problem in analysis.run.problems)

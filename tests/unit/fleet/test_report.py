"""What a fleet's report says: sums that agree with the tables, in the terminal and on the page; hostile stays text."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from gpu_report.errors import InputError, UsageError
from gpu_report.fleet import figures, words
from gpu_report.fleet.figures import BY, Fleet, by_group, fixes, read_fleet
from gpu_report.fleet.links import link
from gpu_report.fleet.page import compose_fleet, render_fleet_html
from gpu_report.fleet.report_text import render_fleet_text
from gpu_report.fleet.run_columns import packed_runs

PAGE = Path("fleet.html")
HOSTILE = "</script><script>alert(1)</script>\x1b[31m\u202e"


@pytest.fixture(scope="module")
def fleet(kept_fleet) -> Fleet:
    return read_fleet(kept_fleet[1], price=2.0)


def test_the_headline_says_where_the_hours_went(fleet):
    hours = fleet.total("gpu_hours")
    said = words.headline(fleet)
    assert said.startswith("0.05 GPU hours in 2 runs: 17\u00a0% work, 19\u00a0% lost time, 36\u00a0% idle. The rest: ")
    assert sum(int(part) for part in re.findall(r"(\d+)\u00a0%", said)) == pytest.approx(100, abs=2)
    assert sum(part for _, part in words._parts(fleet, hours)) == pytest.approx(hours)


def test_a_fleet_without_a_gpu_says_so(fleet):
    unread = replace(fleet, runs=fleet.runs.assign(gpu_hours=0.0))
    assert words.headline(unread) == "No GPU was recorded in 2 runs."


def test_what_lies_within_another_figure_says_so(fleet):
    notes = {name: note for name, _, note in words.tiles(fleet)}
    assert notes["Without a process"].endswith(
        "Counted in idle and start-up, too. 0.02\u00a0h of it: GPUs that never had a process"
    )
    assert notes["Idle after the end"].endswith("Counted in idle, too")


@pytest.mark.parametrize("by", BY)
def test_every_grouping_has_all_hours(fleet, by):
    rows = by_group(fleet, by)
    assert rows["hours" if by == "cause" else "gpu_hours"].sum() == pytest.approx(fleet.total("gpu_hours"))


def test_weeks_begin_on_mondays(fleet):
    assert list(by_group(fleet, "week")["name"]) == ["2026-11-16"]


def test_what_a_fix_would_have_saved_is_of_the_epochs_recorded(fleet):
    (fix,) = fixes(fleet).to_dict("records")
    run = fleet.runs[fleet.runs["fix_argument"] == "workers"].iloc[0]
    assert (fix["argument"], fix["values"], fix["runs"]) == ("workers", ["workers=11"], 1)
    assert 0 < fix["hours"] < run["gpu_hours"]
    assert words.what_to_do(fleet)[0].startswith("Change `workers` first: it would have saved 0.01 GPU hours (cost 0.0")


def test_a_gpu_that_was_held_without_a_process_is_named(fleet):
    (row,) = words.held_table(fleet).rows
    assert row[0].endswith("/half")
    assert "1 GPU had no process at all while runs held it: 0.02 GPU hours." in words.what_to_do(fleet)


def test_a_cause_has_its_runs_alone(kept_fleet):
    read = read_fleet(kept_fleet[1], cause="input-cpu")
    assert [path.rpartition("/")[2] for path in read.runs["path"]] == ["starved"]
    assert words.headline(read).startswith("Waiting for data (CPU) took 0.01 GPU hours, 51\u00a0% of 1 run")
    with pytest.raises(UsageError, match="no run of this fleet lost time to it; there are input-cpu"):
        read_fleet(kept_fleet[1], cause="nonsense")


def test_what_is_no_fleet_is_said(tmp_path):
    with pytest.raises(InputError, match="is no fleet: make one with `gpu-report fleet index"):
        read_fleet(tmp_path)


def test_the_advice_where_there_is_no_fleet_can_be_followed(tmp_path):
    runs = tmp_path / "my runs"
    runs.mkdir()
    (runs / "a").mkdir()
    with pytest.raises(InputError, match="no fleet") as raised:
        read_fleet(runs)
    assert f"fleet index '{runs}' --output 'my runs-fleet'" in str(raised.value)


def test_a_line_of_a_package_is_one_wherever_it_is_installed():
    line = {"run": "1", "name": "input-cpu", "function": "get", "line": 7, "process": "main", "gpu_seconds": 1.0}
    places = ("/a/lib/python3.11/site-packages/torch/cuda.py", "C:\\b\\Lib\\site-packages\\torch/cuda.py")
    yolo = ("/b/dist-packages/ultralytics/nn/tasks.py", "/tmp/site/ultralytics/nn/tasks.py")
    files = (*places, *yolo, "/home/ann/ultralytics/train.py", "/home/bob/ultralytics/train.py")
    rows = figures._locations(pd.DataFrame([{**line, "file": file} for file in files]), {"1"}, None)
    assert dict(zip(rows["file"], rows["hours"] * 3600, strict=True)) == {
        "torch/cuda.py": pytest.approx(2),
        "ultralytics/nn/tasks.py": pytest.approx(2),
        "/home/ann/ultralytics/train.py": pytest.approx(1),
        "/home/bob/ultralytics/train.py": pytest.approx(1),
    }


def test_the_terminal_has_the_tables_and_what_cannot_be_read(fleet):
    text = render_fleet_text(fleet, width=100)
    for title in (
        "What could have been saved",
        "By user",
        "By cause",
        "Trend by week",
        "Worst runs",
        "Idle after the end",
    ):
        assert title in text
    assert "1 run cannot be read" in text
    assert "By user" not in render_fleet_text(fleet, "host", width=100)


def test_the_worst_runs_link_to_their_reports_else_to_their_folders(kept_fleet, fleet):
    runs, _ = kept_fleet
    half = str(runs / "half")
    page = runs.parent / "pages" / "fleet.html"
    assert set(compose_fleet(fleet, page, None).links) == {"../runs/half", "../runs/starved"}
    beside, inside = runs / "half.html", runs / "starved" / "report.html"
    try:
        for path in (beside, inside):
            path.write_text("")
        assert set(compose_fleet(fleet, page, None).links) == {"../runs/half.html", "../runs/starved/report.html"}
    finally:
        beside.unlink()
        inside.unlink()
    gone = replace(fleet, runs=fleet.runs.assign(path=[half, "s3://bucket/run"]))
    assert set(compose_fleet(gone, page, None).links) == {"../runs/half", None}


def test_nothing_from_outside_is_markup_or_a_command(fleet):
    runs = fleet.runs.assign(user=HOSTILE, path=f"/data/{HOSTILE}", fix=HOSTILE, verdict=HOSTILE, host=HOSTILE)
    hostile = replace(fleet, runs=runs, unread=((HOSTILE, HOSTILE),))
    page = render_fleet_html(hostile, PAGE, None)
    assert page.count("<script") == 2
    assert "\x1b" not in page.partition('id="fleet-runs"')[0]
    assert "\x1b" not in render_fleet_text(hostile, width=200)


def test_the_page_holds_each_run_once_and_its_hours_add_up(fleet, monkeypatch):
    monkeypatch.setattr("gpu_report.fleet.run_columns.squeeze", lambda text: text)
    packed = json.loads(packed_runs(fleet, PAGE))
    assert len(packed["names"]) == 2
    assert sum(packed["spent"]["hours"]) / 36_000 == pytest.approx(fleet.total("gpu_hours"), rel=1e-3)
    assert sum(packed["causes"]["spent"]) / 36_000 == pytest.approx(fleet.total("gpu_hours"), rel=1e-3)
    paths = [packed["texts"]["folder"]["list"][of] for of in packed["texts"]["folder"]["of"]]
    assert sorted(folder + name for folder, name in zip(paths, packed["names"], strict=True)) == sorted(
        fleet.runs["path"]
    )


def test_ten_thousand_runs_would_take_half_a_megabyte(fleet):
    many = pd.concat([fleet.runs] * 500, ignore_index=True)
    many["run"] = [f"{number:016x}" for number in range(len(many))]
    many["path"] = [f"/data/user-{number % 97}/gpu-runs/20261121-{number:06d}" for number in range(len(many))]
    ledger = pd.concat([fleet.ledger[["name", "expected", "lost", "hours"]].head(8)] * 1000, ignore_index=True)
    ledger["run"] = many["run"].repeat(8).to_numpy()
    ledger["hours"] *= 1 + (ledger.index % 997) / 997
    assert len(packed_runs(replace(fleet, runs=many, ledger=ledger), PAGE)) < 50_000


def test_the_page_is_the_same_each_time(fleet):
    assert render_fleet_html(fleet, PAGE) == render_fleet_html(fleet, PAGE)


@pytest.mark.parametrize(
    ("hours", "said"),
    [(None, "n/a"), (0, "0.00"), (0.001, "< 0.01"), (1.234, "1.23"), (12.34, "12.3"), (1234.5, "1,234")],
)
def test_hours_have_the_digits_that_matter(hours, said):
    assert words.hours_words(hours) == said


def test_sentences_are_short(fleet):
    view = compose_fleet(fleet, PAGE, None)
    tables = (view.fixes.about, view.worst.about, *(table.about for table in view.others))
    for text in (view.verdict, *view.to_do, *view.notes, *tables):
        for sentence in re.split(r"(?<=[.:;]) ", text):
            assert len(sentence.split()) <= 20, sentence


def test_parts_that_an_index_replaces_meanwhile_are_listed_anew(kept_fleet, tmp_path, monkeypatch):
    fleet = tmp_path / "fleet"
    shutil.copytree(kept_fleet[1], fleet)
    before = len(read_fleet(fleet).runs)
    gone = figures.live_folders(fleet)
    calls = []

    def stale(folder):
        calls.append(folder)
        return [path.with_name("000009-gone") for path in gone] if len(calls) == 1 else live(folder)

    live = figures.live_folders
    monkeypatch.setattr(figures, "live_folders", stale)
    assert len(read_fleet(fleet).runs) == before
    assert len(calls) == 2


def test_what_nobody_could_see_is_no_zero(fleet):
    unseen = replace(fleet, runs=fleet.runs.assign(no_process_h=float("nan")))
    assert {name: value for name, value, _ in words.tiles(unseen)}["Without a process"] == "n/a"
    assert by_group(unseen, "user")["no_process_h"].isna().all()


def test_a_cause_goes_by_its_name_in_the_report_as_well(kept_fleet):
    read = read_fleet(kept_fleet[1], cause="waiting for data (cpu)")
    assert (read.cause, len(read.runs)) == ("input-cpu", 1)
    assert "input-cpu" in render_fleet_text(read_fleet(kept_fleet[1]), "cause", width=120)


def test_a_run_with_a_fix_leads_those_that_lost_more(fleet):
    """Of `half` a whole GPU is lost, and nothing that is known would change it."""
    runs = fleet.runs.assign(wasted_h=fleet.runs["saves_h"].isna() * 9.0 + 1)
    worst = words.worst_table(replace(fleet, runs=runs.sort_values("wasted_h", ascending=False)))
    assert [row[0].rpartition("/")[2] for row in worst.rows] == ["starved", "half"]


def test_failures_are_counted_and_named(fleet):
    runs = fleet.runs.assign(ending="failed", error_type=["OutOfMemoryError", None], exit_signal=[None, "SIGKILL"])
    failed = replace(fleet, runs=runs)
    assert "2 runs failed after 0.05 GPU hours (cost 0.11) in all." in words.what_to_do(failed)
    assert list(figures._ended(runs)) == ["failed (OutOfMemoryError)", "failed (SIGKILL)"]
    assert not any("failed" in said for said in words.what_to_do(fleet))


def test_a_week_alone_is_no_block_of_the_page(fleet):
    (bar,) = compose_fleet(fleet, PAGE, None).weeks
    assert bar.width < 100 / 12


def test_time_that_was_not_measured_is_no_cause(kept_fleet):
    with pytest.raises(UsageError, match="unmeasured"):
        read_fleet(kept_fleet[1], cause="unmeasured")


def test_a_link_is_found_without_asking_as_path_does(kept_fleet, tmp_path, monkeypatch):
    """Path.exists() raises PermissionError in Python 3.11 where the reader may not enter the run's folder."""

    def refused(self, **_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "exists", refused)
    monkeypatch.setattr(Path, "is_file", refused)
    assert link(str(tmp_path / "nowhere"), tmp_path / "fleet.html") is None
    assert link(str(kept_fleet[0] / "half"), tmp_path / "fleet.html")


@pytest.mark.parametrize(("width", "colour"), [(60, True), (None, False)])
def test_a_path_is_never_broken(fleet, width, colour):
    long = "/data/" + "a-long-folder/" * 8 + "run"
    text = render_fleet_text(replace(fleet, runs=fleet.runs.assign(path=long)), width=width, colour=colour)
    assert long in text
    headline = words.headline(fleet)
    assert (headline in text) is (width is None)

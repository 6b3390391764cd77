"""The windows of the profiler that a training reported, and their traces in the run folder."""

import json
import shutil

import pytest
from conftest import REPOSITORY

from gpu_report.errors import InputError
from gpu_report.load import load_run

SAMPLE = REPOSITORY / "sample_runs" / "n-profiled"


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(SAMPLE, tmp_path / "run")
    return tmp_path / "run"


def change(folder, **fields):
    path = folder / "inside" / "547.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    changed = [{**line, **fields} if line["kind"] == "profile" else line for line in lines]
    path.write_text("".join(json.dumps(line) + "\n" for line in changed))


def test_a_run_has_its_windows_and_their_traces():
    run = load_run(SAMPLE)
    assert [(w.name, w.phase, w.epoch, w.steps) for w in run.profiled] == [
        ("547-1", "train", 2, 8),
        ("547-2", "validation", None, 4),
    ]
    assert set(run.traces) == {"547-1", "547-2"}
    first = run.profiled[0]
    assert 3 < first.end_t_s - first.start_t_s < 6
    assert first.start_t_s < first.kept_t_s < first.end_t_s


def test_a_trace_and_the_recorder_go_by_one_clock():
    run = load_run(SAMPLE)
    (window, _), trace = run.profiled, run.traces["547-1"]
    begins_t_s = trace.start_wall_s + trace.steps[0].start_s - run.start_wall_s
    assert window.kept_t_s < begins_t_s < window.end_t_s


def test_a_trace_that_is_missing_is_said(folder):
    (folder / "profile" / "547-1.json.gz").unlink()
    run = load_run(folder)
    assert set(run.traces) == {"547-2"}
    assert any("547-1.json.gz is missing" in problem for problem in run.problems)


def test_a_trace_that_is_none_is_said(folder):
    (folder / "profile" / "547-1.json.gz").write_bytes(b"nothing")
    run = load_run(folder)
    assert set(run.traces) == {"547-2"}
    assert any("547-1" in problem for problem in run.problems)


@pytest.mark.parametrize(
    "fields",
    [
        {"name": "../../etc/passwd"},
        {"name": None},
        {"phase": "lunch"},
        {"begin_mono_s": "soon"},
        {"begin_mono_s": -1e9},
        {"begin_mono_s": 1e9},
    ],
)
def test_a_line_that_makes_no_sense_is_no_window(folder, fields):
    change(folder, **fields)
    run = load_run(folder)
    assert (run.profiled, dict(run.traces)) == ((), {})


def test_a_window_that_failed_has_its_reason_and_no_trace_is_looked_for(folder):
    change(folder, failed="no_space")
    run = load_run(folder)
    assert {window.failed for window in run.profiled} == {"no_space"}
    assert not run.traces
    change(folder, failed="because")
    assert {window.failed for window in load_run(folder).profiled} == {"error"}


def test_a_link_that_leads_out_of_the_folder_is_refused(folder, tmp_path):
    outside = tmp_path / "other.json.gz"
    shutil.move(folder / "profile" / "547-1.json.gz", outside)
    (folder / "profile" / "547-1.json.gz").symlink_to(outside)
    with pytest.raises(InputError, match="by a link"):
        load_run(folder)


def test_a_profiled_epoch_is_left_out_where_others_remain():
    from gpu_report.analyse import analyse  # noqa: PLC0415 - the loader's tests need nothing else of it

    assert [(epoch.epoch, epoch.profiled) for epoch in analyse(load_run(SAMPLE)).epochs] == [
        (1, False),
        (2, True),
        (3, False),
    ]

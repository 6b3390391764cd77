"""The windows of the profiler that a training reported, and their traces in the run folder."""

import gzip
import json
import shutil

import pytest
from conftest import REPOSITORY

from gpu_report.errors import InputError
from gpu_report.load import load_run

SAMPLE = REPOSITORY / "sample_runs" / "n-profiled"
TRACES = REPOSITORY / "tests" / "data" / "traces"


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


def imported(run_warm, folder, trace):
    return run_warm("import", trace, "--run", folder)


def test_a_trace_of_ones_own_is_put_into_the_run_and_placed_by_its_clock(run_warm, folder, tmp_path):
    trace = shutil.move(folder / "profile" / "547-1.json.gz", tmp_path / "mine.json.gz")
    done = imported(run_warm, folder, trace)
    assert (done.returncode, done.stdout) == (0, "")
    (window,) = load_run(folder).imported_windows
    assert (window.name, window.reason, window.epoch) == ("import-1", "imported", None)
    reported = load_run(SAMPLE).profiled[0]
    assert reported.start_t_s < window.start_t_s < window.end_t_s < reported.end_t_s


def test_a_plain_trace_is_packed_and_a_second_one_gets_a_name_of_its_own(run_warm, folder, tmp_path):
    (tmp_path / "mine.json").write_bytes(gzip.decompress((folder / "profile" / "547-1.json.gz").read_bytes()))
    for _ in range(2):
        assert imported(run_warm, folder, tmp_path / "mine.json").returncode == 0
    assert {path.name for path in (folder / "profile").glob("import-*")} == {"import-1.json.gz", "import-2.json.gz"}
    assert len(load_run(folder).imported_windows) == 2


def test_what_is_no_trace_goes_nowhere(run_warm, folder, tmp_path):
    (tmp_path / "other.json").write_text("{}")
    done = imported(run_warm, folder, tmp_path / "other.json")
    assert (done.returncode, list((folder / "profile").glob("import-*"))) == (4, [])
    assert "no trace" in done.stderr


def test_a_trace_of_another_day_is_said_and_not_shown(run_warm, folder, tmp_path):
    trace = json.loads(gzip.decompress((folder / "profile" / "547-1.json.gz").read_bytes()))
    trace["baseTimeNanoseconds"] -= 86_400 * 10**9
    (tmp_path / "old.json").write_text(json.dumps(trace))
    assert imported(run_warm, folder, tmp_path / "old.json").returncode == 0
    run = load_run(folder)
    assert run.imported_windows == ()
    assert any("not of the time of this run" in problem for problem in run.problems)


def test_a_trace_alone_becomes_a_run_whose_verdict_is_the_steps(run_warm, tmp_path):
    done = run_warm("import", TRACES / "m-batch-128.json.gz", "--output", tmp_path / "new")
    assert (done.returncode, done.stdout) == (0, "")
    run = load_run(tmp_path / "new")
    assert [(window.steps, window.reason) for window in run.imported_windows] == [(1, "imported")]
    assert [gpu.name for gpu in run.gpus] == ["NVIDIA H100 80GB HBM3"]
    assert run.duration_s == pytest.approx(run.traces["import-1"].duration_s, abs=0.01)
    assert run.samples["gpu_util_pct"].isna().all()
    said = run_warm("summary", tmp_path / "new").stdout
    assert said.startswith("The GPU worked 61 % of 1 profiled step: GPU-bound, the CPU is ahead of it.")
    assert run_warm("import", TRACES / "n-small.json.gz", "--output", tmp_path / "new").returncode == 2


def test_a_trace_that_does_not_say_when_it_was_made_needs_its_run(run_warm, tmp_path):
    trace = json.loads(gzip.decompress((TRACES / "n-small.json.gz").read_bytes()))
    del trace["baseTimeNanoseconds"]
    (tmp_path / "old.json").write_text(json.dumps(trace))
    done = run_warm("import", tmp_path / "old.json", "--output", tmp_path / "new")
    assert (done.returncode, (tmp_path / "new").exists()) == (4, False)
    assert "--run" in done.stderr


@pytest.mark.parametrize(
    "words", [("--kernel-log", "x"), ("--timezone", "UTC"), ("--from", "nvidia-smi", "--run", ".")]
)
def test_what_a_trace_has_no_use_for_is_not_passed_over(run_warm, tmp_path, words):
    done = run_warm("import", TRACES / "n-small.json.gz", "--output", tmp_path / "new", *words)
    assert (done.returncode, (tmp_path / "new").exists()) == (2, False)


@pytest.mark.parametrize("words", [("--run", "nowhere"), ("--run", "run", "--output", "new"), ()])
def test_where_to_is_asked_for(run_warm, folder, words):
    assert run_warm("import", folder / "profile" / "547-1.json.gz", *words).returncode == 2

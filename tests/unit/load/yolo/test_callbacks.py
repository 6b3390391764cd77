"""What our callbacks wrote becomes runs, phases and epochs; whatever stands in the files, a report can be made."""

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_report import schema
from gpu_report.analyse import analyse
from gpu_report.load import load_run
from gpu_report.load.limits import SHORT, Limits
from gpu_report.load.run_clock import Boot, RunClock
from gpu_report.load.yolo.callbacks import Outside, load_inside, with_versions
from gpu_report.model import Recording, SettingLocation, YoloRun
from gpu_report.render.run.summary_json import build_summary

START = 1_800_000_000
CLOCK = RunClock((Boot(START, 100.0, 0.0),))
END_S = 100.0


def line(t_s, kind, **fields):
    return json.dumps({"wall_s": START + t_s, "mono_s": 100 + t_s, "kind": kind, **fields}) + "\n"


def run_line(t_s=1.0, task="train", save_dir="/runs/train", pid=7, rank=0, **fields):
    return line(t_s, "run", task=task, pid=pid, rank=rank, save_dir=save_dir, **fields)


def phase(t_s, name, detail="", epoch=None):
    return line(t_s, "phase", name=name, detail=detail, epoch=epoch)


def epoch_line(t_s, kind="epoch", begun=10.0, **fields):
    values = {"epoch": 1, "attempt": 1, "start_mono_s": 100 + begun, "images": 40, "batches": 5, "loss": 3.5}
    waits = {"data_wait_s": 2.0, "first_wait_s": 1.0, "longest_wait_s": 1.5}
    return line(t_s, kind, **{**values, **waits, **fields})


PARTS = {
    "data": 0.5,
    "preprocess": 0.1,
    "inference": 1.0,
    "loss": 0.1,
    "postprocess": 0.2,
    "metrics": 0.6,
    "other": 0.5,
}


def validation_line(t_s, begun, **fields):
    values = {"epoch": 1, "start_mono_s": 100 + begun, "images": 40, "batches": 5, "batch": 8, "workers": 4}
    seconds = {f"{part}_s": s for part, s in {**PARTS, "plots": 0.0, "gather": 0.0, "first_wait": 0.25}.items()}
    return line(t_s, "validation", **{**values, **seconds, **fields})


def validated(load, *lines):
    """Return what is known of the validation from 20 s to 23 s, None for nothing."""
    text = run_line() + phase(10, "train", epoch=1) + phase(19.9, "validation", epoch=1) + "".join(lines)
    (run,), problems = load(text + phase(23.1, "checkpoint", epoch=1) + ended(24))
    assert problems == ()
    assert [phase.validated for phase in run.phases if phase.name != "validation"] == [None, None]
    return run.phases[1].validated


def most_bytes(monkeypatch, most):
    monkeypatch.setattr(Limits, "inside_bytes", property(lambda limits: most))


def ended(t_s, how="finished"):
    return line(t_s, "ended", how=how)


@pytest.fixture
def load(tmp_path):
    def loaded(*texts, yolo_runs=(), outside=None, clock=CLOCK, limits=SHORT):
        (tmp_path / "inside").mkdir(exist_ok=True)
        for number, text in enumerate(texts):
            data = text if isinstance(text, bytes) else text.encode()
            (tmp_path / "inside" / f"{number}.jsonl").write_bytes(data)
        return load_inside(tmp_path / "inside", clock, END_S, yolo_runs, outside or Outside(), limits)

    return loaded


WHOLE = run_line() + phase(1, "startup", "setup") + phase(11, "train", epoch=1) + epoch_line(20) + ended(22)


def test_a_run_is_put_on_the_runs_clock(load):
    (run,), problems = load(WHOLE)
    assert problems == ()
    assert [(p.name, p.detail, p.epoch, p.start_t_s, p.end_t_s, p.source) for p in run.phases] == [
        ("startup", "setup", None, 1.0, 11.0, "callbacks"),
        ("train", "", 1, 11.0, 22.0, "callbacks"),
    ]
    (epoch,) = run.epochs
    assert (epoch.epoch, epoch.attempt, epoch.start_t_s, epoch.end_t_s, epoch.images) == (1, 1, 10.0, 20.0, 40)
    assert (epoch.batches, epoch.data_wait_s, epoch.first_wait_s, epoch.longest_wait_s) == (5, 2.0, 1.0, 1.5)
    assert (run.pid, run.rank, run.task, run.ended) == (7, 0, "train", "finished")


def test_what_tensors_have_of_gpu_memory_is_read_where_it_may_be_true(load):
    said = [{"allocated_mib": value} for value in (1234.5, -1.0, "much", 1e12)] + [{}]
    progress = "".join(line(12 + at, "progress", batches=at, data_wait_s=0.0, **each) for at, each in enumerate(said))
    (run,), _ = load(run_line() + phase(11, "train", epoch=1) + progress + epoch_line(20) + ended(22))
    assert [each.allocated_mib for each in run.progress] == [1234.5, None, None, None, None]
    counted = line(12, "progress", batches=1, data_wait_s=0.0, hooks=41, callbacks=-3)
    (run,), _ = load(run_line() + phase(11, "train", epoch=1) + counted + epoch_line(20) + ended(22))
    assert [(each.hooks, each.callbacks) for each in run.progress] == [(41, None)]


def test_a_wall_clock_that_was_set_does_not_matter(load):
    lines = [json.loads(each) for each in WHOLE.splitlines()]
    for each in lines[2:]:
        each["wall_s"] += 3600
    (moved,), _ = load("".join(json.dumps(each) + "\n" for each in lines))
    assert moved.phases == load(WHOLE)[0][0].phases


def test_an_epoch_that_never_ended_is_known_as_far_as_it_was_told(load):
    (run,), _ = load(run_line() + epoch_line(12, "batches", batches=1) + epoch_line(15, "batches", batches=3))
    assert [(epoch.batches, epoch.end_t_s) for epoch in run.epochs] == [(3, None)]


def test_running_totals_do_not_undo_an_epochs_end(load):
    (run,), _ = load(run_line() + epoch_line(12, "batches", batches=1) + epoch_line(15) + epoch_line(16, "batches"))
    assert [(epoch.batches, epoch.end_t_s) for epoch in run.epochs] == [(5, 15.0)]


@pytest.mark.parametrize(
    ("last_phase", "outside", "end_t_s"),
    [
        ("train", Outside(), 32.0),  # a training with batches is silent for seconds only
        ("validation", Outside(), END_S),
        ("validation", Outside({7: [5.0, 40.0]}), 40.0),
        ("train", Outside({8: [40.0]}, frozenset({8})), 32.0),
        ("train", Outside({}, frozenset({7})), END_S),  # it hung: nobody saw it go
        ("train", Outside({}, frozenset({7}), [5.0, 90.0]), 90.0),
        ("train", Outside({7: [80.0]}, frozenset({7}), [90.0]), 80.0),
        ("train", Outside({}, frozenset(), [90.0]), 90.0),
    ],
)
def test_a_killed_process_ends_when_it_was_seen_to_have_gone_and_not_before(load, last_phase, outside, end_t_s):
    (run,), _ = load(run_line() + phase(12, last_phase, epoch=1), outside=outside)
    assert run.ended is None
    assert run.phases[-1].end_t_s == pytest.approx(end_t_s, abs=0.1)


def test_what_the_recorder_saw_of_processes_tells_how_long_a_hang_was(run_folder):
    (run_folder / "inside" / "7.jsonl").write_text(run_line() + phase(12, "train", epoch=1))
    (run_folder / "processes.csv").write_text(
        f"wall_s,mono_s,gpu,pid,name,change\n{START + 2},102,0,7,python,appeared\n"
    )
    assert load_run(run_folder).inside[0].phases[-1].end_t_s == pytest.approx(59, abs=1.1)
    (run_folder / "events.jsonl").write_text(line(55, "command_ended", signal="SIGKILL"))
    assert load_run(run_folder).inside[0].phases[-1].end_t_s == pytest.approx(55)


def test_a_killed_process_is_over_when_the_next_run_begins(load):
    killed = run_line() + phase(12, "validation", epoch=1)
    runs, _ = load(killed, run_line(50, pid=9, resumed=True) + ended(60))
    assert runs[0].phases[-1].end_t_s == 50


def test_several_runs_of_one_process_are_told_apart(load):
    runs, _ = load(WHOLE + run_line(30, "val", "/runs/val") + phase(31, "validation") + ended(33))
    assert [(run.task, len(run.phases)) for run in runs] == [("train", 2), ("val", 1)]


def yolo_run(number, path):
    return YoloRun(number, path, {}, "recorded", None)


def test_runs_are_matched_by_their_folders(load, tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    texts = [run_line(1, save_dir=str(link)), run_line(2, save_dir="/runs/a", pid=2), run_line(3, "val", "/runs/val")]
    runs, _ = load(*texts, yolo_runs=[yolo_run(1, "/runs/a"), yolo_run(2, str(real))])
    assert [run.run for run in runs] == [2, 1, None]


def test_a_folder_begun_anew_is_its_next_run_and_a_resumed_one_the_same(load):
    first, again, resumed = (run_line(t_s, pid=pid) for t_s, pid in ((1, 1), (20, 2), (40, 3)))
    rank = run_line(21, pid=4, rank=1)
    resumed += line(41, "settings", resumed=True)
    runs, _ = load(first, again, rank, resumed, yolo_runs=[yolo_run(1, "/runs/train"), yolo_run(2, "/runs/train")])
    assert [run.run for run in runs] == [1, 2, 2, 2]


def test_where_no_folder_is_known_trainings_go_by_order(load):
    texts = [run_line(1, save_dir="/a"), run_line(2, "predict", "/p", 2), run_line(3, save_dir="/b", pid=3)]
    runs, _ = load(*texts, yolo_runs=[yolo_run(1, None), yolo_run(2, None)])
    assert [run.run for run in runs] == [1, None, 2]


def test_versions_complete_what_the_recorder_did_not_know(load):
    runs, _ = load(run_line(torch="2.15", cuda="13.2", ultralytics="8.4.190"))
    told = with_versions(Recording(torch="2.0"), runs)
    assert (told.torch, told.cuda, told.ultralytics) == ("2.0", "13.2", "8.4.190")
    assert with_versions(Recording(), ()) == Recording()


def test_a_torn_line_costs_itself_only_and_is_said(load):
    (run,), problems = load(WHOLE + '{"wall_s": 18000')
    assert run.ended == "finished"
    assert any("0.jsonl: 1 line could" in problem for problem in problems)


def test_a_file_too_large_is_read_as_far_as_may_be_and_that_is_said(load, monkeypatch):
    most_bytes(monkeypatch, len(WHOLE) + 5)
    (run,), problems = load(WHOLE + epoch_line(21))
    assert run.ended == "finished"
    assert problems == (
        f"inside/0.jsonl: only the first {len(WHOLE)} bytes are read: the file, or all of them, are too large",
    )


def test_all_files_together_are_bounded_too(load, monkeypatch):
    most_bytes(monkeypatch, len(WHOLE) + 5)
    runs, problems = load(WHOLE, WHOLE)
    assert len(runs) == len(problems) == 1


def test_more_trainings_and_epochs_than_there_can_be_are_left_out_and_that_is_said(load):
    runs, problems = load("".join(run_line(t / 100) for t in range(2000)) + run_line(90, "val"))
    assert [run.task for run in runs] == [*["train"] * SHORT.yolo_runs, "val"]
    assert problems == (f"inside/ has 2,000 trainings: those after the first {SHORT.yolo_runs} are left out",)
    epochs = "".join(epoch_line(20, epoch=number + 1) for number in range(2000))
    (run,), problems = load(run_line() + epochs)
    assert len(run.epochs) == SHORT.epochs == 1000
    assert problems == ("inside/ has 2,000 epochs: those after the first 1,000 are left out",)


def test_thousands_of_runs_are_told_apart_in_time(load):
    began_s = time.process_time()
    runs, _ = load("".join(run_line(t / 50, "predict") for t in range(4000)))
    assert len(runs) == 4000
    assert time.process_time() - began_s < 2  # 0.1 s; each against all the others took 8 s


def epochs_of(rank, count):
    told = "".join(
        phase(10 + n / 50, "train", epoch=n) + epoch_line(10 + (n + 0.5) / 50, epoch=n, begun=10 + n / 50)
        for n in range(1, count + 1)
    )
    return run_line(5, rank=rank, pid=7 + rank) + phase(6, "startup") + told


def test_of_other_ranks_the_beginning_and_the_end_of_each_run_is_read_where_much_is_told(load):
    told = epochs_of(1, 3000) + line(71, "settings", workers=4) + ended(75)
    again = run_line(80, "val", rank=1, pid=8) + phase(81, "validation") + ended(90)
    (first, second), problems = load(told + again)
    assert problems == ()
    assert (first.ended, second.ended, second.task) == ("finished", "finished", "val")
    assert first.settings["workers"] == 4
    assert first.phases[0].start_t_s == 6
    assert first.phases[-1].end_t_s == 75
    assert (first.epochs[0].epoch, first.epochs[-1].epoch) == (1, 3000)
    assert 20 < len(first.epochs) < 1000
    assert max(p.end_t_s - p.start_t_s for p in first.phases[1:-1]) < 0.1  # none is drawn out over what was passed over


def test_of_rank_0_all_is_read(load):
    (run,), _ = load(epochs_of(0, 3000) + ended(75), limits=Limits(1000))
    assert len(run.epochs) == 3000
    assert len(run.phases) == 3001


def test_faults_of_our_callbacks_are_said(load):
    _, problems = load(WHOLE + line(23, "error", where="on_train_end", reason="KeyError: 'x'"))
    assert any("KeyError" in problem for problem in problems)


def test_without_the_folder_there_is_nothing(tmp_path):
    assert load_inside(tmp_path / "inside", CLOCK, END_S, (), Outside()) == ((), ())


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\0" * 100,
        b"\xff\xfe",
        b"[]\n5\nnull\n",
        b'{"kind": "run"}\n',
        b'{"mono_s": ' + b"[" * 200_000,
    ],
)
def test_garbage_is_no_run(load, text):
    assert load(text)[0] == ()


VALUES = (None, float("nan"), 1e308, -5, 10**400, True, {}, ["x"], "\ud800", "x" * 10_000, [[1]], 0.5)
FIELDS = [
    "task",
    "pid",
    "rank",
    "save_dir",
    "torch",
    "name",
    "detail",
    "epoch",
    "attempt",
    "start_mono_s",
    "batches",
    "images",
    "data_wait_s",
    "first_wait_s",
    "longest_wait_s",
    "loss",
    "lr",
    "how",
    "workers",
    "where",
    "reason",
    "mono_s",
    "wall_s",
]


@pytest.fixture
def run_folder(tmp_path):
    """A run folder with samples, to load and report whole."""
    rows = "".join(f"{START + t},{100 + t},0,90\n" for t in range(60))
    (tmp_path / "samples.csv").write_text("wall_s,mono_s,gpu,gpu_util_pct\n" + rows)
    (tmp_path / "inside").mkdir()
    return tmp_path


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_of_another_type_does_not_stop_the_report(run_folder, field):
    base = [json.loads(each) for each in WHOLE.splitlines()] + [json.loads(line(9, "settings", workers=1))]
    lines = [{**each, field: value} for value in VALUES for each in base]
    (run_folder / "inside" / "1.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    (run_folder / "inside" / "2.jsonl").write_text(WHOLE)
    run = load_run(run_folder)
    assert any(told.ended == "finished" for told in run.inside)
    json.dumps(build_summary(analyse(run)), allow_nan=False)


def test_a_validation_has_its_parts(load):
    known = validated(load, validation_line(23, 20))
    assert (known.start_t_s, known.end_t_s) == pytest.approx((20, 23))
    assert (known.epoch, known.images, known.batches, known.batch, known.workers) == (1, 40, 5, 8, 4)
    assert known.seconds == {**PARTS, "plots": 0, "gather": 0}
    assert known.first_wait_s == 0.25
    assert known.images_per_s == pytest.approx(40 / 3)


def test_the_last_validation_of_a_phase_is_that_of_the_phase(load):
    short = {"inference_s": 0, "metrics_s": 0, "other_s": 0}
    lines = validation_line(21, 20, **short), validation_line(23, 21.5, **short)
    assert validated(load, *lines).start_t_s == pytest.approx(21.5)


@pytest.mark.parametrize(
    "fields",
    [
        {"start_mono_s": 124},
        {"start_mono_s": None},
        {"batches": -1},
        {"batches": "many"},
        {"inference_s": 9.0},  # longer than itself
    ],
)
def test_a_validation_that_makes_no_sense_is_left_out(load, fields):
    assert validated(load, validation_line(23, 20, **fields)) is None


@pytest.mark.parametrize("value", [None, -1.0, "1", float("nan"), float("inf"), 1e300, True, [], 10**400])
def test_a_part_that_is_no_length_of_time_is_not_known(load, value):
    known = validated(load, validation_line(23, 20, inference_s=value, images=value, first_wait_s=value))
    assert "inference" not in known.seconds
    assert known.seconds["metrics"] == PARTS["metrics"]
    assert (known.images, known.images_per_s, known.first_wait_s) == (None, None, 0.0)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {"wall_s": st.floats(START - 10, START + 200), "kind": st.sampled_from([*schema.INSIDE_KINDS, "other"])},
            optional={
                "mono_s": st.floats(0, 300) | st.none(),
                "name": st.sampled_from(["train", "startup", "idle", "sleep"]),
                "task": st.sampled_from(["train", "predict", "other"]),
                "epoch": st.integers(-1, 5) | st.floats() | st.text(max_size=3),
                "save_dir": st.text(max_size=5),
                "data_wait_s": st.floats(),
                "start_mono_s": st.floats(),
                "batches": st.integers(),
                "allocated_mib": st.floats() | st.text(max_size=3),
                "data_s": st.floats(),
            },
        ),
        max_size=12,
    )
)
def test_no_lines_whatever_break_the_loader(tmp_path_factory, lines):
    folder = tmp_path_factory.mktemp("inside")
    (folder / "1.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    runs, _ = load_inside(folder, CLOCK, END_S, (yolo_run(1, "x"),), Outside())
    for run in runs:
        assert all(p.end_t_s >= p.start_t_s for p in run.phases)


def test_what_holds_the_tensors_is_read_and_a_look_that_found_nothing_or_makes_no_sense_is_left_out(tmp_path):
    told = {"name": "A.b", "place": "class", "file": "/a.py", "function": "f", "line": 3, "tensors": 4, "mib": 2.5}
    held = {**told, "new_tensors": 2, "new_mib": 1.0, "with_graph": 0, "grown_mib": 1.5}
    lines = [
        line(2.0, "memory_holder", epoch=2, look=2, grown_mib=300.0),
        line(3.0, "memory_holder", **{**held, "mib": -1}),
        line(4.0, "memory_holder", **{**held, "place": "elsewhere"}),
        line(5.0, "memory_holder", **held),
    ]
    (tmp_path / "7.jsonl").write_text(run_line() + "".join(lines))
    ((run,), _) = load_inside(tmp_path, CLOCK, END_S, (), Outside())
    (holder,) = run.memory_holders
    assert (holder.t_s, holder.name, holder.line, holder.mib, holder.grown_mib) == (5.0, "A.b", 3, 2.5, 1.5)


def test_since_when_something_is_on_is_read_and_what_makes_no_sense_is_left_out(tmp_path):
    told = ({"slow_modes": ["cudnn_off"]}, {"slow_modes_now": ["tracemalloc", 3], "slow_modes": []}, {"slow_modes": 7})
    lines = [line(2.0 + at, "settings", **each) for at, each in enumerate(told)]
    (tmp_path / "7.jsonl").write_text(run_line() + "".join(lines))
    ((run,), _) = load_inside(tmp_path, CLOCK, END_S, (), Outside())
    assert run.slow_modes_now == ((2.0, {"cudnn_off"}), (3.0, {"tracemalloc"}))


def test_where_something_was_set_is_read_once_and_what_makes_no_sense_is_left_out(tmp_path):
    told = {"name": "tf32", "file": "/a/train.py", "line": 7}
    odd = ({**told, "line": "7"}, {**told, "file": 3}, {**told, "name": ""}, {})
    lines = [line(2.0, "set_in", **each) for each in (told, told, *odd)]
    (tmp_path / "7.jsonl").write_text(run_line() + "".join(lines))
    ((run,), _) = load_inside(tmp_path, CLOCK, END_S, (), Outside())
    assert run.setting_locations == (SettingLocation("tf32", "/a/train.py", 7),)

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.runs import START, make_run, readings

from gpu_report.load.run_clock import Boot, RunClock
from gpu_report.load.yolo.args_yaml import load_arguments
from gpu_report.load.yolo.fit_training_start import fit_train_start
from gpu_report.load.yolo.results_csv import ResultsRow, load_epochs, parse_results, segments

CLOCK = RunClock((Boot(START, 1000.0, 0.0),))
RESULTS = "epoch,time,train/box_loss,lr/pg0\n1,20.5,3.1,0.01\n2,31.0,2.2,0.02\n3,41.4,1.9,0.03\n"


@pytest.fixture
def yolo(tmp_path):
    (tmp_path / "args.yaml").write_text("epochs: 3\nmodel: yolo26n.yaml\nworkers: 8\n")
    (tmp_path / "results.csv").write_text(RESULTS)
    return tmp_path


def busy(seconds=100):
    return make_run(readings((90, seconds))).samples


def epoch_event(epoch, t, time_s, run=1):
    return {"kind": "epoch", "wall_s": START + t, "mono_s": 1000 + t, "run": run, "epoch": epoch, "time_s": time_s}


class TestParsing:
    def test_rows_are_read_by_name(self):
        first = parse_results(RESULTS)[0]
        assert (first.epoch, first.time_s, dict(first.metrics)) == (1, 20.5, {"train/box_loss": 3.1, "lr/pg0": 0.01})

    def test_padded_names_of_older_versions_are_read(self):
        padded = "                  epoch,                   time,  train/box_loss\n      1,     5.5,    2.0\n"
        assert parse_results(padded) == [ResultsRow(1, 5.5, {"train/box_loss": 2.0})]

    def test_a_row_that_is_being_written_waits(self):
        assert len(parse_results(RESULTS + "4,52.")) == 3

    def test_a_time_that_restarts_is_a_resume(self):
        rows = [ResultsRow(epoch, time_s, {}) for epoch, time_s in [(1, 2), (2, 4), (3, 0.3), (4, 0.9)]]
        assert [[row.epoch for row in part] for part in segments(rows)] == [[1, 2], [3, 4]]

    @given(st.text(max_size=300))
    def test_no_text_raises(self, text):
        parse_results("epoch,time\n" + text)


class TestPlacement:
    def test_stamped_rows_are_taken_as_they_are(self, yolo):
        events = [epoch_event(1, 30, 20.5), epoch_event(2, 40.5, 31.0)]
        (run,), rows, problems = load_epochs(yolo, {}, events, CLOCK, busy())
        assert (run.anchor, run.uncertainty_s, run.args["workers"], problems) == ("recorded", None, 8, ())
        assert [(r.epoch, r.start_t_s, r.row_t_s) for r in rows] == [(1, 9.5, 30), (2, 30, 40.5)]

    def test_a_recording_that_began_in_mid_training_knows_where_its_first_epoch_began(self, yolo):
        _, rows, _ = load_epochs(yolo, {}, [epoch_event(3, 6, 41.4)], CLOCK, busy())
        assert rows[0].start_t_s == pytest.approx(6 - (41.4 - 31.0))

    def test_a_resume_is_a_new_segment(self, yolo):
        events = [epoch_event(1, 20, 10), epoch_event(2, 30, 20), epoch_event(3, 60, 8)]
        _, rows, _ = load_epochs(yolo, {}, events, CLOCK, busy())
        assert [(r.segment, r.start_t_s) for r in rows] == [(1, 10), (1, 20), (2, 52)]

    def test_a_clock_that_was_set_back_is_no_resume(self, yolo):
        """YOLO's `time` is by the wall clock: it falls with that, and the process began at the same wall time."""
        before, after = epoch_event(1, 20.5, 20.5), epoch_event(2, 31, 31)
        after |= {"wall_s": after["wall_s"] - 25, "time_s": 31 - 25}
        _, rows, _ = load_epochs(yolo, {}, [before, after], CLOCK, busy())
        assert [(r.segment, r.start_t_s, r.row_t_s) for r in rows] == [(1, 0, 20.5), (1, 20.5, 31)]

    def test_epochs_that_ended_while_no_recorder_ran_are_those_of_the_file(self, yolo):
        _, rows, _ = load_epochs(yolo, {}, [epoch_event(1, 20.5, 20.5), epoch_event(3, 41.4, 41.4)], CLOCK, busy())
        assert [(r.epoch, r.start_t_s) for r in rows] == [(1, 0), (2, 20.5), (3, pytest.approx(31))]
        assert rows[1].metrics["train/box_loss"] == 2.2

    @pytest.mark.parametrize("set_s", [-500, 500])
    def test_nor_does_a_clock_that_was_set_meanwhile_move_them(self, yolo, set_s):
        (yolo / "results.csv").write_text(f"epoch,time\n1,1020\n2,1031\n3,{1041 + set_s}\n")
        last = epoch_event(3, 41, 1041 + set_s)
        last["wall_s"] += set_s
        _, rows, _ = load_epochs(yolo, {}, [epoch_event(1, 20, 1020), last], CLOCK, busy())
        assert [(r.segment, r.epoch, r.row_t_s) for r in rows] == [(1, 1, 20), (1, 2, 31), (1, 3, 41)]

    def test_the_files_time_places_the_rows(self, yolo):
        info = {"yolo": [{"number": 1, "path": "runs/train", "results_mtime_s": START + 60}]}
        (run,), rows, _ = load_epochs(yolo, info, [], CLOCK, busy())
        assert (run.anchor, run.path) == ("file-time", "runs/train")
        assert [r.row_t_s for r in rows] == pytest.approx([60 - 41.4 + 20.5, 60 - 41.4 + 31.0, 60])
        assert rows[0].start_t_s == pytest.approx(60 - 41.4)

    def test_a_log_that_begins_in_mid_training_has_the_last_epochs(self, yolo):
        info = {"yolo": [{"number": 1, "results_mtime_s": START + 25}]}
        (run,), rows, problems = load_epochs(yolo, info, [], CLOCK, busy(30))
        assert (run.anchor, problems) == ("file-time", ())
        assert [r.row_t_s for r in rows] == pytest.approx([25 - 41.4 + 20.5, 25 - 41.4 + 31.0, 25])

    @pytest.mark.parametrize("mtime", [START + 5000, START - 10, START - 86400])
    def test_a_file_time_outside_the_recording_is_not_believed(self, yolo, mtime):
        (run,), _, _ = load_epochs(yolo, {"yolo": [{"number": 1, "results_mtime_s": mtime}]}, [], CLOCK, busy())
        assert run.anchor == "fitted"

    def test_what_the_user_says_wins(self, yolo):
        info = {"yolo": [{"number": 1, "results_mtime_s": START + 60, "train_start_s": START + 12}]}
        (run,), rows, _ = load_epochs(yolo, info, [], CLOCK, busy())
        assert (run.anchor, rows[0].start_t_s) == ("train-start", 12)

    def test_epochs_longer_than_the_recording_are_not_placed_and_it_is_said(self, yolo):
        (run,), rows, problems = load_epochs(yolo, {}, [], CLOCK, busy(30))
        assert (run.anchor, rows) == ("none", ())
        assert "--train-start" in problems[0]

    def test_only_the_last_segment_of_a_resumed_run_is_placed(self, yolo):
        (yolo / "results.csv").write_text("epoch,time\n1,20\n2,30\n3,10\n4,20\n")
        info = {"yolo": [{"number": 1, "results_mtime_s": START + 60}]}
        (run,), rows, _ = load_epochs(yolo, info, [], CLOCK, busy())
        assert [(r.epoch, r.row_t_s) for r in rows] == [(3, 50), (4, 60)]
        assert "not placed" in run.note

    def test_two_runs_have_their_own_folders(self, yolo):
        for number in (1, 2):
            (yolo / str(number)).mkdir()
            (yolo / str(number) / "args.yaml").write_text(f"epochs: {number}\n")
        runs, rows, _ = load_epochs(
            yolo, {}, [epoch_event(1, 30, 20, run=1), epoch_event(1, 80, 20, run=2)], CLOCK, busy()
        )
        assert [run.args["epochs"] for run in runs] == [1, 2]
        assert [row.run for row in rows] == [1, 2]

    def test_arguments_that_are_no_yaml_are_said(self, yolo):
        (yolo / "args.yaml").write_text("a: [1\n")
        _, _, problems = load_epochs(yolo, {}, [epoch_event(1, 30, 20)], CLOCK, busy())
        assert "args.yaml" in problems[0]


class TestArguments:
    @pytest.mark.parametrize(
        "text",
        [
            "x: 9999-99-99",
            "a: " + "[" * 5000,
            "x: !!bool maybe",
            "x: !!timestamp then",
            "x: !!int ''",
            "x: !!python/name:os.system",
            "a: &a {b: 1}\nc:\n  <<: *a\n",
            "- 1",
            "a: " + "x" * 300_000,
        ],
    )
    def test_a_file_that_cannot_be_read_is_no_arguments_and_it_is_said(self, tmp_path, text):
        (tmp_path / "args.yaml").write_text(text)
        args, (problem,) = load_arguments(tmp_path / "args.yaml")
        assert args == {}
        assert "args.yaml" in problem
        assert "\n" not in problem

    def test_plain_values_stay_what_they_are(self, tmp_path):
        (tmp_path / "args.yaml").write_text("batch: 16\nlr0: 0.01\namp: true\ncache: null\nclasses: [0, 2]\n")
        assert load_arguments(tmp_path / "args.yaml") == (
            {"batch": 16, "lr0": 0.01, "amp": True, "cache": None, "classes": [0, 2]},
            [],
        )

    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("a: 2026-11-21", "2026-11-21"),
            ("a: {b: [{c: 1}]}", "{'b': [{...}]}"),
            ("a: &a [*a]", "[[[...]]]"),
            ("a: 0x1" + "0" * 20, "0x1" + "0" * 20),
        ],
    )
    def test_anything_else_is_its_text(self, tmp_path, text, value):
        (tmp_path / "args.yaml").write_text(text)
        assert load_arguments(tmp_path / "args.yaml")[0] == {"a": value}

    def test_lists_that_share_lists_are_bounded(self, tmp_path):
        doubled = "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))
        (tmp_path / "args.yaml").write_text("a0: &a0 [1, 1]\n" + doubled)
        args, _ = load_arguments(tmp_path / "args.yaml")
        assert len(args) == 40
        assert all(len(str(value)) < 2000 for value in args.values())


class TestFit:
    def test_a_recording_of_months_is_not_searched(self):
        samples = make_run(readings((90, 100))).samples
        samples.loc[99, "t_s"] = 3e7
        assert fit_train_start([20.0], samples) is None

    def test_rows_are_laid_on_the_dips(self):
        parts = [(0, 12), *[(90, 18), (0, 2)], *[(85, 9), (0, 2)], *[(88, 14), (0, 2)], (90, 20)]
        rows_at = [31.0, 42.0, 58.0]
        samples = make_run(readings(*parts)).samples
        fit = fit_train_start([t - 12 for t in rows_at], samples)
        assert fit.train_start_t_s == pytest.approx(12, abs=1.5)
        assert fit.uncertainty_s == 0.5

    def test_where_there_are_no_dips_the_answer_is_said_to_be_unsure(self):
        fit = fit_train_start([20.0, 30.0], make_run(readings((50, 100))).samples)
        assert fit.uncertainty_s > 2
        assert "--train-start" in fit.note

    def test_rows_that_do_not_fit_into_the_recording_are_refused(self):
        assert fit_train_start([200.0], make_run(readings((90, 100))).samples) is None


class TestHints:
    def test_a_recording_in_the_wrong_zone_is_suspected(self, yolo):
        info = {"yolo": [{"number": 1, "results_mtime_s": START + 60 - 2 * 3600}]}
        (run,), _, _ = load_epochs(yolo, info, [], CLOCK, busy())
        assert "2 h earlier: check --timezone" in run.note

    def test_a_train_start_outside_the_recording_is_not_used_and_it_is_said(self, yolo):
        info = {"yolo": [{"number": 1, "results_mtime_s": START + 60, "train_start_s": START - 9e7}]}
        (run,), _, _ = load_epochs(yolo, info, [], CLOCK, busy())
        assert run.anchor == "file-time"
        assert "--train-start lies outside" in run.note


def saved_event(t_s, file="last.pt", run=1):
    return {"kind": "checkpoint", "run": run, "file": file, "wall_s": START + t_s, "mono_s": None}


class TestFileTimes:
    def test_args_yaml_tells_when_the_run_began_and_last_pt_how_long_its_checkpoint_took(self, yolo):
        times = {"results_mtime_s": START + 60, "args_mtime_s": START + 4.5, "weights_mtime_s": START + 60.7}
        (run,), rows, _ = load_epochs(yolo, {"yolo": [{"number": 1, **times}]}, [], CLOCK, busy())
        assert (run.started_t_s, run.checkpoint_s) == pytest.approx((4.5, 0.7))
        assert [row.saved_t_s for row in rows] == [None, None, pytest.approx(60.7)]

    @pytest.mark.parametrize("weights", [START + 59, START + 4000, float("nan"), "soon", None])
    def test_weights_that_were_not_written_right_after_the_last_row_tell_nothing(self, yolo, weights):
        info = {"yolo": [{"number": 1, "results_mtime_s": START + 60, "weights_mtime_s": weights}]}
        (run,), rows, _ = load_epochs(yolo, info, [], CLOCK, busy())
        assert (run.checkpoint_s, rows[-1].saved_t_s, run.started_t_s) == (None, None, None)

    def test_a_checkpoint_ends_with_the_last_file_that_was_seen_being_written(self, yolo):
        events = [epoch_event(1, 20, 10), saved_event(20.5), saved_event(20.9, "best.pt"), epoch_event(2, 30, 20)]
        _, rows, _ = load_epochs(yolo, {}, events, CLOCK, busy())
        assert [row.saved_t_s for row in rows] == [pytest.approx(20.9), None]

    def test_weights_stripped_after_the_final_evaluation_are_no_checkpoint(self, yolo):
        events = [epoch_event(1, 20, 10), saved_event(20.5), saved_event(27.0), saved_event(27.1, "best.pt")]
        _, rows, _ = load_epochs(yolo, {}, events, CLOCK, busy())
        assert rows[0].saved_t_s == pytest.approx(20.5)

    def test_the_weights_of_another_run_are_not_its_own(self, yolo):
        _, rows, _ = load_epochs(yolo, {}, [epoch_event(1, 20, 10), saved_event(20.5, run=2)], CLOCK, busy())
        assert rows[0].saved_t_s is None

    def test_a_run_without_a_row_came_to_no_epoch(self, yolo):
        (yolo / "results.csv").unlink()
        (run,), rows, _ = load_epochs(yolo, {"yolo": [{"number": 1, "args_mtime_s": START + 3}]}, [], CLOCK, busy())
        assert (run.anchor, run.started_t_s, rows) == ("no-epoch", 3.0, ())

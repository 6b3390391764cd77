import json
import os
import shutil
import subprocess
import time

import pytest
from support.tensorboard import write_by_torch

from gpu_report.inside import RUN_FOLDER_VARIABLE
from gpu_report.record import clocks
from gpu_report.record.clocks import Clocks
from gpu_report.record.options import RecordOptions
from gpu_report.record.proc_files import descendants
from gpu_report.record.yolo import watch
from gpu_report.record.yolo.watch import SEARCH_AGAIN_EVERY_S, Followed, YoloWatch, pids_to_follow
from gpu_report.record.yolo.weights import WeightsWatch

HEADER = "epoch,time,train/box_loss\n"


class Training:
    """A training as it looks from outside, on a clock of its own; what the watch emits is kept in `events`."""

    def __init__(self, tmp_path, **options):
        self.run_folder = tmp_path / "recording"
        self.start = clocks.now()
        self.at = self.start
        self.events = []
        self.watch = YoloWatch(self.run_folder, self.start, RecordOptions(**options), ())
        self.followed = Followed()

    def write(self, folder, *rows, args="epochs: 3\n"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "args.yaml").write_text(args)
        if rows:
            (folder / "results.csv").write_text(HEADER + "".join(f"{epoch},{time},0.5\n" for epoch, time in rows))
        for name in ("args.yaml", "results.csv"):
            if (folder / name).exists():
                os.utime(folder / name, (self.at.wall_s,) * 2)

    def tick(self, seconds=1.0):
        self.at = Clocks(self.at.wall_s + seconds, self.at.mono_s + seconds, self.at.boot_s + seconds)
        return self.watch.tick(self.at, lambda: self.followed, self.emit)

    def emit(self, kind, at, fields):
        self.events.append((kind, at, fields))

    def epochs(self):
        return [(f["run"], f["epoch"], at.wall_s - self.start.wall_s) for k, at, f in self.events if k == "epoch"]


@pytest.fixture
def training(tmp_path, monkeypatch):
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("YOLO_CONFIG_DIR", str(tmp_path))
    return Training(tmp_path)


def test_each_row_is_an_epoch_at_the_moment_it_was_written(training, tmp_path):
    run = tmp_path / "work/runs/détect/train"
    training.write(run)
    training.tick(3)
    training.write(run, (1, 2.9))
    assert training.tick(1)
    training.tick(1)
    training.write(run, (1, 2.9), (2, 5.0))
    training.tick(0.5)
    assert [(number, epoch) for number, epoch, _ in training.epochs()] == [(1, 1), (1, 2)]
    assert [at for *_, at in training.epochs()] == pytest.approx([3.0, 5.0], abs=1e-3)
    kind, at, fields = training.events[1]
    assert (kind, fields) == ("epoch", {"run": 1, "epoch": 1, "time_s": 2.9, "metrics": {"train/box_loss": 0.5}})
    assert at.mono_s - training.start.mono_s == pytest.approx(3.0, abs=1e-3)
    known = training.watch.as_json()[0]
    assert (known["number"], known["path"]) == (1, str(run))
    assert known["train_start_s"] == pytest.approx(training.start.wall_s, abs=1e-3)


def test_the_runs_files_are_copied_with_their_times(training, tmp_path):
    run = tmp_path / "work/train"
    training.write(run, (1, 1.0))
    training.tick()
    copy = training.run_folder / "yolo/results.csv"
    assert copy.read_text() == (run / "results.csv").read_text()
    assert copy.stat().st_mtime == pytest.approx((run / "results.csv").stat().st_mtime)
    assert (training.run_folder / "yolo/args.yaml").read_text() == "epochs: 3\n"
    assert sorted(path.name for path in run.iterdir()) == ["args.yaml", "results.csv"]


def test_a_second_run_gets_number_2_and_folders_of_their_own(training, tmp_path):
    training.write(tmp_path / "work/train", (1, 1.0), args="epochs: 1\n")
    training.tick()
    training.tick(SEARCH_AGAIN_EVERY_S)
    training.write(tmp_path / "work/train2", (1, 1.0), args="epochs: 2\n")
    training.tick(SEARCH_AGAIN_EVERY_S)
    assert [(number, epoch) for number, epoch, _ in training.epochs()] == [(1, 1), (2, 1)]
    assert [(training.run_folder / f"yolo/{n}/args.yaml").read_text() for n in (1, 2)] == ["epochs: 1\n", "epochs: 2\n"]
    assert not (training.run_folder / "yolo/args.yaml").exists()


def test_the_same_folder_begun_anew_is_another_run(training, tmp_path):
    run = tmp_path / "work/train"
    training.write(run, (1, 1.0), (2, 2.0))
    training.tick()
    training.write(run, (1, 1.5))
    training.tick()
    assert [(number, epoch) for number, epoch, _ in training.epochs()][-1] == (2, 1)
    assert len([kind for kind, *_ in training.events if kind == "yolo_run"]) == 2


def test_the_same_folder_begun_anew_is_seen_when_it_has_caught_up(training, tmp_path):
    run = tmp_path / "work/train"
    training.write(run, (1, 1.0), (2, 2.0))
    training.tick()
    shutil.rmtree(run)
    training.tick()
    training.write(run, (1, 1.5), (2, 2.5))  # between two looks, as after a suspended recorder
    training.tick()
    assert [(number, epoch) for number, epoch, _ in training.epochs()] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    kept = [(training.run_folder / f"yolo/{number}/results.csv").read_text() for number in (1, 2)]
    assert ["1.0" in kept[0], "1.5" in kept[1]] == [True, True]


def test_an_earlier_runs_folder_begun_anew_is_a_new_run_once(training, tmp_path):
    first, second = tmp_path / "work/train", tmp_path / "work/train2"
    training.write(first, (1, 1.0), (2, 2.0))
    training.tick()
    training.write(second, (1, 1.1))
    training.tick(SEARCH_AGAIN_EVERY_S + 1)
    training.write(first, (1, 1.0), (2, 2.0), (3, 3.0))  # another training that goes on beside it is no new run
    training.tick(SEARCH_AGAIN_EVERY_S + 1)
    training.write(first, (1, 1.2), (2, 2.2))
    training.tick(SEARCH_AGAIN_EVERY_S + 1)
    training.tick(SEARCH_AGAIN_EVERY_S + 1)
    assert [(number, epoch) for number, epoch, _ in training.epochs()] == [
        (1, 1),
        (1, 2),
        (2, 1),
        (1, 3),
        (3, 1),
        (3, 2),
    ]
    training.write(first, (1, 1.3))
    training.tick(SEARCH_AGAIN_EVERY_S + 1)
    training.tick(SEARCH_AGAIN_EVERY_S + 1)
    assert [run["number"] for run in training.watch.as_json()] == [1, 2, 3, 4]


def test_ddp_deleting_the_folder_before_it_starts_is_borne(training, tmp_path):
    run = tmp_path / "work/train"
    training.write(run)
    training.tick(3)
    shutil.rmtree(run)
    training.tick()
    training.write(run, (1, 1.0))
    training.tick()
    assert [(number, epoch) for number, epoch, _ in training.epochs()] == [(1, 1)]


def test_a_recorder_started_beside_a_training_gives_out_what_follows(tmp_path, training):
    run = tmp_path / "work/train"
    training.write(run, (1, 100.0), (2, 200.0))
    os.utime(run / "results.csv", (training.start.wall_s - 60,) * 2)
    os.utime(run / "args.yaml", (training.start.wall_s - 300,) * 2)
    training.tick()
    assert training.epochs() == []
    training.tick(40)
    training.write(run, (1, 100.0), (2, 200.0), (3, 300.0))
    training.tick(10)
    assert [(number, epoch) for number, epoch, _ in training.epochs()] == [(1, 3)]


def test_a_resumed_csv_gives_out_only_the_rows_of_now(training, tmp_path):
    training.write(tmp_path / "work/train", (1, 500.0), (2, 900.0))
    training.tick()
    training.events.clear()
    training.write(tmp_path / "work/train", (1, 500.0), (2, 900.0), (3, 0.3))
    training.tick()
    assert [(number, epoch) for number, epoch, _ in training.epochs()] == [(1, 3)]


def test_a_named_folder_is_watched_once_it_is_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "anywhere/run"
    training = Training(tmp_path, yolo=run)
    training.tick()
    assert training.events == []
    training.write(run, (1, 1.0))
    training.tick(3)
    assert [(number, epoch) for number, epoch, _ in training.epochs()] == [(1, 1)]


def test_a_file_servers_clock_does_not_misplace_a_row(training, tmp_path):
    run = tmp_path / "work/train"
    training.write(run, (1, 1.0))
    training.tick()
    training.write(run, (1, 1.0), (2, 2.0))
    os.utime(run / "results.csv", (training.at.wall_s + 3600,) * 2)
    training.tick()
    assert training.epochs()[-1][2] == pytest.approx(2.0, abs=1e-3)


def test_a_recording_continued_keeps_the_number_of_its_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("YOLO_CONFIG_DIR", str(tmp_path))
    run = tmp_path / "train"
    training = Training(tmp_path)
    training.watch = YoloWatch(training.run_folder, training.start, RecordOptions(), [{"number": 1, "path": str(run)}])
    training.write(run, (1, 1.0))
    training.tick()
    assert [known["number"] for known in training.watch.as_json()] == [1]
    training.write(tmp_path / "train2", (1, 1.0))
    training.tick(SEARCH_AGAIN_EVERY_S)
    assert [known["number"] for known in training.watch.as_json()] == [1, 2]


def say(training, folder, task="train", pid=7):
    inside = training.run_folder / "inside"
    inside.mkdir(parents=True, exist_ok=True)
    with (inside / f"{pid}.jsonl").open("a") as file:
        file.write(json.dumps({"kind": "run", "task": task, "save_dir": str(folder)}) + "\n")


def runs(training):
    return [(fields["number"], fields["path"]) for kind, _, fields in training.events if kind == "yolo_run"]


def test_where_our_callbacks_say_that_a_run_lies_it_is_watched_at_once(training, tmp_path):
    far = tmp_path / "elsewhere" / "train"  # nobody would look there
    training.tick()
    training.write(far, (1, 1.0))
    say(training, tmp_path / "elsewhere" / "val", task="val")
    training.tick(0.1)
    assert runs(training) == []
    say(training, far)
    training.tick(0.1)
    assert runs(training) == [(1, str(far))]
    assert [epoch for _, epoch, _ in training.epochs()] == [1]


def test_the_next_training_of_the_same_process_is_heard_of_and_the_one_before_read_to_its_end(training, tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    training.write(first)
    say(training, first)
    training.tick(0.1)
    training.write(first, (1, 1.0))
    training.write(second)
    say(training, second)
    training.tick(0.1)
    assert runs(training) == [(1, str(first)), (2, str(second))]
    assert [run for run, _, _ in training.epochs()] == [1]


def test_a_folder_under_two_names_is_one_run(training, tmp_path):
    real, link = tmp_path / "work" / "runs" / "train", tmp_path / "link"
    training.write(real)
    link.symlink_to(real)
    say(training, link)
    training.tick()
    training.write(real, (1, 1.0))
    training.tick(SEARCH_AGAIN_EVERY_S + 1)
    assert runs(training) == [(1, str(link))]


@pytest.mark.parametrize("text", ["{", '{"kind": "run"}', '{"kind": "run", "task": "train", "save_dir": 5}', "\0" * 9])
def test_lines_that_say_nothing_are_passed_over(training, text):
    say(training, "/nowhere")
    with (training.run_folder / "inside" / "7.jsonl").open("a") as file:
        file.write(text + "\n")
    training.tick()
    assert runs(training) == []


def test_what_an_earlier_recording_left_is_no_hint(training, tmp_path):
    training.write(tmp_path / "old")
    say(training, tmp_path / "old")
    later = YoloWatch(training.run_folder, clocks.now(), RecordOptions(), ())
    later.tick(clocks.now(), Followed, training.emit)
    assert runs(training) == []


def test_weights_are_told_when_they_are_written_and_once_each(tmp_path):
    run = tmp_path / "run"
    (run / "weights").mkdir(parents=True)
    now = time.time()
    for name, age_s in (("last.pt", 2.0), ("best.pt", 1.0)):
        (run / "weights" / name).write_bytes(b"x")
        os.utime(run / "weights" / name, (now - age_s, now - age_s))
    watch = WeightsWatch(run, now - 60)
    assert watch.changes() == [("last.pt", pytest.approx(now - 2)), ("best.pt", pytest.approx(now - 1))]
    assert watch.changes() == []
    os.utime(run / "weights" / "last.pt", (now, now))
    assert watch.changes() == [("last.pt", pytest.approx(now))]
    assert watch.last_s == pytest.approx(now)
    assert WeightsWatch(run, now + 60).changes() == []
    assert WeightsWatch(tmp_path / "none", 0.0).changes() == []


def test_the_copy_of_the_arguments_holds_no_secrets(training, tmp_path):
    training.write(tmp_path / "work/train", args="data: https://me:pw@host/d.zip\nepochs: 3\n")
    training.tick()
    copy = training.run_folder / "yolo/args.yaml"
    assert copy.read_text() == "data: https://***@host/d.zip\nepochs: 3\n"
    assert copy.stat().st_mtime == pytest.approx(training.start.wall_s, abs=1e-3)


def test_a_run_resumed_after_another_one_is_followed_again_under_its_number(training, tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    for folder in (first, second):
        training.write(folder, (1, 1.0))
        say(training, folder)
        training.tick()
    say(training, first)
    training.write(first, (1, 1.0), (2, 0.5))
    training.tick()
    training.write(first, (1, 1.0), (2, 0.5), (3, 1.0))
    training.tick()
    assert [(run, epoch) for run, epoch, _ in training.epochs()] == [(1, 1), (2, 1), (1, 2), (1, 3)]
    assert training.watch.path == first
    assert [run["number"] for run in training.watch.as_json()] == [1, 2]
    training.watch.search_now()
    training.tick()
    assert (training.run_folder / "yolo/1/results.csv").read_text() == (first / "results.csv").read_text()


def test_results_are_copied_at_the_first_row_then_seldom_and_at_the_end(training, tmp_path):
    run, copy = tmp_path / "work/train", training.run_folder / "yolo/results.csv"
    lengths = []
    for rows, seconds in ((1, 1), (2, 1), (3, 30), (4, 1)):
        training.write(run, *((epoch, float(epoch)) for epoch in range(1, rows + 1)))
        training.tick(seconds)
        lengths.append(len(copy.read_text().splitlines()) - 1)
    training.watch.search_now()
    training.tick(0.1)
    assert [*lengths, len(copy.read_text().splitlines()) - 1] == [1, 1, 3, 3, 4]


@pytest.mark.parametrize("name", ["args.yaml", "results.csv", "settings"])
def test_a_pipe_or_an_endless_file_in_place_of_yolos_holds_nothing_up(training, tmp_path, name):
    run = tmp_path / "work/runs/detect/train"
    training.write(run, (1, 2.9))
    path = tmp_path / "Ultralytics/settings.json" if name == "settings" else run / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    training.tick(1)
    path.unlink()
    path.symlink_to("/dev/zero")
    training.tick(1)
    path.unlink()
    training.write(run, (1, 2.9), (2, 5.0))
    training.tick(SEARCH_AGAIN_EVERY_S + 1)
    assert (training.run_folder / "yolo/args.yaml").is_file()


def test_a_command_whose_callbacks_tell_of_its_training_has_no_other_ones(tmp_path, monkeypatch):
    work, other, mine = tmp_path / "work", tmp_path / "work/other", tmp_path / "work/mine"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("YOLO_CONFIG_DIR", str(tmp_path))
    training = Training(tmp_path, command=("python", "train.py"))
    inside = training.run_folder / "inside"
    inside.mkdir(parents=True)
    training.write(mine)
    said = {"kind": "run", "task": "train", "save_dir": str(mine)}
    (inside / "7.jsonl").write_text(json.dumps(said) + "\n")
    training.tick()
    for epoch in range(1, 4):  # somebody else's, in the same working directory, which begins later
        training.write(other, *((each, 2.0 * each) for each in range(1, epoch + 1)))
        training.tick(SEARCH_AGAIN_EVERY_S)
    assert [fields["path"] for kind, _, fields in training.events if kind == "yolo_run"] == [str(mine)]


def logged(training):
    return [(f["run"], f["part"], f["epoch"], at.wall_s) for k, at, f in training.events if k == "tensorboard"]


def write_events(training, folder):
    at_s = training.at.wall_s
    scalars = [("train/box_loss", 1.0, 1, at_s - 0.4), ("metrics/mAP50(B)", 0.5, 1, at_s - 0.1)]
    return write_by_torch(folder, scalars, begun_s=at_s - 2)


def test_a_command_that_calls_a_model_has_no_trainings_of_others(tmp_path, monkeypatch):
    """A neighbour on the other GPU began to train in the same working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("YOLO_CONFIG_DIR", str(tmp_path))
    served = Training(tmp_path, command=("python", "serve.py"))
    inside = served.run_folder / "inside"
    inside.mkdir(parents=True)
    (inside / "7.jsonl").write_text(json.dumps({"kind": "run", "task": "predict", "save_dir": None}) + "\n")
    served.write(tmp_path / "runs/detect/train", (1, 1.0))
    served.tick()
    assert served.watch.path is None


@pytest.fixture
def caller(tmp_path, monkeypatch):
    """A command whose callbacks have told that it calls a model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("YOLO_CONFIG_DIR", str(tmp_path))
    caller = Training(tmp_path, command=("python", "label_and_train.py"))
    inside = caller.run_folder / "inside"
    inside.mkdir(parents=True)
    (inside / "7.jsonl").write_text(json.dumps({"kind": "run", "task": "predict", "save_dir": None}) + "\n")
    return caller


@pytest.fixture
def sleeper():
    """Start a process as the command would, in an environment of its own."""
    started = []

    def start(env):
        started.append(subprocess.Popen(["/bin/sleep", "60"], env=env))
        return started[-1].pid

    yield start
    for each in started:
        each.kill()
        each.wait()


def test_a_training_within_a_command_that_lost_our_callbacks_is_looked_for(caller, sleeper, tmp_path):
    """Such as by `env -i`, or `sudo`: it uses a GPU and cannot tell of itself."""
    mine = tmp_path / "runs/detect/train"
    caller.followed = Followed([sleeper({})])
    caller.at = clocks.now()
    caller.write(mine, (1, 1.0))
    caller.tick()
    assert caller.watch.path == mine


def test_beside_a_process_that_tells_or_began_later_or_of_another_user_nothing_is_taken(
    caller, sleeper, tmp_path, monkeypatch
):
    others = tmp_path / "runs/detect/train"
    caller.write(others, (1, 1.0))
    tells = sleeper({RUN_FOLDER_VARIABLE: "/here"})
    for followed in (Followed([tells]), Followed((), [sleeper({})]), Followed([2**22])):
        caller.followed = followed  # it tells; it uses no GPU; it is gone
        caller.tick(SEARCH_AGAIN_EVERY_S)
        assert caller.watch.path is None
    caller.followed = Followed([sleeper({})])
    caller.watch._since_wall_s -= 60
    for name in ("args.yaml", "results.csv"):
        os.utime(others / name, (clocks.now().wall_s - 10,) * 2)  # it began before that process
    caller.tick(SEARCH_AGAIN_EVERY_S)
    assert caller.watch.path is None
    for name in ("args.yaml", "results.csv"):
        os.utime(others / name, (clocks.now().wall_s + 1,) * 2)
    with monkeypatch.context() as patched:
        patched.setattr(watch, "users_of", lambda _: {os.getuid() + 1})
        caller.tick(SEARCH_AGAIN_EVERY_S)
    assert caller.watch.path is None
    caller.tick(SEARCH_AGAIN_EVERY_S)
    assert caller.watch.path == others


def test_a_training_whose_folder_has_another_name_here_is_looked_for(tmp_path, monkeypatch):
    """A container tells its own name of the folder, which it has from here."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("YOLO_CONFIG_DIR", str(tmp_path))
    contained = Training(tmp_path, command=("docker", "run", "image", "yolo", "train"))
    inside = contained.run_folder / "inside"
    inside.mkdir(parents=True)
    told = {"kind": "run", "task": "train", "save_dir": "/ultralytics-of-image/runs/detect/train"}
    (inside / "7.jsonl").write_text(json.dumps(told) + "\n")
    contained.write(tmp_path / "runs/detect/train", (1, 1.0))
    contained.tick()
    assert contained.watch.path == tmp_path / "runs/detect/train"


def test_beside_a_command_processes_of_others_are_not_followed():
    mine = os.getpid()
    assert pids_to_follow(mine, {7, 8}, {8}).all == [7, *descendants(mine)]
    assert pids_to_follow(None, {7}, {7}).all == [7]  # a recorder beside trainings follows any of them


def test_the_events_that_yolo_writes_for_tensorboard_say_when_epochs_ended(training, tmp_path):
    run = tmp_path / "work/train"
    training.write(run, (1, 2.9))
    training.tick(3)
    write_events(training, run)
    training.tick()
    assert logged(training) == []  # they are read once, as the recording ends
    training.watch.search_now()
    training.tick()
    at_s = training.start.wall_s + 3
    expected = [(1, "start", None, at_s - 2), (1, "train", 1, at_s - 0.4), (1, "epoch", 1, at_s - 0.1)]
    assert logged(training) == [(*said, pytest.approx(wall_s, abs=1e-3)) for *said, wall_s in expected]


def test_where_callbacks_report_the_events_are_left_alone(training, tmp_path):
    run = tmp_path / "work/train"
    training.write(run, (1, 2.9))
    write_events(training, run)
    inside = training.run_folder / "inside"
    inside.mkdir(parents=True)
    line = {"kind": "run", "task": "train", "save_dir": str(run), "wall_s": 1.0, "mono_s": 1.0}
    (inside / "1.jsonl").write_text(json.dumps(line) + "\n")
    training.tick()
    training.watch.search_now()
    training.tick()
    assert logged(training) == []


def test_events_that_are_broken_or_older_than_the_recording_are_none(training, tmp_path):
    run = tmp_path / "work/train"
    training.write(run, (1, 2.9))
    training.tick(3)
    (run / "events.out.tfevents.1").write_bytes(b"broken")
    os.utime(write_events(training, run), (training.start.wall_s - 100,) * 2)
    training.watch.search_now()
    training.tick()
    assert logged(training) == []

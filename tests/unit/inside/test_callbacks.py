"""The callbacks with a trainer that only looks like one: what they write, what they cost, what they survive."""

import cProfile
import gc
import json
import logging
import os
import pickle
import subprocess
import sys
import time
import tracemalloc
import weakref
from types import SimpleNamespace as Some

import numpy as np
import pytest

from gpu_report.inside import RUN_FOLDER_VARIABLE
from gpu_report.inside.on_path.gpu_report_inside import DEFAULT_CALLBACKS, callbacks, facts, lines, training
from gpu_report.inside.on_path.gpu_report_inside.callbacks import CALLBACKS
from gpu_report.inside.on_path.gpu_report_inside.memory import watch
from gpu_report.inside.on_path.gpu_report_inside.runs import CURRENT, at_exit

pytestmark = pytest.mark.live  # waits are told by the clock


class Trainer:
    """As much of a trainer as the callbacks look at."""

    def __init__(self, folder, epochs=2, **args):
        self.save_dir = folder / "train"
        self.args = Some(val=True, time=None, model="m.yaml", amp=True, imgsz=64, **args)
        self.epochs, self.start_epoch, self.epoch, self.batch_size = epochs, 0, 0, 8
        self.train_loader = Some(dataset=range(20), num_workers=3)
        self.tloss, self.lr = {"box": 1.5, "cls": 2.0}, {"lr/pg0": 0.01}
        self.stop = False
        self.amp = True

    def get_dataset(self):
        return "data"

    def setup_model(self):
        return self.get_model()

    def get_model(self):
        return "model"

    def _close_dataloader_mosaic(self):
        return "closed"


class Images:
    """As much of a data set as is looked at: as ultralytics' detection has it, or its classification."""

    def __init__(self, **files):
        vars(self).update(files)

    def __len__(self):
        return len(next(iter(vars(self).values())))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A run folder, and callbacks that have seen nothing yet."""
    monkeypatch.setenv(RUN_FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setattr(lines, "_reported", set())
    monkeypatch.setattr(CURRENT, "run", None)
    return tmp_path


def written(folder, *kinds):
    lines.LINES.drain()
    found = [json.loads(line) for path in (folder / "inside").glob("*") for line in path.read_text().splitlines()]
    return [line for line in found if not kinds or line["kind"] in kinds]


def call(trainer, *events):
    for event in events:
        CALLBACKS[event](trainer)


def validate(trainer, *, standalone=False):
    call(Some(training=not standalone, save_dir=trainer.save_dir), "on_val_start", "on_val_end")


def epoch(trainer, number, batches=3):
    trainer.epoch = number - 1
    call(trainer, "on_train_epoch_start")
    call(trainer, *["on_train_batch_start", "on_train_batch_end"] * batches)
    call(trainer, "on_train_epoch_end")


def whole_epoch(trainer, number):
    epoch(trainer, number)
    validate(trainer)
    trainer.stop = number == trainer.epochs
    call(trainer, "on_model_save" if "on_model_save" in CALLBACKS else "on_fit_epoch_end")


def start(trainer):
    call(trainer, "on_pretrain_routine_start")
    trainer.get_dataset()
    trainer.setup_model()
    call(trainer, "on_pretrain_routine_end", "on_train_start")


def finish(trainer):
    validate(trainer, standalone=True)
    call(trainer, "on_fit_epoch_end", "on_train_end", "teardown")


def phases(folder):
    return [(line["name"], line["detail"], line["epoch"]) for line in written(folder, "phase")]


def test_a_training_tells_every_phase_once(folder):
    trainer = Trainer(folder)
    start(trainer)
    whole_epoch(trainer, 1)
    whole_epoch(trainer, 2)
    finish(trainer)
    assert phases(folder) == [
        ("startup", "setup", None),
        ("startup", "data set", None),
        ("startup", "setup", None),
        ("startup", "model", None),
        ("startup", "setup", None),
        ("startup", "first batch", 1),
        ("train", "", 1),
        ("validation", "", 1),
        ("checkpoint", "", 1),
        ("train", "", 2),
        ("validation", "", 2),
        ("checkpoint", "", 2),
        ("final evaluation", "", None),
    ]
    (run,), (ended,) = written(folder, "run"), written(folder, "ended")
    assert (run["task"], run["pid"], run["rank"], run["save_dir"]) == ("train", os.getpid(), 0, str(trainer.save_dir))
    assert ended["how"] == "finished"
    assert vars(trainer).keys() & {"get_dataset", "setup_model", "_close_dataloader_mosaic"} == set()


def test_a_validation_that_a_callback_makes_is_part_of_what_goes_on(folder):
    trainer = Trainer(folder)
    trainer.validator = Some(training=True, save_dir=trainer.save_dir)
    start(trainer)
    for number in (1, 2):
        epoch(trainer, number)
        call(trainer.validator, "on_val_start", "on_val_end")
        trainer.stop = number == trainer.epochs
        validate(trainer, standalone=True)  # of a model by itself, as in a callback of an epoch's end
        call(trainer, "on_fit_epoch_end")
    ends = [("checkpoint", "", 1), ("train", "", 2), ("validation", "", 2), ("checkpoint", "", 2)]
    assert phases(folder)[-5:] == [*ends, ("final evaluation", "", None)]


def test_an_epoch_that_begins_shows_that_none_was_the_last(folder):
    trainer = Trainer(folder)
    start(trainer)
    epoch(trainer, 1)
    validate(trainer, standalone=True)  # with the trainer's validator, in a callback
    whole_epoch(trainer, 2)
    ends = [("train", "", 2), ("validation", "", 2), ("checkpoint", "", 2), ("final evaluation", "", None)]
    assert phases(folder)[-5:] == [("final evaluation", "", None), *ends]


def test_an_epoch_is_summed_up(folder):
    trainer = Trainer(folder)
    start(trainer)
    epoch(trainer, 1)
    (line,) = written(folder, "epoch")
    assert (line["epoch"], line["attempt"], line["batches"], line["images"]) == (1, 1, 3, 20)
    assert (line["loss"], line["lr"]) == (3.5, 0.01)
    (settings,) = written(folder, "settings")
    assert (settings["workers"], settings["imgsz"], settings["images"]) == (3, 64, 20)
    assert "val_images" not in settings  # this trainer has no test_loader


def test_where_the_images_lie_and_what_they_take(folder):
    (folder / "images").mkdir()
    (folder / "data").symlink_to(folder / "images")
    files = [folder / "data" / f"{number}.jpg" for number in range(50)]
    for number, file in enumerate(files):
        file.write_bytes(b"x" * 2**18 * (1 + number % 2))
    trainer = Trainer(folder)
    for dataset in (Images(im_files=files), Images(samples=[(str(file), 0) for file in files])):
        trainer.train_loader.dataset = dataset
        told = facts.read(facts.TRAINING, trainer)
        assert told["data_folder"] == str(folder / "images")
        assert told["data_mib"] == pytest.approx(50 * 0.375, rel=0.35)  # half are of 0.25, half of 0.5 MiB
    files[0].unlink()  # moved away meanwhile
    told = facts.read(facts.TRAINING, trainer)
    assert "data_mib" not in told
    assert told["data_folder"] == str(folder / "images")


def test_how_many_of_the_images_are_different_files(folder):
    trainer = Trainer(folder)
    for files, different in ((["a.jpg", "b.jpg", "a.jpg"], 2), (["a.jpg"], None), ([], None)):
        trainer.train_loader.dataset = Images(ims=[1, 2, 3], im_files=files)
        assert facts.read(facts.TRAINING, trainer)["distinct_images"] == different
    trainer.train_loader.dataset = Images(ims=[1, 2, 3], samples=[])
    assert "distinct_images" not in facts.read(facts.TRAINING, trainer)


def test_how_large_the_npy_images_are_where_most_images_have_one(folder):
    trainer, files = Trainer(folder), [folder / f"{number}.npy" for number in range(40)]
    trainer.train_loader.dataset = Images(npy_files=files)
    files[0].write_bytes(bytes(2**20))
    assert facts.read(facts.TRAINING, trainer)["npy_mib"] is None
    for file in files:
        file.write_bytes(bytes(2**20))
    assert facts.read(facts.TRAINING, trainer)["npy_mib"] == 40
    trainer.train_loader.dataset = Images(samples=[])
    assert "npy_mib" not in facts.read(facts.TRAINING, trainer)


def labelled(count, most=2500):
    """Return labels as ultralytics keeps them, of images of 480 x 640 with 3 boxes; every 25th has the most."""
    return [
        {"shape": (480, 640) if number % 2 else (960, 720), "bboxes": range(3 if number % 25 else most)}
        for number in range(count)
    ]


def test_how_large_the_images_are_and_how_many_boxes_they_have(folder, monkeypatch):
    trainer = Trainer(folder)
    trainer.train_loader.dataset = Images(labels=labelled(99))
    told = facts.read(facts.TRAINING, trainer)
    assert (told["image_px"], told["image_boxes"]) == (960, [pytest.approx(3 + 4 * 2497 / 99, abs=0.01), 2500])
    assert told["scaled_down"] == [
        1.0,
        960,
        pytest.approx(64**2 * (3 / 4) / (480 * 640 * 49 + 960 * 720 * 50) * 99, abs=2e-4),
    ]
    for dataset in (Images(samples=[("a.jpg", 0)]), Images(labels=[])):  # of classification, and an empty one
        trainer.train_loader.dataset = dataset
        assert not {"image_px", "image_boxes"} & facts.read(facts.TRAINING, trainer).keys()
    trainer.train_loader.dataset = Images(labels=labelled(99))
    monkeypatch.setattr(facts, "rank", lambda: 1)
    assert facts.read(facts.TRAINING, trainer)["image_px"] is None


def test_how_many_classes_are_named_and_labelled(folder):
    trainer = Trainer(folder)
    trainer.data = {"nc": 1203}
    full = np.full((3000, 1), 2.0)
    full[facts.BOXES_ASKED + 1 :] = 7  # of a full image the first boxes count
    classes = [np.array([[0.0], [5.0]]), np.zeros((0, 1)), full]
    trainer.train_loader.dataset = Images(labels=[{"cls": each} for each in classes])
    assert facts.read(facts.TRAINING, trainer)["label_classes"] == [1203, 3, 2]
    trainer.train_loader.dataset = Images(samples=[("a.jpg", 0)])
    assert "label_classes" not in facts.read(facts.TRAINING, trainer)


def test_which_images_training_scales_down(folder):
    trainer = Trainer(folder)
    shapes = [(48, 64), (64, 48), (32, 32), (640, 480)]
    trainer.train_loader.dataset = Images(labels=[{"shape": shape, "bboxes": ()} for shape in shapes])
    used = (3 * 64 * 48 + 32 * 32) / (2 * 64 * 48 + 32 * 32 + 640 * 480)
    assert facts.read(facts.TRAINING, trainer)["scaled_down"] == [0.25, 640, pytest.approx(used, abs=1e-4)]
    trainer.train_loader.dataset.labels.pop()
    assert facts.read(facts.TRAINING, trainer)["scaled_down"] == [0.0, 64, 1.0]


def test_of_many_labels_some_are_looked_at_evenly_spread(folder):
    class Label(dict):
        looked = 0

        def __getitem__(self, name):
            Label.looked += 1
            return super().__getitem__(name)

    trainer = Trainer(folder)
    trainer.train_loader.dataset = Images(labels=[Label(label) for label in labelled(25_003)])
    mean, most = facts.read(facts.TRAINING, trainer)["image_boxes"]
    assert (mean, most) == (pytest.approx(3 + 2497 / 25, rel=0.01), 2500)
    assert 0 < Label.looked <= 3 * facts.LABELS_ASKED


def test_labels_that_do_not_lie_in_memory_are_not_read(folder):
    class Lazy(list):
        def __getitem__(self, wanted):
            pytest.fail("it reads files")

    class Reading(Images):
        @property
        def labels(self):
            pytest.fail("it reads files")

    trainer = Trainer(folder)
    for dataset in (Images(labels=Lazy(labelled(3))), Reading(), Images(labels=None)):
        trainer.train_loader.dataset = dataset
        assert not {"image_px", "image_boxes"} & facts.read(facts.TRAINING, trainer).keys()


def test_the_threads_that_a_process_found(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", Some(get_num_threads=lambda: 7))
    for value, threads in (("4", 4), ("4,2", 4), ("many", None), (None, None)):
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        if value is not None:
            monkeypatch.setenv("OMP_NUM_THREADS", value)
        told = facts.read(facts.TRAINING, Trainer(folder))
        assert (told.get("omp_num_threads"), told["torch_threads"]) == (threads, 7)


@pytest.mark.parametrize(("kind", "is_synced"), [("SyncBatchNorm", True), ("BatchNorm2d", False)])
def test_whether_norms_exchange_with_other_ranks(folder, kind, is_synced):
    trainer = Trainer(folder)
    trainer.model = Some(modules=lambda: iter([type("Conv2d", (), {})(), type(kind, (), {})()]))
    assert facts.read(facts.TRAINING, trainer)["synced_norms"] is is_synced


def test_the_ways_that_nccl_may_not_take(folder, monkeypatch):
    monkeypatch.setenv("NCCL_P2P_DISABLE", "1")
    monkeypatch.setenv("NCCL_SHM_DISABLE", "0")
    assert facts.read(facts.TRAINING, Trainer(folder))["nccl_disabled"] == ["p2p"]


def test_variables_that_bind_threads_to_cores_are_named_without_their_values(folder, monkeypatch):
    monkeypatch.setenv("OMP_PROC_BIND", "close")
    monkeypatch.setenv("OMP_PLACES", "")
    monkeypatch.setenv("GOMP_CPU_AFFINITY", "0")
    monkeypatch.setenv("KMP_AFFINITY", "disabled")
    assert facts.read(facts.TRAINING, Trainer(folder))["thread_binding"] == ["OMP_PROC_BIND", "GOMP_CPU_AFFINITY"]


def test_a_wait_is_from_the_end_of_a_batch_to_the_beginning_of_the_next(folder):
    trainer = Trainer(folder)
    start(trainer)
    call(trainer, "on_train_epoch_start")
    for wait_s in (0.05, 0.1, 0.02):
        time.sleep(wait_s)
        call(trainer, "on_train_batch_start")
        time.sleep(0.03)
        call(trainer, "on_train_batch_end")
    call(trainer, "on_train_epoch_end")
    (line,) = written(folder, "epoch")
    assert line["data_wait_s"] == pytest.approx(0.17, abs=0.05)
    assert line["first_wait_s"] == pytest.approx(0.05, abs=0.03)
    assert line["longest_wait_s"] == pytest.approx(0.1, abs=0.03)


def test_the_batch_after_which_the_time_is_up_counts(folder):
    trainer = Trainer(folder)
    start(trainer)
    call(trainer, "on_train_epoch_start", "on_train_batch_start", "on_train_batch_end", "on_train_batch_start")
    call(trainer, "on_train_epoch_end")  # `time=` leaves the loop after the step and before the callback
    (line,) = written(folder, "epoch")
    assert (line["batches"], line["images"]) == (2, 16)


def test_callbacks_of_the_user_are_no_wait_for_data(folder):
    trainer = Trainer(folder)
    names = (
        "on_train_start",
        "on_train_epoch_start",
        "on_train_batch_start",
        "on_train_batch_end",
        "on_train_epoch_end",
    )
    trainer.callbacks = {name: [CALLBACKS[name], lambda _: time.sleep(0.05)] for name in names}

    def run_callbacks(name):
        for each in trainer.callbacks[name]:
            each(trainer)

    for _ in range(2):
        run_callbacks("on_train_start")  # as of a model that trains again
        for name in (names[1], names[2], names[3], names[2], names[3], names[4]):
            run_callbacks(name)
    assert [len(each) for each in trainer.callbacks.values()] == [2, 3, 2, 2, 2]
    first, second = written(folder, "epoch")
    assert max(first["data_wait_s"], second["data_wait_s"]) < 0.03
    assert written(folder, "error") == []


class Anomalies:
    """As much of torch as is asked."""

    def __init__(self):
        self.on = True

    def is_anomaly_enabled(self):
        return self.on


def test_what_slows_a_training_is_told_when_it_changes(folder, monkeypatch):
    torch = Anomalies()
    cudnn = Some(enabled=False)
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.backends.cudnn", cudnn)
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    monkeypatch.setenv("PYTORCH_NO_CUDA_MEMORY_CACHING", "0")  # torch asks whether it is there
    monkeypatch.setattr(gc, "get_threshold", lambda: (100, 10, 10))
    trainer = Trainer(folder, epochs=4)
    start(trainer)
    epoch(trainer, 1)
    epoch(trainer, 2)
    torch.on, cudnn.enabled = False, True
    monkeypatch.delenv("CUDA_LAUNCH_BLOCKING")
    monkeypatch.setattr(gc, "get_threshold", lambda: (700, 10, 10))
    epoch(trainer, 3)
    torch.on = True  # later: it was not on all the time
    epoch(trainer, 4)
    told = [line["slow_modes"] for line in written(folder, "settings") if "slow_modes" in line]
    on = [mode for mode in told[0] if mode != "trace_function"]  # coverage, where the tests run under it
    assert sorted(on) == ["cudnn_off", "detect_anomaly", "frequent_gc", "launch_blocking", "no_memory_caching"]
    assert set(told[1]) <= {"trace_function", "no_memory_caching"}
    assert len(told) == 2
    now = [line["slow_modes_now"] for line in written(folder, "settings") if "slow_modes_now" in line]
    assert ["detect_anomaly" in modes for modes in now] == [False, True]


def test_a_callback_that_traces_memory_after_the_first_epoch_is_told_with_its_line(folder):
    names = []
    trainer = Trainer(folder, epochs=3)
    start(trainer)
    told = CURRENT.run.tell_places
    CURRENT.run.tell_places = lambda asked: (names.append(list(asked)), told(asked))
    epoch(trainer, 1)
    tracemalloc.start()
    try:
        epoch(trainer, 2)
    finally:
        tracemalloc.stop()
    now = [line["slow_modes_now"] for line in written(folder, "settings") if "slow_modes_now" in line]
    assert "tracemalloc" in now[0]
    assert "tracemalloc" in names[-1]


def test_how_often_torch_asked_for_memory_again_is_told_when_it_rises(folder, monkeypatch):
    count = {"num_alloc_retries": 0}
    torch = Some(cuda=Some(memory_stats=lambda: count))
    monkeypatch.setitem(sys.modules, "torch", torch)
    trainer = Trainer(folder, epochs=4)
    start(trainer)
    epoch(trainer, 1)
    count["num_alloc_retries"] = 7
    epoch(trainer, 2)
    epoch(trainer, 3)
    del torch.cuda  # whatever it raises
    epoch(trainer, 4)
    told = [line["memory_retries"] for line in written(folder, "settings") if "memory_retries" in line]
    assert told == [7]


def test_a_profiler_of_python_is_seen_however_it_watches():
    assert "profile_function" not in facts.slow_modes()
    with cProfile.Profile():  # from Python 3.12 on it watches by sys.monitoring
        assert "profile_function" in facts.slow_modes()


def test_an_epoch_begun_again_is_another_attempt(folder):
    trainer = Trainer(folder)
    start(trainer)
    call(trainer, "on_train_epoch_start", "on_train_batch_start")  # out of memory: no batch is done
    trainer.batch_size = 4
    epoch(trainer, 1)
    epoch(trainer, 2)
    epoch(trainer, 2)  # NaN recovery: after the validation
    assert [(line["epoch"], line["attempt"]) for line in written(folder, "epoch")] == [(1, 2), (2, 1), (2, 2)]
    assert (1, 1) in {(line["epoch"], line["attempt"]) for line in written(folder, "batches")}
    assert [line["batch"] for line in written(folder, "settings")] == [8, 4, 4]


def test_the_closing_of_the_mosaic_is_a_detail_of_its_epoch(folder):
    trainer = Trainer(folder, epochs=3)
    start(trainer)
    trainer._close_dataloader_mosaic()  # a resumed training, during startup: no phase of its own
    whole_epoch(trainer, 1)
    trainer.epoch = 1
    call(trainer, "on_train_epoch_start")
    assert trainer._close_dataloader_mosaic() == "closed"
    call(trainer, "on_train_batch_start", "on_train_batch_end", "on_train_batch_start")
    assert phases(folder)[-3:] == [("train", "", 2), ("train", "close mosaic", 2), ("train", "", 2)]


def test_without_validation_the_checkpoint_follows(folder):
    trainer = Trainer(folder)
    trainer.args.val = False
    start(trainer)
    epoch(trainer, 1)
    assert phases(folder)[-1] == ("checkpoint", "", 1)


@pytest.mark.parametrize(
    ("stopped_at", "time_budget", "how"), [(2, None, "early stop"), (4, None, "finished"), (2, 0.1, "finished")]
)
def test_how_it_ended(folder, stopped_at, time_budget, how):
    trainer = Trainer(folder, epochs=4)
    trainer.args.time = time_budget
    start(trainer)
    for number in range(1, stopped_at + 1):
        whole_epoch(trainer, number)
    trainer.stop = True
    call(trainer, "on_fit_epoch_end")
    finish(trainer)
    assert [line["how"] for line in written(folder, "ended")] == [how]


def test_an_exception_is_told_by_the_teardown_of_newer_versions(folder):
    trainer = Trainer(folder)
    start(trainer)
    epoch(trainer, 1)

    def train():
        try:
            raise KeyboardInterrupt("now, token=hunter2")
        finally:
            call(trainer, "teardown")

    with pytest.raises(KeyboardInterrupt):
        train()
    (ended,) = written(folder, "ended")
    assert (ended["how"], ended["error"]) == ("exception", "KeyboardInterrupt")
    assert ended["message"] == "now, token=***"


def test_an_exception_is_told_by_the_interpreters_end_otherwise(folder):
    trainer = Trainer(folder)
    start(trainer)
    at_exit()
    at_exit()
    assert [line["how"] for line in written(folder, "ended")] == ["exception"]


def test_the_interpreters_end_tells_what_python_last_printed(folder, monkeypatch):
    trainer = Trainer(folder)
    start(trainer)
    full = OSError(28, "No space left on device", "/data/runs")
    monkeypatch.setattr(sys, "last_value", full, raising=False)
    at_exit()
    (ended,) = written(folder, "ended")
    said = (ended["error"], ended["errno"], ended["message"])
    assert said == ("OSError", "ENOSPC", "No space left on device: /data/runs")


def test_another_rank_tells_what_it_sees(folder, monkeypatch):
    monkeypatch.setattr(facts, "rank", lambda: 1)
    trainer = Trainer(folder, epochs=1)
    call(trainer, "on_pretrain_routine_end", "on_train_start")
    epoch(trainer, 1)
    call(Some(training=True), "on_val_start")
    trainer.stop = True
    call(trainer, "on_fit_epoch_end", "teardown")
    assert written(folder, "run")[0]["rank"] == 1
    assert written(folder, "epoch")[0]["loss"] is None  # to read it would wait for the GPU
    assert [line["how"] for line in written(folder, "ended")] == ["finished"]


def test_a_prediction_within_a_training_is_no_run(folder):
    trainer = Trainer(folder)
    start(trainer)
    call(Some(), "on_predict_start", "on_predict_end")
    call(Some(), "on_export_start", "on_export_end")
    assert [line["task"] for line in written(folder, "run")] == ["train"]


def test_validation_and_export_alone_are_runs(folder):
    validator = Some(training=False, save_dir=folder / "val", dataloader=Some(batch_size=4, num_workers=1, dataset=[1]))
    call(validator, "on_val_start", "on_val_end")
    call(exporter := Some(args=Some(format="onnx")), "on_export_start", "on_export_end")
    assert exporter.args.format == "onnx"
    assert [line["task"] for line in written(folder, "run")] == ["val", "export"]
    assert [line["how"] for line in written(folder, "ended")] == ["finished", "finished"]
    assert written(folder, "settings")[1]["format"] == "onnx"


@pytest.mark.parametrize("event", sorted(CALLBACKS))
def test_nothing_that_an_object_lacks_reaches_the_caller(folder, event):
    CALLBACKS[event](object())
    CALLBACKS[event](Trainer(folder))
    CALLBACKS[event](object())


def test_a_fault_of_ours_is_written_once_and_not_raised(folder, monkeypatch):
    monkeypatch.setattr(callbacks, "monotonic", lambda: 1 / 0)
    trainer = Trainer(folder)
    start(trainer)
    call(trainer, *["on_train_batch_start"] * 5)
    (error,) = written(folder, "error")
    assert error["where"] == "on_train_batch_start"
    assert "ZeroDivisionError" in error["reason"]


def test_numbers_that_are_none_are_left_out(folder):
    trainer = Trainer(folder)
    trainer.tloss = {"box": float("nan")}
    start(trainer)
    epoch(trainer, 1)
    assert written(folder, "epoch")[0]["loss"] is None


@pytest.mark.parametrize("place", ["gone", "file"])
def test_a_run_folder_that_cannot_be_written_costs_nothing(folder, monkeypatch, place):
    (folder / "file").write_text("")
    monkeypatch.setenv(RUN_FOLDER_VARIABLE, str(folder / place))
    trainer = Trainer(folder)
    start(trainer)
    whole_epoch(trainer, 1)
    finish(trainer)
    assert not (folder / "gone").exists()
    assert not trainer.save_dir.exists()


def test_a_fork_writes_its_own_file(folder):
    start(Trainer(folder))
    lines.LINES.drain()
    pid = os.fork()
    if pid == 0:
        lines.LINES.write("ended", {"how": "finished"})
        lines.LINES.drain()
        at_exit()
        os._exit(0)
    os.waitpid(pid, 0)
    assert {path.stem for path in (folder / "inside").iterdir()} == {str(os.getpid()), str(pid)}
    assert [line["kind"] for line in written(folder, "ended")] == ["ended"]


def test_a_batch_costs_less_than_five_microseconds():
    """0.4 us on an idle core."""
    trainer, count = Some(), 20_000
    training.BATCHES.begin()
    training.BATCHES.due = float("inf")
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(count):
            callbacks.on_train_batch_start(trainer)
            callbacks.on_train_batch_end(trainer)
        best = min(best, (time.perf_counter() - began) / count)
    assert best < 5e-6


def test_the_interpreters_real_end_closes_what_is_open(folder):
    code = (
        "from types import SimpleNamespace as S\n"
        "from gpu_report.inside.on_path.gpu_report_inside.callbacks import CALLBACKS\n"
        "CALLBACKS['on_pretrain_routine_start'](S(save_dir='x'))\nraise ValueError('theirs')\n"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    (ended,) = written(folder, "ended")
    assert (ended["how"], ended["error"]) == ("exception", "ValueError")


def test_a_trainer_in_the_place_of_one_that_is_gone_is_another(folder, monkeypatch):
    start(Trainer(folder))  # freed at once; no teardown was called
    other = Trainer(folder)
    monkeypatch.setattr(CURRENT.run, "instance", id(other))
    call(other, "on_train_start")
    call(other, "on_pretrain_routine_start")
    assert len(written(folder, "run")) == 3


def test_a_failed_trainer_is_freed_without_the_collector_and_can_be_pickled(folder):
    trainer = Trainer(folder)
    call(trainer, "on_pretrain_routine_start")
    assert "get_model" in vars(trainer)
    copy = pickle.loads(pickle.dumps(trainer))
    assert copy.get_model.__func__ is Trainer.get_model
    gone = weakref.ref(trainer)
    gc.disable()
    try:
        del trainer
        assert gone() is None
    finally:
        gc.enable()


def test_what_an_exception_left_is_taken_back_when_the_next_training_begins(folder):
    failed = Trainer(folder)
    call(failed, "on_pretrain_routine_start")
    listeners = len(logging.getLogger("ultralytics").handlers)
    call(Trainer(folder), "on_pretrain_routine_start")
    assert "get_model" not in vars(failed)
    assert len(logging.getLogger("ultralytics").handlers) == listeners


def test_of_two_copies_of_these_callbacks_the_one_that_trains_speaks_alone(folder, monkeypatch):
    """A rank has the model's callbacks, pickled under one name, and those of the hook, imported under another."""
    others, ours = Some(__module__="gpu_report_inside.callbacks"), CALLBACKS["on_predict_start"]
    registered = [print, others, ours]
    base = Some(default_callbacks={"on_predict_start": registered})
    monkeypatch.setitem(sys.modules, DEFAULT_CALLBACKS, base)
    trainer = Trainer(folder)
    start(trainer)
    assert base.default_callbacks["on_predict_start"] is registered
    assert registered == [print, ours]
    monkeypatch.setitem(sys.modules, DEFAULT_CALLBACKS, None)  # whatever ultralytics has become
    start(Trainer(folder))
    assert [line["task"] for line in written(folder, "run")] == ["train", "train"]


def test_a_rank_of_torchrun_says_where_in_the_job_it_is(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    assert facts.of_job() == {}
    told = {"RANK": "3", "LOCAL_RANK": "1", "GROUP_RANK": "1", "GROUP_WORLD_SIZE": "2", "WORLD_SIZE": "4"}
    for name, value in {**told, "TORCHELASTIC_RESTART_COUNT": "x", "TORCHELASTIC_RUN_ID": "none"}.items():
        monkeypatch.setenv(name, value)
    assert facts.of_job() == {"local_rank": 1, "node_rank": 1, "nodes": 2, "ranks": 4}
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "night-3")
    assert facts.of_job()["run_id"] == "night-3"


@pytest.mark.parametrize(("kind", "fraction"), [("cuda", 0.2398), ("cpu", None)])
def test_how_much_of_its_gpu_a_process_may_have(folder, monkeypatch, kind, fraction):
    trainer = Trainer(folder)
    trainer.device = Some(type=kind)
    cuda = Some(get_per_process_memory_fraction=lambda _: 0.23983)
    monkeypatch.setitem(sys.modules, "torch", Some(cuda=cuda))
    assert facts.read(facts.TRAINING, trainer)["memory_fraction"] == fraction
    monkeypatch.setitem(sys.modules, "torch", Some(cuda=Some()))
    assert facts.read(facts.TRAINING, trainer).get("memory_fraction") is None


@pytest.mark.parametrize(("mib", "told"), [(1234.56, [1234.6] * 2), (None, [None] * 2)])
def test_how_much_gpu_memory_tensors_have_is_told_with_the_batches(folder, monkeypatch, mib, told):
    monkeypatch.setattr(watch, "allocated_mib", lambda: mib)
    monkeypatch.setattr(training, "PROGRESS_EVERY_S", 0.0)
    trainer = Trainer(folder)
    start(trainer)
    epoch(trainer, 1, batches=5)
    said = written(folder, "batches", "progress")
    assert [line.get("allocated_mib") for line in said[:2]] == told


def test_memory_that_cannot_be_asked_for_is_left_out(folder, monkeypatch):
    monkeypatch.setattr(watch, "allocated_mib", lambda: 1 / 0)
    trainer = Trainer(folder)
    start(trainer)
    epoch(trainer, 1)
    assert [line["batches"] for line in written(folder, "batches")] == [1]
    assert "allocated_mib" not in written(folder, "batches")[0]


def test_hooks_and_callbacks_are_counted_with_the_batches(folder, monkeypatch):
    monkeypatch.setattr(training, "PROGRESS_EVERY_S", 0.0)
    monkeypatch.setattr(training, "TOTALS_EVERY_S", 0.0)
    trainer = Trainer(folder)
    layer = Some(_forward_hooks={}, _forward_pre_hooks={1: print}, _backward_hooks={})
    trainer.model, trainer.callbacks = Some(modules=lambda: [layer, Some()]), {"on_train_start": [print, print]}
    start(trainer)
    trainer.epoch = 0
    call(trainer, "on_train_epoch_start")
    for number in range(4):
        layer._forward_hooks[number] = print
        call(trainer, "on_train_batch_start", "on_train_batch_end")
    call(trainer, "on_train_epoch_end")
    said = written(folder, "batches")
    hooks = [line["hooks"] for line in said]
    assert hooks == sorted(hooks)
    assert hooks[-1] > hooks[0] >= 2
    assert len({line["callbacks"] for line in said}) == 1
    assert facts.registered(Some()) == {}


@pytest.mark.parametrize("is_initialized", [False, True])
def test_torch_is_asked_about_its_memory_only_with_an_allocator(monkeypatch, is_initialized):
    asked = []
    torch = Some(
        cuda=Some(is_initialized=lambda: is_initialized),
        _C=Some(_cuda_isHistoryEnabled=lambda: asked.append(1) or True),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert facts.slow_modes(["memory_history"]) == ["memory_history"] * is_initialized
    assert len(asked) == is_initialized  # before, it would end the process


@pytest.mark.parametrize(
    ("variables", "binds"),
    [
        ({"OMP_PROC_BIND": "close", "OMP_PLACES": "cores"}, ["OMP_PROC_BIND", "OMP_PLACES"]),
        ({"OMP_PROC_BIND": "false", "OMP_PLACES": "cores"}, []),
        ({"KMP_AFFINITY": "compact"}, []),  # torch's wheels have GNU's OpenMP, which does not read it
    ],
)
def test_variables_that_bind_threads_are_those_that_openmp_reads(monkeypatch, variables, binds):
    for variable in facts.THREAD_BINDING:
        monkeypatch.delenv(variable, raising=False)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr(facts, "_has_intel_openmp", lambda: False)
    assert facts.TRAINING["thread_binding"](None) == binds

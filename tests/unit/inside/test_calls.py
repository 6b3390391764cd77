"""The calls of a model as they are kept: one row a batch, whatever becomes of the caller."""

import asyncio
import csv
import gc
import json
import multiprocessing
import os
import pickle
import sys
import threading
import time
from types import SimpleNamespace as Some

import numpy as np
import pytest
from support.coroutines import finish

from gpu_report import schema
from gpu_report.inside.on_path.gpu_report_inside import callbacks, calls, calls_file, lines, setting_locations
from gpu_report.inside.on_path.gpu_report_inside.lines import RUN_FOLDER_VARIABLE
from gpu_report.inside.on_path.gpu_report_inside.runs import CURRENT, at_exit


class Predictor:
    """As much of ultralytics' predictor as is looked at: a call of it takes 2 + 5 + 1 ms."""

    def __init__(self, model="a.pt", shape=(2, 3, 640, 384)):
        self.args = Some(model=model, task="detect", mode="predict", batch=2)
        self.batch, self._shape = (["a.jpg", "b.jpg"], [], ["", ""]), shape
        self.results = [Some(speed={"preprocess": 1.0, "inference": 2.5, "postprocess": 0.5})] * 2
        self.save_dir = "/data/runs/predict"

    def preprocess(self, images):
        return Some(shape=self._shape, images=images)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(RUN_FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setattr(lines, "_reported", set())
    monkeypatch.setattr(CURRENT, "run", None)
    calls.KNOWN.__init__()
    calls.CLOCKS.clear()
    return tmp_path


def predict(predictor, batches=1, *, end=True):
    callbacks.on_predict_start(predictor)
    for _ in range(batches):
        callbacks.on_predict_batch_start(predictor)
        assert list(predictor.preprocess([1]).images) == [1]
        callbacks.on_predict_batch_end(predictor)
    if end:
        callbacks.on_predict_end(predictor)


def rows(folder):
    at_exit()
    text = (folder / "inside" / f"{os.getpid()}{schema.CALLS_SUFFIX}").read_text()
    return list(csv.DictReader(text.splitlines()))


def told(folder, kind):
    lines.LINES.drain()
    text = (folder / "inside" / f"{os.getpid()}.jsonl").read_text()
    return [line for line in map(json.loads, text.splitlines()) if line["kind"] == kind]


def test_a_call_is_a_row_with_the_time_of_the_whole_batch(folder):
    predict(Predictor(), 3)
    found = rows(folder)
    assert tuple(found[0]) == tuple(column.name for column in schema.CALLS_COLUMNS)
    assert len(found) == 3
    parts = {name: found[0][name] for name in ("model", "images", "height", "width")}
    assert parts == {"model": "1", "images": "2", "height": "640", "width": "384"}
    assert [found[0][f"{name}_ms"] for name in calls.PARTS] == ["2.000", "5.000", "1.000"]
    assert found[0]["gap_ms"] == ""
    assert all(float(row["gap_ms"]) >= 0 for row in found[1:])


def test_what_slows_calls_is_told_with_the_line_that_switched_it_on(folder, monkeypatch):
    asked = []
    monkeypatch.setitem(sys.modules, "torch.backends.cudnn", Some(enabled=True, benchmark=True))
    monkeypatch.setattr(setting_locations, "_affinity", lambda: ["affinity"])
    monkeypatch.setattr(setting_locations, "found", lambda names: asked.append(names) or [{"name": names[0]}])
    predict(Predictor(), 3)
    modes = [line["slow_modes"] for line in told(folder, "settings") if "slow_modes" in line]
    assert [[mode for mode in each if mode != "trace_function"] for each in modes] == [["cudnn_benchmark"]]
    assert [line["name"] for line in told(folder, "set_in")] == ["affinity", modes[0][0]]
    assert asked == [["affinity"], modes[0]]


SOURCES = {"stream": False, "screenshot": False, "from_img": False, "tensor": False}


@pytest.mark.parametrize(
    ("kinds", "files", "videos", "source"),
    [
        ({"from_img": True}, 0, [], "from_img"),
        ({"stream": True}, 0, [], "stream"),
        ({}, 1, [False], "file"),
        ({}, 1, [True], "files"),
        ({}, 7, [False] * 7, "files"),
    ],
)
def test_what_a_model_gets_is_told(folder, kinds, files, videos, source):
    predictor = Predictor()
    predictor.source_type, predictor.dataset = Some(**SOURCES | kinds), Some(nf=files, video_flag=videos)
    predict(predictor)
    assert [model["source"] for model in told(folder, "model")] == [source]


def test_the_largest_image_that_a_model_was_given_is_kept(folder):
    predictor = Predictor()
    callbacks.on_predict_start(predictor)
    for shape in ((480, 640, 3), (1080, 1920, 3), (20, 30, 3)):
        callbacks.on_predict_batch_start(predictor)
        predictor.preprocess([Some(shape=(1, 1, 3)), Some(shape=shape), Some(shape=())])  # wherever it stands in a call
        callbacks.on_predict_batch_end(predictor)
    predictor.preprocess([])
    rows(folder)
    assert told(folder, "ended")[-1]["largest_px"] == {"1": 1920}


def photo(seed):
    return np.random.default_rng(seed).integers(0, 255, (300, 400, 3), dtype=np.uint8)


def copies():
    return [photo(1) for _ in range(4)]  # as of a file that is read anew for each call


def one_buffer():
    buffer = photo(0)
    for seed in range(4):
        buffer[:] = photo(seed)  # as `VideoCapture.read(buffer)` fills it
        yield buffer


def masks():
    for place in range(0, 200, 50):
        image = np.zeros((1000, 1000, 3), dtype=np.uint8)
        image[place + 1 : place + 3, place : place + 5] = 255  # small: none of the values that are looked at
        yield image


def at_one_address():
    for seed in range(4):
        yield photo(seed)  # each is freed before the next is made


@pytest.mark.parametrize(
    ("images", "repeated"),
    [
        (copies, {"1": 3}),
        (one_buffer, {"1": 0}),
        (at_one_address, {"1": 0}),
        (lambda: [photo(1), photo(2), photo(1), photo(1).reshape(400, 300, 3)], {"1": 0}),
        (lambda: [photo(1).transpose(1, 0, 2)] * 3, {}),  # not in one piece: a copy would cost
        (lambda: [np.zeros((0, 0, 3))] * 3, {}),
        (lambda: [Some(shape=(3, 3))] * 3, {}),
        (lambda: [np.arange(30)] * 3, {"1": 2}),
        (masks, {"1": 0}),
    ],
)
def test_an_image_is_known_again_by_what_it_holds(folder, images, repeated):
    predictor = Predictor()
    for image in images():
        callbacks.on_predict_start(predictor)
        callbacks.on_predict_batch_start(predictor)
        predictor.preprocess([image])
        callbacks.on_predict_batch_end(predictor)
    rows(folder)
    assert told(folder, "ended")[-1]["repeated"] == repeated
    assert told(folder, "error") == []


def test_a_picture_that_stands_still_is_one_image_that_comes_again(folder):
    predictor = Predictor()
    still, pairs = [photo(seed) for seed in (1, 2, 2, 2, 2, 3)], [photo(seed) for seed in (4, 4, 5, 5)]
    callbacks.on_predict_start(predictor)
    for image in (*still, *pairs):
        callbacks.on_predict_batch_start(predictor)
        predictor.preprocess([image])
        callbacks.on_predict_batch_end(predictor)
    rows(folder)
    last = told(folder, "ended")[-1]
    assert (last["repeated"], last["repeated_images"]) == ({"1": 5}, {"1": 3})


def test_images_of_several_in_a_call_are_not_compared_with_those_of_one(folder):
    predictor = Predictor()
    callbacks.on_predict_start(predictor)
    for images in ([photo(1)], [photo(1), photo(2)], [photo(1)]):
        callbacks.on_predict_batch_start(predictor)
        predictor.preprocess(images)
        callbacks.on_predict_batch_end(predictor)
    rows(folder)
    assert told(folder, "ended")[-1]["repeated"] == {"1": 0}


@pytest.mark.parametrize("height", [999, 1000, 1024, 2000])
def test_an_image_is_looked_at_in_all_its_columns(height):
    plain = np.zeros((height, 640, 3), dtype=np.uint8)
    part = plain.copy()
    part[:, 320:400] = 1
    assert calls.sample_of(plain) == calls.sample_of(plain.copy())
    assert calls.sample_of(plain) != calls.sample_of(part)


def test_the_gap_is_the_time_between_calls(folder):
    predictor = Predictor()
    predict(predictor)
    time.sleep(0.02)
    predict(predictor)
    assert 20 <= float(rows(folder)[1]["gap_ms"]) < 1000


def test_two_models_are_told_apart_and_one_made_anew_for_each_call_is_one(folder):
    first, second = Predictor("a.pt"), Predictor("b.onnx")
    for predictor in (first, second, first, Predictor("a.pt")):
        predict(predictor)
    assert [row["model"] for row in rows(folder)] == ["1", "2", "1", "1"]
    assert [(line["number"], line["model"]) for line in told(folder, "model")] == [(1, "a.pt"), (2, "b.onnx")]
    assert told(folder, "ended")[0]["objects"] == {"1": 2, "2": 1}


def test_a_call_that_raised_is_counted_and_no_row(folder):
    predictor = Predictor()
    callbacks.on_predict_start(predictor)
    callbacks.on_predict_batch_start(predictor)
    predict(predictor)
    assert len(rows(folder)) == 1
    assert told(folder, "ended")[0]["failed"] == 1


def test_embeddings_have_a_whole_time_and_no_parts(folder):
    predictor = Predictor()
    callbacks.on_predict_start(predictor)
    for _ in range(2):
        callbacks.on_predict_batch_start(predictor)
    callbacks.on_predict_end(predictor)
    found = rows(folder)
    assert len(found) == 2
    assert all(row["inference_ms"] == "" and float(row["total_ms"]) >= 0 for row in found)


def test_a_stream_that_is_given_up_half_way_leaves_its_calls(folder):
    predict(Predictor(), 2, end=False)
    predict(Predictor(), 1)
    assert len(rows(folder)) == 3
    assert told(folder, "ended")[0]["failed"] == 0


def test_a_predictor_is_pickled_without_us_and_dies_when_its_owner_drops_it(folder):
    predictor = Predictor()
    predict(predictor)
    assert pickle.loads(pickle.dumps(predictor.preprocess)).__func__ is Predictor.preprocess
    del predictor
    gc.collect()
    assert calls.CLOCKS == {}


def test_a_preprocess_of_the_users_own_stays(folder):
    predictor = Predictor()
    own = predictor.preprocess = lambda images: Some(images=images)
    predict(predictor)
    assert predictor.preprocess is own
    assert rows(folder)[0]["height"] == ""


def test_rows_are_on_disk_within_two_seconds_of_a_call(folder, monkeypatch):
    monkeypatch.setattr(calls_file, "TOGETHER_S", 0.05)
    predict(Predictor())
    path = folder / "inside" / f"{os.getpid()}{schema.CALLS_SUFFIX}"
    deadline = time.monotonic() + 5
    while not (path.exists() and path.read_text().count("\n") == 2):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_calls_wake_the_thread_only_after_a_pause(monkeypatch):
    monkeypatch.setattr(calls_file, "TOGETHER_S", 0.0)
    kept, asked, written = calls_file.CallRows(lambda call: f"{call}\n"), [], b""
    monkeypatch.setattr(kept._writer, "put", lambda folder, take: asked.append((folder, take)))
    kept.add("a", 1)
    for call in range(2, 6):
        assert len(asked) == 1  # the thread's own: a call has added none
        kept.add("b", call)
        written += asked.pop(0)[1]()
    assert written == b"1\n2\n3\n4\n5\n"
    folder, take = asked.pop()
    assert (folder, take(), asked) == ("b", b"", [])  # a pause: it looks no more
    kept.add("b", 6)
    assert asked[0][1]() == b"6\n"


def test_a_disk_that_hangs_loses_rows_and_says_how_many(folder, monkeypatch):
    monkeypatch.setattr(calls_file, "MOST_WAITING", 5)
    predict(Predictor(), 8)
    rows(folder)
    assert told(folder, "ended")[0]["dropped"] == 3


def test_nothing_of_a_fault_of_ours_reaches_the_caller(folder):
    predictor = Predictor()
    predictor.results = [Some(speed={})]
    predict(predictor)
    predictor.batch = None
    predict(predictor)
    assert rows(folder) == []
    assert {line["where"] for line in told(folder, "error")} == {"on_predict_batch_end", "calls"}


@pytest.mark.parametrize("idle", [True, False])
def test_a_forked_service_writes_its_own_file_at_once(folder, idle):
    """Also where the parent's run goes on, as after a warm-up call before workers are forked."""
    predictor = Predictor()
    predict(predictor)
    if idle:
        CURRENT.run.close()
    pid = os.fork()
    if not pid:
        try:
            began = time.monotonic()
            predict(predictor)
            (folder / "took").write_text(str(time.monotonic() - began))
            at_exit()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    assert float((folder / "took").read_text()) < 0.5  # it waits for no thread of its parent's
    text = (folder / "inside" / f"{pid}{schema.CALLS_SUFFIX}").read_text()
    assert text.count("\n") == 2
    kinds = [json.loads(line)["kind"] for line in (folder / "inside" / f"{pid}.jsonl").read_text().splitlines()]
    assert kinds == ["run", "settings", "phase", "model", "calls", "ended"]


def test_a_worker_of_multiprocessing_leaves_its_last_calls(folder):
    worker = multiprocessing.get_context("fork").Process(target=predict, args=(Predictor(), 5))
    worker.start()
    worker.join()
    text = (folder / "inside" / f"{worker.pid}{schema.CALLS_SUFFIX}").read_text()
    assert text.count("\n") == 6


def test_predictions_and_validations_by_turns_leave_no_threads_and_no_files_open(folder):
    predictor, before = Predictor(), threading.active_count()
    for _ in range(20):
        predict(predictor)
        CURRENT.run.close()
    assert threading.active_count() <= before + 1  # that of the lines is one of a process, whoever began it
    assert len(rows(folder)) == 20
    assert told(folder, "ended")[-1]["objects"] == {"1": 1}  # it is one object still


def test_threads_that_begin_together_are_one_run(folder):
    barrier, predictors = threading.Barrier(4), [Predictor(f"{name}.pt") for name in "abcd"]

    def serve(predictor):
        barrier.wait()
        predict(predictor, 50)

    threads = [threading.Thread(target=serve, args=(each,)) for each in predictors]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(rows(folder)) == 200
    assert sum(int(row["new_thread"]) for row in rows(folder)) == 4
    assert len(told(folder, "run")) == 1


def test_a_service_of_asyncio_keeps_every_call(folder):
    predictors = [Predictor(f"{name}.pt") for name in "ab"]

    async def serve():
        await asyncio.gather(*(asyncio.to_thread(predict, predictor, 50) for predictor in predictors))

    finish(serve())
    assert sorted(row["model"] for row in rows(folder)) == ["1"] * 50 + ["2"] * 50
    assert len(told(folder, "run")) == 1


class StaticMethod(Predictor):
    preprocess = staticmethod(lambda images: Some(shape=(1, 3, 64, 64), images=images))


class Unsized(Predictor):
    def preprocess(self, images):
        return Some(shape=(None, 3, None, None), images=images)


class Raising:
    images = (1,)

    @property
    def shape(self):
        raise RuntimeError


class Nested(Predictor):
    def preprocess(self, images):
        return Raising()


@pytest.mark.parametrize("kind", [StaticMethod, Unsized, Nested])
def test_a_preprocess_of_any_kind_works_as_without_us(folder, kind):
    predict(kind())
    (found,) = rows(folder)
    assert found["height"] == ""


def test_a_new_run_folder_is_told_of_the_models_again(folder, tmp_path, monkeypatch):
    predictor = Predictor()
    predict(predictor)
    rows(folder)
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setenv(RUN_FOLDER_VARIABLE, str(other))
    predict(predictor)
    assert len(rows(other)) == 1
    assert [line["number"] for line in told(other, "model")] == [1]

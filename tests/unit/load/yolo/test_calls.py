"""inside/<pid>.calls.csv as it comes back: each model's calls apart, without what no call can have made."""

import dataclasses

import numpy as np
import pytest

from gpu_report import schema
from gpu_report.load.run_clock import Boot, RunClock
from gpu_report.load.yolo.calls import load_calls
from gpu_report.model import Gpu, InsideRun

CLOCK = RunClock((Boot(0.0, 1000.0, 0.0),))
HEAD = ",".join(column.name for column in schema.CALLS_COLUMNS) + "\n"
GPUS = (Gpu(3, uuid="GPU-a"),)
MODELS = {1: {"model": "a.pt", "gpu_uuid": "GPU-a"}, 2: {"model": "b.onnx"}}
RUN = InsideRun(None, 0, 7, "predict", {}, (), (), models=MODELS, calls={"failed": 1}, objects={1: 2})


@pytest.fixture
def load(tmp_path):
    def read(text, inside=(RUN,), name="7"):
        (tmp_path / f"{name}{schema.CALLS_SUFFIX}").write_text(text)
        return load_calls(tmp_path, inside, GPUS, CLOCK, 100.0)

    return read


def test_each_model_has_its_calls_in_order_of_time(load):
    (first, second), problems = load(
        HEAD + "1012.5,1,2,640,384,1,5,0.5,7,\n1010,2,1,,,,,,4,\n1011,1,1,640,640,1,5,0.5,7,996\n"
    )
    assert problems == ()
    assert (first.name, first.gpu, first.predictors, first.failed) == ("a.pt", 3, 2, None)
    assert (second.name, second.gpu, second.predictors) == ("b.onnx", None, None)
    assert first.start_s.tolist() == [11.0, 12.5]
    assert first.width.tolist() == [640, 384]
    assert first.gap_ms[0] == 996
    assert np.isnan(first.gap_ms[1])
    assert np.isnan(second.inference_ms).all()
    assert first.end_s[0] == pytest.approx(11.007)


@pytest.mark.parametrize(
    "row", ["1010,1,1,,,,,,-4,", "1010,1,0,,,,,,4,", "nan,1,1,,,,,,4,", "1e300,1,1,,,,,,4,", "2000,1,1,,,,,,4,"]
)
def test_a_row_that_no_call_can_have_made_is_left_out_and_counted(load, row):
    (calls,), problems = load(f"{HEAD}{row}\n1020,1,1,640,640,1,2,3,7,5\n")
    assert len(calls.start_s) == 1
    assert problems == ("7.calls.csv: 1 row that no call can have made is left out",)


def test_a_file_that_was_cut_short_keeps_its_whole_rows(load):
    (calls,), problems = load(HEAD + "1010,1,1,640,640,1,2,3,7,\n1011,1,1,64")
    assert len(calls.start_s) == 1
    assert "cut short" in problems[0]


def test_calls_of_which_nothing_else_is_known_are_of_some_model(load):
    (calls,), _ = load(HEAD + "1010,0,1,640,640,1,2,3,7,\n", inside=())
    assert (calls.name, calls.gpu, calls.failed) == ("model", None, None)


@pytest.mark.parametrize("text", ["", "\0\0", "a,b\n1,2\n", HEAD, HEAD + "x,y\n"])
def test_a_file_of_something_else_is_no_call_and_no_error(load, text):
    assert load(text)[0] == ()


def test_a_file_whose_name_is_no_pid_is_not_read(load):
    assert load(HEAD + "1010,1,1,640,640,1,2,3,7,\n", name="x")[0] == ()


def test_calls_that_have_no_row_are_counted(load):
    run = dataclasses.replace(RUN, calls={"calls": 5, "failed": 1})
    (calls,), problems = load(HEAD + "1010,1,1,640,640,1,2,3,7,\n", inside=(run,))
    assert (len(calls.start_s), calls.failed) == (1, 1)
    assert problems == ("7.calls.csv: 4 calls have no rows and are left out",)


@pytest.mark.parametrize(
    ("said", "images", "largest_px"),
    [
        ({"largest_px": {1: 1920}, "image_px": {1: 480}}, 8, 1920),
        ({"image_px": {1: 480}}, 8, None),  # of the first image of each call: the others may be larger
        ({"image_px": {1: 480}}, 1, 480),
        ({}, 1, None),
    ],
)
def test_the_largest_image_is_known_where_all_images_of_calls_were_looked_at(load, said, images, largest_px):
    (calls,), _ = load(f"{HEAD}1010,1,{images},640,640,1,2,3,7,\n", inside=(dataclasses.replace(RUN, **said),))
    assert calls.image_px == largest_px

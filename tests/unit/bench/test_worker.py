"""What a worker asks of ultralytics, with another one in its place."""

import sys
import types

import numpy as np
import pytest

from gpu_report.bench import worker as module
from gpu_report.bench.sources import SYNTHETIC
from gpu_report.bench.worker import Worker, reason_of

SECRET_URL = "https://bob:hunter2@host/d.yaml"


class Yolo:
    """Notes each call."""

    calls: list = []  # noqa: RUF012 - of the class: ultralytics makes the objects

    def __init__(self, file, task=None):
        self.predictor = types.SimpleNamespace(args=types.SimpleNamespace(model=file, task=task))

    def predict(self, images, **arguments):
        Yolo.calls.append((len(images), arguments))
        return [types.SimpleNamespace(boxes=None, obb=None, probs=None)] * len(images)

    def export(self, **arguments):
        Yolo.calls.append((0, arguments))


@pytest.fixture
def ultralytics(monkeypatch):
    """Put a stand-in into the place of ultralytics; it knows the arguments of a version."""
    defaults = {"quantize": None}
    fake = types.ModuleType("ultralytics")
    fake.YOLO, fake.__version__ = Yolo, "8.4"
    utils = types.ModuleType("ultralytics.utils")
    utils.DEFAULT_CFG_DICT = defaults
    monkeypatch.setitem(sys.modules, "ultralytics", fake)
    monkeypatch.setitem(sys.modules, "ultralytics.utils", utils)
    monkeypatch.setattr(Yolo, "calls", [])
    return defaults


def loaded(*, half=False, batch=2):
    worker = Worker()
    worker.do_load("n.pt", "detect", "cpu", batch, 64, half, SYNTHETIC)
    return worker


def test_all_variants_get_square_images_and_nothing_is_saved_or_printed(ultralytics):
    loaded()
    images, arguments = Yolo.calls[0]
    assert images == arguments["batch"] == 2
    assert (arguments["rect"], arguments["save"], arguments["verbose"]) == (False, False, False)


@pytest.mark.parametrize(("known", "asked"), [("quantize", ("quantize", 16)), ("half", ("half", True))])
def test_fp16_has_the_name_that_this_version_knows(ultralytics, known, asked):
    del ultralytics["quantize"]
    ultralytics[known] = None
    loaded(half=True)
    assert asked in Yolo.calls[0][1].items()
    assert not {"quantize", "half"} & set(loaded().__dict__["_arguments"])


def test_a_turn_settles_first_and_counts_afterwards(ultralytics, monkeypatch):
    clock = iter(np.arange(0.0, 100.0, 0.1))
    worker = loaded()
    monkeypatch.setattr(module.time, "monotonic", lambda: float(next(clock)))
    before = len(Yolo.calls)
    served = worker.do_serve(1.0, 0.5)
    assert served["end_mono_s"] - served["start_mono_s"] == pytest.approx(1.2, abs=0.11)
    assert 0 < served["calls"] < len(Yolo.calls) - before
    assert served["median_ms"] == pytest.approx(100.0)  # the clock goes on by 0.1 s


def test_batches_go_through_all_images_whatever_their_number(ultralytics):
    worker = loaded(batch=3)
    for _ in range(10):
        worker._call()
    assert all(images == 3 for images, _ in Yolo.calls)


def test_an_export_that_made_nothing_has_failed(ultralytics):
    with pytest.raises(RuntimeError, match="made no file"):
        Worker().do_build("n.pt", half=False, format="onnx")


def test_a_reason_is_one_line():
    assert reason_of(ValueError("\n  first\nsecond")) == "ValueError: first"
    assert reason_of(MemoryError()) == "MemoryError"
    missing = reason_of(ModuleNotFoundError("No module named 'onnx'", name="onnx"))
    assert missing == "ModuleNotFoundError: No module named 'onnx'. Install it: `pip install onnx`"
    stranger = ModuleNotFoundError("No module named 'models'", name="models")  # of a checkpoint: nobody's package
    assert reason_of(stranger) == "ModuleNotFoundError: No module named 'models'"
    assert len(reason_of(ValueError("x" * 10_000))) < 1000


def test_an_exception_has_no_secrets_in_its_reason_nor_in_the_log(capsys):
    class Refused:
        def do_val(self, data):
            raise OSError(f"cannot read {data}")

    answer = module._answer(Refused(), {"do": "val", "data": SECRET_URL})
    printed = capsys.readouterr().err
    assert answer == {"error": "OSError: cannot read https://***@host/d.yaml"}
    assert "Traceback" in printed
    assert "hunter2" not in printed
    assert "hunter2" not in reason_of(ValueError("x" * 480 + SECRET_URL))  # before it is cut


def test_of_a_result_the_surest_boxes_are_compared():
    class Tensor(np.ndarray):
        def cpu(self):
            return self

        def numpy(self):
            return np.asarray(self)

    def tensor(values):
        return np.asarray(values, dtype=float).view(Tensor)

    scores = np.linspace(0, 1, module.MOST_BOXES + 10)
    boxes = types.SimpleNamespace(xyxy=tensor(np.zeros((len(scores), 4))), conf=tensor(scores), cls=tensor(scores * 0))
    rows = module._rows(types.SimpleNamespace(boxes=boxes))
    assert len(rows) == module.MOST_BOXES
    assert rows[0][4] == 1.0
    probs = types.SimpleNamespace(top1=4, top1conf=0.5)
    assert module._rows(types.SimpleNamespace(boxes=None, probs=probs)) == [[0.0, 0.0, 1.0, 1.0, 0.5, 4.0]]

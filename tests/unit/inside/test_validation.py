"""Where the time of a validation goes, with a validator that only looks like one: each second is of one part."""

import gc
import json
import pickle
import sys
import time
import weakref
from types import ModuleType
from types import SimpleNamespace as Some

import pytest

from gpu_report.inside import RUN_FOLDER_VARIABLE
from gpu_report.inside.on_path.gpu_report_inside import facts, lines, validation
from gpu_report.inside.on_path.gpu_report_inside.callbacks import CALLBACKS
from gpu_report.inside.on_path.gpu_report_inside.runs import CURRENT
from gpu_report.inside.on_path.gpu_report_inside.validation import METRICS_MODULE, VALIDATION, Parts

SECONDS = {"data": 0.02, "metrics": 0.01, "gather": 0.03, "plots": 0.04}
COUNTED = {"preprocess": 1.0, "inference": 2.0, "loss": 0.0, "postprocess": 0.5}  # ms an image
IMAGES = 8


class Clock:
    """A clock that moves when somebody works."""

    def __init__(self):
        self.now_s = 100.0

    def monotonic(self):
        return self.now_s

    def work(self, seconds):
        self.now_s += seconds


class Validator:
    """As much of a validator as the callbacks look at."""

    def __init__(self, folder, clock, plots=True):
        self.save_dir = folder / "val"
        self.training = False
        self.args = Some(plots=plots, model="m.pt", data="d.yaml", imgsz=64)
        self.dataloader = Some(dataset=range(IMAGES), batch_size=4, num_workers=2)
        self.speed = dict.fromkeys(COUNTED, 0.0)
        self.callbacks = {"on_val_batch_end": [CALLBACKS["on_val_batch_end"]]}
        self.clock = clock

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name not in {"callbacks", "clock"}}

    def update_metrics(self, preds, batch):
        self.clock.work(SECONDS["metrics"])
        return preds + batch

    def plot_val_samples(self, batch, number):
        self.clock.work(SECONDS["plots"])

    def gather_stats(self):
        self.clock.work(SECONDS["gather"])

    def get_stats(self):
        self.clock.work(SECONDS["metrics"])
        if self.args.plots:
            sys.modules[METRICS_MODULE].plot_pr_curve(1, 2)
        return {"mAP": 0.5}

    def finalize_metrics(self):
        self.clock.work(SECONDS["plots"] if self.args.plots else SECONDS["metrics"])

    def validate(self, batches=2):
        """Do what ultralytics does, in its order."""
        call(self, "on_val_start")
        for number in range(batches):
            self.clock.work(SECONDS["data"])
            call(self, "on_val_batch_start")
            self.clock.work(4 * sum(COUNTED.values()) / 1e3 + 0.001)  # and a callback of the user's
            assert self.update_metrics(number, 1) == number + 1
            if self.args.plots and number < 1:
                self.plot_val_samples(None, number)
            call(self, "on_val_batch_end")
        self.gather_stats()
        self.get_stats()
        self.speed = dict(COUNTED)
        self.finalize_metrics()
        call(self, "on_val_end")


def call(validator, event):
    CALLBACKS[event](validator)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(validation, "time", clock)
    monkeypatch.setattr(validation, "now", lambda: (clock.now_s + 1e9, clock.now_s))
    return clock


@pytest.fixture
def curves(monkeypatch, clock):
    """Stand in for ultralytics' functions that draw curves."""
    module = ModuleType(METRICS_MODULE)
    module.plot_pr_curve = lambda *_: clock.work(SECONDS["plots"])
    monkeypatch.setitem(sys.modules, METRICS_MODULE, module)
    return module


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(RUN_FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setattr(lines, "_reported", set())
    monkeypatch.setattr(CURRENT, "run", None)
    yield tmp_path
    VALIDATION.abandon()


def written(folder, *kinds):
    lines.LINES.drain()
    found = [json.loads(line) for path in (folder / "inside").glob("*") for line in path.read_text().splitlines()]
    return [line for line in found if line["kind"] in kinds]


def parts(line):
    names = [*SECONDS, *COUNTED, "other"]
    return {name: line[f"{name}_s"] for name in names}


def test_each_second_of_a_validation_is_of_one_part(folder, clock, curves):
    Validator(folder, clock).validate()
    (line,) = written(folder, "validation")
    assert {name: line[name] for name in ("epoch", "images", "batches", "batch", "workers", "plots")} == {
        "epoch": None, "images": IMAGES, "batches": 2, "batch": 4, "workers": 2, "plots": True,
    }  # fmt: skip
    told = parts(line)
    assert told == pytest.approx({
        "data": 2 * SECONDS["data"],
        "metrics": 3 * SECONDS["metrics"],
        "gather": SECONDS["gather"],
        "plots": 3 * SECONDS["plots"],  # of a batch, a curve, and the confusion matrix
        **{name: IMAGES * ms / 1e3 for name, ms in COUNTED.items()},
        "other": 0.002,
    })  # fmt: skip
    assert sum(told.values()) == pytest.approx(line["mono_s"] - line["start_mono_s"])
    assert line["first_wait_s"] == pytest.approx(SECONDS["data"])
    assert written(folder, "error") == []


def test_without_plots_all_that_ends_a_validation_is_metrics(folder, clock, curves):
    Validator(folder, clock, plots=False).validate()
    (line,) = written(folder, "validation")
    assert (line["plots"], line["plots_s"]) == (False, 0)
    assert line["metrics_s"] == pytest.approx(4 * SECONDS["metrics"])


def test_a_version_that_counts_nothing_leaves_its_parts_out(folder, clock, curves):
    validator = Validator(folder, clock)
    validator.dataloader.dataset = object()  # of no length
    validator.validate()
    (line,) = written(folder, "validation")
    assert not {"images", "inference_s"} & set(line)
    assert line["other_s"] == pytest.approx(2 * (4 * sum(COUNTED.values()) / 1e3 + 0.001))


def test_nothing_of_ours_stays_on_a_validator(folder, clock, curves):
    drawn = curves.plot_pr_curve
    validator = Validator(folder, clock)
    before = dict(vars(validator))
    validator.validate()
    assert set(vars(validator)) == set(before)
    assert curves.plot_pr_curve is drawn
    gone = weakref.ref(validator)
    del validator
    gc.collect()
    assert gone() is None


def test_what_fails_within_a_validation_is_the_users_own(folder, clock, curves):
    drawn = curves.plot_pr_curve
    validator = Validator(folder, clock)
    validator.get_stats = None  # somebody's own
    call(validator, "on_val_start")
    assert validator.get_stats is None
    del validator.get_stats
    call(validator, "on_val_start")
    curves.plot_pr_curve = None
    with pytest.raises(TypeError):
        validator.get_stats()
    call(Validator(folder, clock), "on_val_start")
    assert [name for name in vars(validator) if name in validation.METHODS] == []
    assert drawn is not None
    assert curves.plot_pr_curve is None
    assert written(folder, "validation", "error") == []


def test_a_validator_can_be_pickled_while_it_validates(folder, clock, curves):
    validator = Validator(folder, clock)
    call(validator, "on_val_start")
    copy = pickle.loads(pickle.dumps(validator))
    copy.clock = clock
    assert copy.update_metrics(1, 2) == 3
    assert type(vars(copy)["update_metrics"]).__name__ == "method"


def test_ranks_beyond_the_first_are_left_alone(folder, clock, curves, monkeypatch):
    monkeypatch.setattr(facts, "rank", lambda: 1)
    validator = Validator(folder, clock)
    call(validator, "on_val_start")
    assert "update_metrics" not in vars(validator)
    call(validator, "on_val_batch_start")
    call(validator, "on_val_batch_end")
    call(validator, "on_val_end")
    assert written(folder, "validation", "error") == []


def test_a_method_that_somebody_calls_from_another_thread_does_no_harm():
    parts = Parts()
    parts.leave()
    parts.enter("metrics")
    parts.turn_to("data")
    parts.leave()
    assert set(parts.seconds) >= {"data", "metrics"}


@pytest.mark.live
def test_a_batch_costs_microseconds(folder):
    class Quick:
        def update_metrics(self, preds, batch):
            pass

    quick = Quick()
    quick.training, quick.callbacks = False, {"on_val_batch_end": []}
    VALIDATION.begin(quick, 1)

    def batch_us(count=2000):
        began = time.perf_counter()
        for _ in range(count):
            CALLBACKS["on_val_batch_start"](quick)
            quick.update_metrics(None, None)
            CALLBACKS["on_val_batch_end"](quick)
        return 1e6 * (time.perf_counter() - began) / count

    assert min(batch_us() for _ in range(20)) < 10  # 4 on a quiet machine

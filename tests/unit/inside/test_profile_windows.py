"""Windows of the profiler with a torch that only looks like one: when they open and end, and what they survive."""

import fcntl
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace as Some
from typing import ClassVar

import pytest

from gpu_report import schema
from gpu_report.inside import ON_PATH, PROFILE_VARIABLE, RUN_FOLDER_VARIABLE
from gpu_report.inside.on_path.gpu_report_inside import lines
from gpu_report.inside.on_path.gpu_report_inside.profiler import requests
from gpu_report.inside.on_path.gpu_report_inside.profiler import window as one_window
from gpu_report.inside.on_path.gpu_report_inside.profiler import windows as all_windows
from gpu_report.inside.on_path.gpu_report_inside.profiler.requests import plan_of
from gpu_report.inside.on_path.gpu_report_inside.profiler.windows import Windows
from tests.conftest import wait_for


class Profiler:
    """As `torch.profiler.profile`, which calls `on_trace_ready` in the step that ends its schedule, or when stopped."""

    made: ClassVar[list["Profiler"]] = []
    error: ClassVar[Exception | None] = None

    def __init__(self, *, schedule, on_trace_ready, **_):
        self.schedule, self.ready, self.steps, self.stopped = schedule, on_trace_ready, 0, False
        self.done = False
        Profiler.made.append(self)

    def start(self):
        if Profiler.error:
            raise Profiler.error

    def step(self):
        self.steps += 1
        if self.steps == self.schedule["warmup"] + self.schedule["active"]:
            self._end()

    def stop(self):
        self.stopped = True
        if self.steps > self.schedule["warmup"]:
            self._end()

    def _end(self):
        if not self.done:
            self.done = True
            self.ready(self)

    def export_chrome_trace(self, path):
        Path(path).write_text("{}")


class Hooks:
    """As the hooks of all modules in `torch.nn.modules.module`."""

    before: ClassVar[dict] = {}
    after: ClassVar[dict] = {}

    @staticmethod
    def _register(hooks, hook):
        hooks[id(hook)] = hook
        return Some(remove=lambda: hooks.pop(id(hook)))

    @classmethod
    def register_module_forward_pre_hook(cls, hook):
        return cls._register(cls.before, hook)

    @classmethod
    def register_module_forward_hook(cls, hook):
        return cls._register(cls.after, hook)


TORCH = Some(
    autograd=Some(_profiler_enabled=lambda: False),
    cuda=Some(is_available=lambda: True),
    version=Some(cuda="13.0"),
    nn=Some(modules=Some(module=Hooks)),
    profiler=Some(ProfilerActivity=Some(CPU="cpu", CUDA="cuda"), schedule=lambda **given: given, profile=Profiler),
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "run").mkdir()
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv(RUN_FOLDER_VARIABLE, str(tmp_path / "run"))
    monkeypatch.delenv(one_window.TEARDOWN, raising=False)
    monkeypatch.setitem(sys.modules, "torch", TORCH)
    monkeypatch.setattr(one_window.tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr(Profiler, "made", [])
    monkeypatch.setattr(Profiler, "error", None)
    with (tmp_path / "run" / "samples.csv").open("w") as samples:
        fcntl.flock(samples, fcntl.LOCK_EX)  # as a recorder does
        yield tmp_path / "run"


def said(folder):
    lines.LINES.drain()
    path = folder / "inside" / f"{os.getpid()}.jsonl"
    every = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [line for line in every if line["kind"] == "profile"]


class Training:
    """Epochs of some batches, whose ends `windows` hears of."""

    def __init__(self, windows, batches=40, epochs=3):
        self.windows = windows
        self.trainer = Some(epoch=0, epochs=epochs, args=Some(val=True), model=None, train_loader=[None] * batches)

    def epoch(self, number, batches=None):
        self.trainer.epoch = number - 1
        all_windows.BATCHES.begin()
        for _ in range(batches or len(self.trainer.train_loader)):
            if self.windows.wanted:
                self.windows.batch_done(self.trainer)
            all_windows.BATCHES.ends.append(0.0)
        self.windows.close()


def planned(monkeypatch, **plan):
    monkeypatch.setenv(requests.VARIABLE, json.dumps({"steps": 8, "epoch": 2, "full": False, **plan}))
    windows = Windows()
    windows.follow()
    return windows


def test_a_plan_opens_one_window_in_its_epoch_after_discarded_steps(folder, monkeypatch):
    training = Training(planned(monkeypatch))
    for number in (1, 2, 3):
        training.epoch(number)
    (line,) = said(folder)
    assert [profiler.schedule for profiler in Profiler.made] == [{"wait": 0, "warmup": 3, "active": 8, "repeat": 1}]
    assert (line["phase"], line["epoch"], line["first_batch"], line["kept_steps"]) == ("train", 2, 1, 8)
    assert Path(line["file"]).read_text() == "{}"
    assert line["begin_mono_s"] <= line["kept_mono_s"] <= line["mono_s"]
    assert len(line["starts_mono_s"]) == 8
    assert not training.windows.wanted


def test_the_gpu_is_no_longer_watched_after_it_unless_somebody_has_decided_that(folder, monkeypatch):
    Training(planned(monkeypatch)).epoch(2)
    assert os.environ[one_window.TEARDOWN] == "1"
    monkeypatch.setenv(one_window.TEARDOWN, "0")
    Training(planned(monkeypatch)).epoch(2)
    assert os.environ[one_window.TEARDOWN] == "0"


def test_old_cuda_is_left_alone_for_its_graphs_would_crash(folder, monkeypatch):
    monkeypatch.setattr(TORCH.version, "cuda", "12.4")
    Training(planned(monkeypatch)).epoch(2)
    assert one_window.TEARDOWN not in os.environ


def test_a_short_epoch_has_as_many_steps_as_fit(folder, monkeypatch):
    Training(planned(monkeypatch), batches=8).epoch(2)
    (line,) = said(folder)
    assert line["kept_steps"] == 3  # of eight batches: one to begin at, three discarded, one that stays


def test_an_epoch_of_a_few_batches_has_none(folder, monkeypatch):
    Training(planned(monkeypatch), batches=4).epoch(2)
    assert (said(folder), Profiler.made) == ([], [])


def test_the_only_epoch_is_profiled_after_its_slow_first_batches(folder, monkeypatch):
    Training(planned(monkeypatch), batches=100, epochs=1).epoch(1)
    (line,) = said(folder)
    assert (line["epoch"], line["first_batch"]) == (1, 20)


def test_an_epoch_that_ends_early_ends_its_window(folder, monkeypatch):
    Training(planned(monkeypatch)).epoch(2, batches=7)
    (line,) = said(folder)
    assert line["kept_steps"] == 3
    assert Profiler.made[0].stopped


def test_one_that_ends_while_steps_are_discarded_is_too_short(folder, monkeypatch):
    Training(planned(monkeypatch)).epoch(2, batches=3)
    assert [line["failed"] for line in said(folder)] == ["too_short"]


def test_a_window_that_takes_too_long_ends_with_the_steps_that_it_has(folder, monkeypatch):
    monkeypatch.setattr(one_window, "LONGEST_S", -1.0)
    windows = planned(monkeypatch)
    monkeypatch.setattr(all_windows, "DISCARDED", 0)
    Training(windows).epoch(2)
    (line,) = said(folder)
    assert (line["kept_steps"], line["cut"]) == (1, "time")


def test_a_trace_that_grows_too_large_ends_with_the_steps_that_it_has(folder, monkeypatch):
    most = one_window.MOST_EVENTS * one_window.EVENT_BYTES
    grown = iter(range(most, 20 * most, most // 3 + 1))
    monkeypatch.setattr(one_window, "_memory", lambda: next(grown))
    Training(planned(monkeypatch)).epoch(2)
    (line,) = said(folder)
    assert (line["kept_steps"], line["cut"]) == (2, "events")
    assert len(line["starts_mono_s"]) == 3  # one had just begun


def test_a_request_is_seen_within_a_second_or_two(folder, monkeypatch):
    monkeypatch.delenv(requests.VARIABLE, raising=False)
    monkeypatch.setattr(all_windows, "LOOK_EVERY_S", 0.01)
    windows = Windows()
    windows.follow()
    training = Training(windows)
    training.epoch(1)
    assert said(folder) == []
    time.sleep(0.05)
    (folder / "profile").mkdir()
    (folder / "profile" / "request.json").write_text('{"steps": 2, "full": false, "reason": "drop"}')
    wait_for(lambda: windows.wanted)
    training.epoch(2)
    (line,) = said(folder)
    assert (line["reason"], line["kept_steps"], line["epoch"]) == ("drop", 2, 2)


@pytest.mark.parametrize(
    "text", [None, "", "[]", "{}", '{"steps": "many"}', '{"steps": null}', "1e99", "[" * 4000, '{"steps": 1e999}']
)
def test_what_is_no_plan_is_none(text):
    assert plan_of(text) is None


def test_a_plan_of_a_million_steps_is_cut():
    assert plan_of('{"steps": 1000000}').steps == requests.MOST_STEPS


def test_validation_of_the_planned_epoch_is_profiled_too(folder, monkeypatch):
    windows = planned(monkeypatch)
    Training(windows).epoch(2)
    validator = Some(dataloader=range(20))
    for _ in range(20):
        windows.validation_batch_done(validator)
    windows.close()
    train, validation = said(folder)
    assert (train["number"], validation["number"]) == (1, 2)
    assert (validation["phase"], validation["kept_steps"], validation["discarded"]) == ("validation", 4, 1)


def test_a_validation_of_few_batches_is_not(folder, monkeypatch):
    windows = planned(monkeypatch)
    Training(windows).epoch(2)
    for _ in range(3):
        windows.validation_batch_done(Some(dataloader=range(3)))
    assert len(said(folder)) == 1


@pytest.mark.parametrize("error", [RuntimeError("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS"), AssertionError("profiler is on")])
def test_a_profiler_that_fails_is_said_once_and_the_training_goes_on(folder, monkeypatch, error):
    monkeypatch.setattr(Profiler, "error", error)
    training = Training(planned(monkeypatch))
    training.epoch(2)
    training.epoch(3)
    assert [(line["failed"], line["error"]) for line in said(folder)] == [("error", f"{type(error).__name__}: {error}")]


def test_a_full_disk_is_said_before_it_is_fuller(folder, monkeypatch):
    monkeypatch.setattr(one_window.shutil, "disk_usage", lambda _: Some(free=1 << 20))
    Training(planned(monkeypatch)).epoch(2)
    assert [line["failed"] for line in said(folder)] == ["no_space"]
    assert Profiler.made == []


def test_an_export_that_fails_is_said_and_leaves_nothing(folder, monkeypatch, tmp_path):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Profiler, "export_chrome_trace", full)
    training = Training(planned(monkeypatch))
    training.epoch(2)
    assert [line["failed"] for line in said(folder)] == ["export"]
    assert list((tmp_path / "tmp").iterdir()) == []
    assert not training.windows.is_open


class Layer:
    """A module that calls the hooks of all modules, and those within it between them."""

    def __init__(self, kind, *within, error=None):
        self.type, self.within, self.error = kind, within, error

    def __call__(self):
        assert [hook(self, ()) for hook in Hooks.before.values()] in ([], [None])  # else it would replace the input
        for layer in self.within:
            layer()
        if self.error:
            raise self.error
        assert [hook(self, (), None) for hook in Hooks.after.values()] in ([], [None])


class Mark:
    """As `_RecordFunctionFast`."""

    seen: ClassVar[list[str]] = []

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        Mark.seen.append(f"+{self.name}")
        return self

    def __exit__(self, *_):
        Mark.seen.append(f"-{self.name}")


def opened(monkeypatch, *layers, **plan):
    """Return a window that is open, of a model with these layers."""
    monkeypatch.setattr(TORCH, "_C", Some(_profiler=Some(_RecordFunctionFast=Mark)), raising=False)
    monkeypatch.setattr(Mark, "seen", [])
    windows = planned(monkeypatch, **plan)
    trainer = Training(windows).trainer
    trainer.model, trainer.epoch = Some(model=layers), 1
    all_windows.BATCHES.begin()
    windows.batch_done(trainer)
    assert windows.is_open
    return windows


def test_a_full_window_names_layers_and_takes_its_hooks_back(folder, monkeypatch):
    layers = Layer("ultralytics.nn.modules.conv.Conv"), Layer("ultralytics.nn.modules.block.C3k2", Layer("Conv"))
    windows = opened(monkeypatch, *layers, full=True)
    for layer in layers:
        layer()
    assert Mark.seen == ["+layer 0 Conv", "-layer 0 Conv", "+layer 1 C3k2", "-layer 1 C3k2"]
    windows.close()
    assert (Hooks.before, Hooks.after) == ({}, {})


def test_a_layer_that_raises_leaves_nothing_open(folder, monkeypatch):
    inner = Layer("Conv", error=MemoryError())
    windows = opened(monkeypatch, inner, Layer("C3k2"), full=True)
    for layer in (inner, inner):
        with pytest.raises(MemoryError):
            layer()
    inner.error = None
    inner()
    assert Mark.seen.count("+layer 0 Conv") == 3
    windows.close()
    assert Mark.seen.count("-layer 0 Conv") == 3


def test_an_epoch_that_begins_again_leaves_no_window_open_and_no_trace(folder, monkeypatch, tmp_path):
    windows = opened(monkeypatch)
    windows.abandon()
    assert [line["failed"] for line in said(folder)] == ["interrupted"]
    assert (windows.is_open, Profiler.made[0].stopped, list((tmp_path / "tmp").iterdir())) == (False, True, [])


def test_a_profiler_of_the_users_own_goes_on(folder, monkeypatch):
    monkeypatch.setattr(TORCH.autograd, "_profiler_enabled", lambda: True)
    Training(planned(monkeypatch)).epoch(2)
    assert [line["failed"] for line in said(folder)] == ["other_profiler"]
    assert Profiler.made == []


def test_where_nobody_records_any_more_nothing_is_profiled(folder, monkeypatch):
    windows = planned(monkeypatch)
    windows._is_recorded = False
    Training(windows).epoch(2)
    assert (said(folder), Profiler.made, windows.wanted) == ([], [], False)


def test_the_first_epoch_of_a_resumed_training_is_left_out(folder, monkeypatch):
    training = Training(planned(monkeypatch), epochs=60)
    training.trainer.start_epoch = 50
    training.epoch(51)
    assert said(folder) == []
    training.epoch(52)
    assert [line["epoch"] for line in said(folder)] == [52]


def test_an_interpreter_that_ends_within_a_window_ends_as_it_would(tmp_path):
    """With the real profiler: on, it crashes in the interpreter's end."""
    (tmp_path / "samples.csv").touch()
    script = f"""
import sys, types
sys.path.insert(0, {str(ON_PATH)!r})
import torch
from gpu_report_inside.profiler.windows import BATCHES, WINDOWS
WINDOWS.follow()
arguments = types.SimpleNamespace(val=False)
trainer = types.SimpleNamespace(epoch=1, epochs=3, args=arguments, model=None, train_loader=[None] * 40)
for _ in range(7):
    WINDOWS.batch_done(trainer)
    BATCHES.ends.append(0.0)
    torch.ones(4).sum()
assert WINDOWS.is_open
sys.exit(7)
"""
    plan = json.dumps({"steps": 8, "epoch": 2})
    env = {**os.environ, RUN_FOLDER_VARIABLE: str(tmp_path), requests.VARIABLE: plan}
    done = subprocess.run([sys.executable, "-c", script], env=env, check=False, capture_output=True, timeout=120)
    assert done.returncode == 7, done.stderr


def test_the_recorder_and_the_training_mean_the_same_names():
    assert (requests.FOLDER, requests.REQUEST) == (schema.PROFILE_DIR, schema.PROFILE_REQUEST)
    assert (requests.VARIABLE, requests.MOST_STEPS) == (PROFILE_VARIABLE, schema.MOST_PROFILE_STEPS)

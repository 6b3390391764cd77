"""`gpu_report.attach` with a model that only looks like one: where it writes, and who records."""

import os
import pickle
import signal
import subprocess
import sys
import weakref
from types import SimpleNamespace

import pytest

import gpu_report
from gpu_report.errors import UsageError
from gpu_report.inside import ON_PATH, RUN_FOLDER_VARIABLE
from gpu_report.notebook import attaching as notebook
from gpu_report.record.lifecycle import background
from tests.conftest import clean_environment, wait_for


class Model:
    """As much of a YOLO model as attaching looks at."""

    def __init__(self):
        self.callbacks = {"on_train_start": [print]}

    def add_callback(self, event, function):
        self.callbacks.setdefault(event, []).append(function)


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """An empty working folder, under no recorder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(RUN_FOLDER_VARIABLE, "")
    return tmp_path


def test_a_named_run_folder_is_written_into(nowhere):
    model = Model()
    (nowhere / "run").mkdir()
    assert gpu_report.attach(model, "run") == nowhere / "run"
    assert os.environ[RUN_FOLDER_VARIABLE] == str(nowhere / "run")
    assert len(model.callbacks["on_train_start"]) == 2


def test_a_run_folder_that_is_none_is_an_error_in_one_line(nowhere):
    with pytest.raises(UsageError, match="is no run folder"):
        gpu_report.attach(Model(), nowhere / "none")


def test_attaching_twice_or_to_an_injected_training_adds_nothing(nowhere, monkeypatch):
    monkeypatch.setattr(notebook, "_started_under", str(nowhere))
    model, injected = Model(), Model()
    gpu_report.attach(model)
    before = {event: list(functions) for event, functions in model.callbacks.items()}
    assert gpu_report.attach(model) == nowhere
    assert model.callbacks == before
    injected.callbacks["on_train_start"].append(SimpleNamespace(__module__="gpu_report_inside.callbacks"))
    gpu_report.attach(injected)
    assert len(injected.callbacks) == 1


def test_a_recorder_that_runs_here_is_used(nowhere, start_cli, fake_nvml):
    started = start_cli("record", "--interval", "0.1", "--output", nowhere / "gpu-runs" / "r", env=fake_nvml.env())
    wait_for(lambda: background.recorder_pid(nowhere / "gpu-runs" / "r"))
    assert gpu_report.attach(Model()) == nowhere / "gpu-runs" / "r"
    notebook.end_recorder(None)
    assert started.process.poll() is None  # it is not ours to end


def test_without_one_a_recorder_is_started_that_dies_with_this_process(nowhere, fake_nvml):
    code = (
        "import gpu_report, os, signal\n"
        "class Model:\n    callbacks = {}\n    def add_callback(self, event, function): pass\n"
        "gpu_report.attach(Model())\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    env = clean_environment(fake_nvml.env())
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, cwd=nowhere, capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    (folder,) = (nowhere / "gpu-runs").iterdir()
    wait_for(lambda: background.recorder_pid(folder) is None)
    assert '"ended_by": "signal"' in (folder / "run.json").read_text()


def test_importing_the_package_imports_next_to_nothing():
    code = "import sys; before = set(sys.modules); import gpu_report; print(sorted(set(sys.modules) - before))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=clean_environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout == "['gpu_report']\n"


def test_a_folder_whose_recorder_has_ended_is_not_written_into_again(nowhere, monkeypatch):
    monkeypatch.setenv(RUN_FOLDER_VARIABLE, str(nowhere / "over"))
    (nowhere / "over").mkdir()
    monkeypatch.setattr(notebook, "_start_recorder", lambda: nowhere / "new")
    assert gpu_report.attach(Model()) == nowhere / "new"


def test_what_is_no_model_starts_nothing(nowhere):
    with pytest.raises(UsageError, match="takes a YOLO model"):
        gpu_report.attach("x")
    assert not (nowhere / "gpu-runs").exists()


class Trained(Model):
    """A model that notes what its training finds."""

    def train(self, **found):
        found.update(path=os.environ.get("PYTHONPATH"), run=os.environ.get(RUN_FOLDER_VARIABLE))
        self.found = found
        if "error" in found:
            raise found["error"]
        return "metrics"


def test_processes_of_the_training_get_the_hook_and_later_ones_do_not(nowhere, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/theirs")
    model, run = Trained(), nowhere / "run"
    run.mkdir()
    gpu_report.attach(model, run)
    assert os.environ["PYTHONPATH"] == "/theirs"
    assert model.train(data="x") == "metrics"
    assert model.found == {"data": "x", "path": f"{ON_PATH}{os.pathsep}/theirs", "run": str(run)}
    assert os.environ["PYTHONPATH"] == "/theirs"
    model.train()
    assert model.found["path"] == "/theirs"  # attached to one training


def test_an_exception_of_the_training_comes_through_and_leaves_nothing(nowhere, monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    model = Trained()
    (nowhere / "run").mkdir()
    gpu_report.attach(model, "run")
    with pytest.raises(KeyboardInterrupt):
        model.train(error=KeyboardInterrupt())
    assert model.found["path"] == str(ON_PATH)
    assert "PYTHONPATH" not in os.environ


def test_a_live_output_begins_and_ends_with_the_training_and_its_faults_stay_in_it(nowhere, monkeypatch):
    called = []

    def fails(live):
        called.append(type(live).__name__)
        raise OSError("no display")

    monkeypatch.setattr(notebook.LiveOutput, "begin", fails)
    monkeypatch.setattr(notebook.LiveOutput, "end", fails)
    model = Trained()
    (nowhere / "run").mkdir()
    gpu_report.attach(model, "run")
    gpu_report.attach(model, "run", live=True)
    assert called == []
    assert model.train() == "metrics"
    assert called == ["LiveOutput"] * 2


def test_an_attached_model_can_be_copied_and_forgotten(nowhere):
    (nowhere / "run").mkdir()
    model = Trained()
    gpu_report.attach(model, "run")
    assert pickle.loads(pickle.dumps(model)).train() == "metrics"
    gone = weakref.ref(model)
    del model
    assert gone() is None

"""The import hook and sitecustomize in real interpreters, beside a package that looks like ultralytics."""

import ast
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import pytest

from gpu_report.inside import ON_PATH
from gpu_report.record.yolo.inject import environment
from tests.conftest import clean_environment

ROOT = Path(__file__).resolve().parents[3]
BASE = """
from pathlib import Path
default_callbacks = {"on_train_start": [print], "on_val_end": []}
LOADER = type(__loader__).__name__
"""


@pytest.fixture
def home(tmp_path):
    """A folder with a fake ultralytics in it, and a run folder."""
    package = tmp_path / "ultralytics" / "utils" / "callbacks"
    package.mkdir(parents=True)
    for folder in (package, *package.parents[:2]):
        (folder / "__init__.py").write_text("")
    (package / "base.py").write_text(BASE)
    (tmp_path / "run").mkdir()
    return tmp_path


@pytest.fixture
def python(home):
    """Run Python code as a recorded command is run; `before` is what PYTHONPATH held."""

    def run(code, *options, before=None, **variables):
        base = {**clean_environment(), "PYTHONPATH": os.pathsep.join([str(p) for p in (before or [home])]), **variables}
        env = environment(home / "run", base)
        return subprocess.run(
            [sys.executable, *options, "-c", code], env=env, cwd=home, capture_output=True, text=True, check=False
        )

    return run


COUNT = (
    "import sys; sys.path.append('.'); from ultralytics.utils.callbacks import base; "
    "print({k: [f.__module__.split('.')[0] for f in v] for k, v in base.default_callbacks.items()})"
)

pytestmark = pytest.mark.live


def test_our_callbacks_stand_last_once_and_in_place(python):
    done = python(COUNT + "; import importlib; importlib.import_module('ultralytics.utils.callbacks.base')")
    callbacks = ast.literal_eval(done.stdout)
    assert done.stderr == ""
    assert callbacks["on_train_start"] == ["builtins", "gpu_report_inside"]
    assert callbacks["on_val_end"] == ["gpu_report_inside"]
    assert callbacks["on_train_batch_end"] == ["gpu_report_inside"]


def test_the_module_keeps_its_own_loader_and_the_finder_goes(python):
    done = python(
        "import sys; from ultralytics.utils.callbacks import base; import importlib.machinery as m;"
        "print(type(base.__loader__) is type(base.__spec__.loader) is m.SourceFileLoader,"
        "any('gpu_report' in type(f).__module__ for f in sys.meta_path))"
    )
    assert done.stdout.split() == ["True", "False"], done.stderr


def test_the_functions_pickle_by_reference_as_ddp_wants_them(python):
    done = python(
        "import pickle; from ultralytics.utils.callbacks import base;"
        "functions = [f for v in base.default_callbacks.values() for f in v];"
        "print(all(pickle.loads(pickle.dumps(f)) is f for f in functions),"
        "b'gpu_report_inside' in pickle.dumps(functions[-1:]))"
    )
    assert done.stdout.split() == ["True", "True"], done.stderr


def test_an_interpreter_that_imports_no_ultralytics_writes_nothing_and_starts_no_thread(python, home):
    done = python("import threading; print(threading.active_count())")
    assert done.stdout == "1\n"
    assert list((home / "run").iterdir()) == []


@pytest.mark.parametrize("option", ["-I", "-S", "-E"])
def test_an_interpreter_that_ignores_the_environment_is_left_alone(python, option):
    done = python(COUNT, option)
    assert "gpu_report" not in done.stdout + done.stderr


def test_a_broken_ultralytics_fails_as_it_does_without_us(python, home):
    (home / "ultralytics" / "utils" / "callbacks" / "base.py").write_text("1 / 0")
    done = python("import ultralytics.utils.callbacks.base")
    assert "ZeroDivisionError" in done.stderr
    assert "gpu_report" not in done.stderr.splitlines()[-1]


def test_looking_the_module_up_first_loses_nothing(python):
    look = (
        "import sys; sys.path.append('.'); from importlib.util import find_spec;"
        "spec = find_spec('ultralytics.utils.callbacks.base');"
        "assert 'default_callbacks' in spec.loader.get_source(spec.name);"
    )
    done = python(look + COUNT)
    assert "gpu_report_inside" in done.stdout, done.stderr


def test_default_callbacks_of_another_shape_only_cost_our_view(python, home):
    (home / "ultralytics" / "utils" / "callbacks" / "base.py").write_text("default_callbacks = 5")
    done = python("import ultralytics.utils.callbacks.base as b; print(b.default_callbacks)")
    assert (done.stdout, done.stderr) == ("5\n", "")
    (lines,) = (home / "run" / "inside").glob("*.jsonl")
    assert json.loads(lines.read_text())["kind"] == "error"


def test_a_shadowed_sitecustomize_runs_under_its_own_name(python, home):
    (home / "sitecustomize.py").write_text("import sys\nmine = __file__\nprint(__name__, __spec__.origin)\n")
    done = python("import sitecustomize; print(sitecustomize.mine, sitecustomize.__file__)")
    theirs = str(home / "sitecustomize.py")
    assert done.stdout.split() == ["sitecustomize", theirs, theirs, theirs], done.stderr
    assert "gpu_report_inside" in python(COUNT).stdout


def test_a_shadowed_sitecustomize_that_fails_fails_as_it_does_without_us(python, home):
    (home / "sitecustomize.py").write_text("raise ValueError('mine')\n")
    done = python(COUNT)
    assert "Error in sitecustomize" in done.stderr
    assert "ValueError: mine" in done.stderr
    assert "gpu_report_inside" in done.stdout


def test_only_two_names_can_be_imported_that_could_not_be_before():
    assert {path.stem for path in ON_PATH.iterdir()} - {"__pycache__", "__init__"} == {
        "sitecustomize",
        "gpu_report_inside",
    }


def test_what_pythonpath_held_stays_behind_us():
    env = environment(Path("/run"), {"PYTHONPATH": f"/a{os.pathsep}/b", "OTHER": "1"})
    assert env["PYTHONPATH"].split(os.pathsep) == [str(ON_PATH), "/a", "/b"]
    assert environment(Path("/run"), env) == env
    assert {name for name in env if name not in {"PYTHONPATH", "OTHER"}} == {"GPU_REPORT_RUN_FOLDER"}
    assert environment(Path("/run"), {})["PYTHONPATH"] == str(ON_PATH)  # an empty entry would be the working folder


def test_without_a_run_folder_nothing_is_changed():
    assert environment(None, {"PYTHONPATH": "/a"}) == {"PYTHONPATH": "/a"}


@pytest.mark.parametrize("path", sorted(ON_PATH.rglob("*.py")), ids=lambda path: path.name)
def test_it_is_python_3_8(path):
    """The user's Python is not ours; ultralytics runs from 3.8 on."""
    ast.parse(path.read_text(), feature_version=(3, 8))


def test_it_costs_an_interpreter_little(home):
    """1.0 ms on two idle cores, of 11 ms; the bound leaves room for a busy machine."""
    base = {**clean_environment(), "PYTHONPATH": ""}
    injected = environment(home / "run", base)

    def start(env):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], env=env, check=True)
        return time.perf_counter() - began

    pairs = [(start(base), start(injected)) for _ in range(12)][2:]
    assert median(after - before for before, after in pairs) < 0.02

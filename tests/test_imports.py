"""What a start costs: the recorder and the help text load nothing heavy."""

import subprocess
import sys

import pytest
from conftest import clean_environment

HEAVY = {"pandas", "numpy", "plotly", "jinja2", "torch", "ultralytics", "rich"}
FLEET = {"pyarrow", "fsspec", "distributed", "dask", "duckdb"}  # what only a fleet needs


def modules_after(code, env=None):
    """Return the top-level modules that a fresh interpreter holds after running `code`."""
    probe = f"import sys\n{code}\nprint('MODULES', *{{m.split('.')[0] for m in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", probe], env=clean_environment(env), capture_output=True, text=True, check=True
    )
    return set(done.stdout.split("MODULES")[-1].split())


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["record", "--help"], ["render", "--help"], ["fleet", "index", "--help"], ["doctor"]],
)
def test_help_and_doctor_load_nothing_heavy(arguments):
    code = f"from gpu_report.cli import cli\ntry:\n    cli({arguments!r})\nexcept SystemExit:\n    pass"
    assert modules_after(code) & (HEAVY | FLEET) == set()


def test_a_recording_loads_nothing_heavy(fake_nvml, tmp_path):
    arguments = ["record", "--duration", "0.5", "--output", str(tmp_path / "run")]
    code = f"from gpu_report.cli import cli\ntry:\n    cli({arguments!r})\nexcept SystemExit:\n    pass"
    loaded = modules_after(code, fake_nvml.env())
    assert "pynvml" in loaded
    assert loaded & HEAVY == set()


def test_rendering_does_not_load_the_driver_library():
    assert "pynvml" not in modules_after("import gpu_report.load, gpu_report.analyse, gpu_report.render")

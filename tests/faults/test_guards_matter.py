"""The guards against faults are what makes their tests pass: without them the same faults do harm.

Each test runs a copy of the package from which one guard has been taken.
"""

import resource
import shutil
import subprocess
import sys

import pytest
from conftest import REPOSITORY, clean_environment
from support.run_folder_reader import RunFolder


@pytest.fixture
def without(tmp_path, fake_nvml):
    """Return a function that runs `record` of a package in which `old` was replaced by `new` in one module."""

    def run(module: str, old: str, new: str, state: str, *words: object, **options: object):
        package = tmp_path / "mutant"
        shutil.copytree(REPOSITORY / "gpu_report", package / "gpu_report")
        path = package / "gpu_report" / module
        source = path.read_text()
        assert source.count(old) == 1, f"{module} no longer holds this guard: {old}"
        path.write_text(source.replace(old, new))
        fake_nvml.write(state)
        env = {**clean_environment(fake_nvml.env()), "PYTHONPATH": str(package)}
        recorded = RunFolder(tmp_path / "run")
        command = [sys.executable, "-m", "gpu_report", "record", "--output", recorded.path, *words]
        process = subprocess.Popen(
            list(map(str, command)), env=env, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
        )
        return recorded, process

    return run


def end(process: subprocess.Popen, timeout_s: float) -> int | None:
    """Return its exit code, None when it had to be killed."""
    try:
        process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return None
    return process.returncode


def test_without_a_thread_of_their_own_the_other_gpus_are_lost_with_one_that_hangs(without):
    split = "if waited_s > SPLIT_S and (others := thread.give_up_others()):"
    recorded, process = without(
        "record/gpu/sampler.py", split, "if others := []:",
        "count=2\ngpu1.hang.nvmlDeviceGetPowerUsage=1\n", "--interval", 0.1, "--duration", 4,
    )  # fmt: skip
    assert end(process, 30) == 0
    assert [row["gpu_util_pct"] for row in recorded.samples(0)][-5:] == [""] * 5


def test_without_its_guard_rows_that_a_full_disk_loses_are_not_told(without):
    recorded, process = without(
        "run_folder.py", "            written = os.write(self._fd, text)\n        except OSError as error:",
        "            written = os.write(self._fd, text)\n        except ZeroDivisionError as error:",
        "count=1\n", "--interval", 0.04, "--", "sh", "-c", "sleep 1.5; exit 3",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500)),
    )  # fmt: skip
    assert end(process, 30) == 3, "guards lie in layers: the command's exit code is safe all the same"
    told = sum(event["rows"] for event in recorded.events("rows_lost") if event["file"] == "samples.csv")
    whole = [row for row in recorded.samples() if row["gpu_util_pct"] == "97"]
    assert told <= 2, "only the row that was cut in two is known to be lost"
    assert len(whole) < 25


def test_without_the_rest_that_a_lost_gpu_is_given_it_is_asked_at_every_tick(without, fake_nvml):
    _, process = without(
        "record/gpu/nvml_quantities.py", "if self.lost_reason and mono_s < self.lost_until_s:", "if False:",
        "error.nvmlDeviceGetUtilizationRates=15\n", "--interval", 0.1, "--duration", 2,
    )  # fmt: skip
    assert end(process, 30) == 0
    assert len(fake_nvml.calls("nvmlDeviceGetUtilizationRates")) > 10


def test_without_its_reader_of_every_quantity_one_error_empties_the_row(without):
    recorded, process = without(
        "record/gpu/nvml_quantities.py", "state.given_up = code in NEVER or", "raise\n            state.given_up =",
        "error.nvmlDeviceGetPowerUsage=3\n", "--interval", 0.1, "--duration", 1,
    )  # fmt: skip
    assert end(process, 30) == 0
    assert {row["gpu_util_pct"] for row in recorded.samples()} == {""}

"""A real py-spy and a real Python process beside a GPU that is played: lines of code without our hook."""

import shutil
import sys
from pathlib import Path

import pytest
from support.stand_in import HANGS, calls, is_running, stand_in

from gpu_report.analyse import analyse
from gpu_report.load import load_run
from tests.conftest import wait_for

# The training itself tells the fake GPU how busy it is, and that it is on it.
TRAINING = """
import os, sys, time

def gpu(util):
    state = os.environ["FAKE_NVML_STATE"]
    with open(state + ".new", "w") as file:
        file.write(f"count=1\\nring=0\\nutil={util}\\npower_w={50 + 4 * util}\\ngpu0.procs={os.getpid()}:4000\\n")
    os.replace(state + ".new", state)

def upload_checkpoint(seconds):
    time.sleep(seconds)  # a server that does not answer

gpu(90)
time.sleep(13)
gpu(2)
upload_checkpoint(float(sys.argv[1]))
gpu(90)
time.sleep(4)
"""
LINE = 1 + TRAINING.splitlines().index("    time.sleep(seconds)  # a server that does not answer")


@pytest.fixture
def train(tmp_path, start_cli, fake_nvml, recorded):
    """Start to record the training; the path of programs begins with the folder `bin`."""
    (tmp_path / "train.py").write_text(TRAINING)

    def start(*options, seconds):
        env = fake_nvml.env() | {"PATH": f"{tmp_path / 'bin'}:/usr/local/bin:/usr/bin:/bin"}
        recording = ("record", "--interval", "0.5", *options, "--output", recorded.path)
        return start_cli(*recording, "--", sys.executable, "train.py", seconds, env=env)

    return start


def test_a_training_without_our_hook_has_its_line_named_by_py_spy(train, recorded):
    assert shutil.which("py-spy") or (Path(sys.executable).parent / "py-spy").exists(), "pip install -e '.[dev]'"
    done = train("--no-inject", seconds=13).wait(90)
    assert done.returncode == 0, done.stderr
    assert recorded.events("dump_failed") == []
    assert recorded.info()["recorder"]["late_ticks"] <= 2
    (drop,) = [finding for finding in analyse(load_run(recorded.path)).findings if finding.rule == "drop"]
    (line,) = drop.where
    assert (line.process, line.function, line.line, line.share) == ("main", "upload_checkpoint", LINE, 1)
    assert line.file.endswith("/train.py")
    assert 4 <= line.dumps <= 5


def test_a_recorder_that_is_killed_leaves_no_program_behind_and_the_training_runs_on(train, recorded, tmp_path):
    stand_in(tmp_path / "bin", HANGS)
    running = train("--no-inject", seconds=6)
    wait_for(lambda: calls(tmp_path / "bin"), timeout_s=40)
    training = next(event["pid"] for event in recorded.events("command_started"))
    running.process.kill()
    running.process.wait(10)
    assert is_running(str(training))
    wait_for(lambda: not is_running(calls(tmp_path / "bin")[0][0]), timeout_s=15)
    wait_for(lambda: not is_running(str(training)), timeout_s=30)
    assert load_run(recorded.path).dumps == ()

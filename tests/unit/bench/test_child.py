"""A worker's process: its answers, and how it says that it ended."""

import signal
import subprocess
from pathlib import Path

import pytest

from gpu_report.bench.child import LONGEST_LAST_LINE, Child, ChildFailed, Renewed, _last_line

OPEN = Path("/proc/self/fd")


@pytest.fixture
def child(tmp_path):
    made = Child(tmp_path / "log")
    yield made
    made.end()


def test_an_exception_is_an_answer_and_the_worker_goes_on(child, tmp_path):
    for _ in range(2):
        with pytest.raises(ChildFailed, match=r"AttributeError: 'Worker' object has no attribute 'do_dance'"):
            child.ask({"do": "dance"}, 60)
    assert "Traceback" in (tmp_path / "log").read_text()


def test_a_process_that_was_killed_says_by_which_signal(child):
    child._process.kill()
    child._process.wait()
    with pytest.raises(ChildFailed, match="its process ended with signal SIGKILL"):
        child.ask({"do": "dance"}, 60)


def test_one_that_does_not_answer_in_time_is_ended(child):
    child._process.send_signal(signal.SIGSTOP)
    with pytest.raises(ChildFailed, match="no answer within 0 s"):
        child.ask({"do": "dance"}, 0.05)
    assert child._process.wait(10) == -signal.SIGKILL


def test_it_installs_nothing_by_itself(child, monkeypatch):
    environment = subprocess.run(
        ["cat", f"/proc/{child._process.pid}/environ"], check=True, capture_output=True, text=True
    ).stdout
    assert "YOLO_AUTOINSTALL=False" in environment.split("\0")


def test_its_answers_are_on_no_descriptor_that_stays_open(tmp_path):
    before = set(OPEN.iterdir())
    Child(tmp_path / "log").end()
    assert len(list(OPEN.iterdir())) <= len(before)


def test_the_last_line_of_a_log_has_no_secrets_also_where_it_is_cut(tmp_path):
    (tmp_path / "log").write_text(f"{'x' * (LONGEST_LAST_LINE - 20)} https://bob:hunter2@host/n.pt\n")
    assert "hunt" not in _last_line(tmp_path / "log")


def test_the_one_that_failed_is_asked_no_more():
    class Failing:
        def ask(self, request, limit_s):
            raise ChildFailed("dead")

        def end(self):
            ended.append(self)

    started, ended = [], []
    renewed = Renewed(lambda: started.append(Failing()) or started[-1])
    for _ in range(2):
        with pytest.raises(ChildFailed):
            renewed.ask({}, 1)
    renewed.end()
    assert len(started) == 2
    assert ended == started

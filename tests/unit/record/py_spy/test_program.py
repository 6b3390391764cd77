"""One dump by py-spy, whatever py-spy does."""

import threading
import time

import pytest
from support.stand_in import FAILS, FLOODS, HANGS, REFUSED, calls, is_running, stand_in

from gpu_report.record.py_spy import program
from gpu_report.record.py_spy.program import DumpFailed, PySpy, find_program
from tests.conftest import wait_for


def failure(py_spy):
    with pytest.raises(DumpFailed) as failed:
        py_spy.dump(77)
    return str(failed.value)


def test_a_dump_never_pauses_the_process(tmp_path):
    assert PySpy(str(stand_in(tmp_path, "echo '[]'"))).dump(77) == b"[]\n"
    ((_, *words),) = calls(tmp_path)
    assert words == ["dump", "--nonblocking", "--json", "--pid", "77"]


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        (FAILS, "Error: Failed to find python version from target process"),
        (REFUSED, "Permission Denied: Try running again with elevated permissions"),
        ("exit 3", "py-spy failed with exit code 3"),
        ("printf '\\033[31mred\\033[0m\\n' >&2; exit 1", "[31mred[0m"),
        ("head -c 100000 /dev/zero | tr '\\0' x >&2 & exit 1", "x" * 300),
        ("kill -9 $$", None),
        (FLOODS, f"py-spy answered more than {program.MOST_BYTES} bytes"),
    ],
)
def test_a_failure_says_why_in_one_short_line(tmp_path, does, reason):
    said = failure(PySpy(str(stand_in(tmp_path, does))))
    assert said
    assert reason is None or said in {reason, "py-spy failed with exit code 1"}
    assert len(said) <= program.LONGEST_REASON
    assert said.isprintable()


def test_one_that_is_not_there_or_no_program(tmp_path):
    assert "No such file" in failure(PySpy(str(tmp_path / "none")))
    no_program = tmp_path / "py-spy"
    no_program.write_text("")
    assert failure(PySpy(str(no_program)))


def test_one_that_hangs_is_killed_in_time(tmp_path):
    began_s = time.monotonic()
    assert failure(PySpy(str(stand_in(tmp_path, HANGS)), limit_s=0.5)) == "py-spy did not answer within 0 s"
    assert time.monotonic() - began_s < 5
    wait_for(lambda: not is_running(calls(tmp_path)[0][0]), timeout_s=5)


def test_one_that_closes_its_output_and_hangs_is_killed_too(tmp_path):
    assert "did not answer" in failure(PySpy(str(stand_in(tmp_path, "exec >&- 2>&-; sleep 600")), limit_s=0.5))
    wait_for(lambda: not is_running(calls(tmp_path)[0][0]), timeout_s=5)


def test_an_end_kills_the_dump_under_way_and_begins_none(tmp_path):
    py_spy = PySpy(str(stand_in(tmp_path, HANGS)))
    said: list[str] = []
    waiting = threading.Thread(target=lambda: said.append(failure(py_spy)))
    waiting.start()
    while not calls(tmp_path):
        time.sleep(0.01)
    py_spy.kill()
    waiting.join(5)
    assert said
    wait_for(lambda: not is_running(calls(tmp_path)[0][0]), timeout_s=5)
    assert failure(py_spy)


def test_it_ends_itself_where_nobody_is_left_to_kill_it(tmp_path, monkeypatch):
    monkeypatch.setattr(program, "KILLED_WITHIN_S", 0.5)
    monkeypatch.setattr(program, "_kill", lambda _: None)  # as after SIGKILL
    failure(PySpy(str(stand_in(tmp_path, HANGS)), limit_s=0.2))
    wait_for(lambda: not is_running(calls(tmp_path)[0][0]), timeout_s=10)


def test_it_is_found_on_the_path_before_beside_our_python(tmp_path, monkeypatch):
    beside, on_path = tmp_path / "venv", tmp_path / "bin"
    stand_in(beside, "")
    monkeypatch.setattr(program.sys, "executable", str(beside / "python"))
    monkeypatch.setenv("PATH", str(on_path))
    assert find_program() == str(beside / "py-spy")
    stand_in(on_path, "")
    assert find_program() == str(on_path / "py-spy")
    for folder in (beside, on_path):
        (folder / "py-spy").unlink()
    assert find_program() is None

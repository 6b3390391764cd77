import subprocess
import sys

import pytest
from conftest import wait_for

from gpu_report.record.processes import ProcessWatch, process_name


def changes(watch, found):
    return [(change.pid, change.change, change.memory_used_mib) for change in watch.update(found)]


def test_processes_are_told_once_until_something_happens():
    watch = ProcessWatch(0)
    assert changes(watch, {7: 1000.0, 3: None}) == [(3, "appeared", None), (7, "appeared", 1000.0)]
    assert changes(watch, {7: 1040.0, 3: None}) == []
    assert changes(watch, {7: 1051.0, 3: None}) == [(7, "changed", 1051.0)]
    assert changes(watch, {3: None}) == [(7, "gone", None)]
    assert changes(watch, {7: 1.0, 3: None}) == [(7, "appeared", 1.0)]


def test_slow_growth_is_told_when_it_has_added_up():
    watch = ProcessWatch(0)
    changes(watch, {7: 40000.0})
    told = [change for step in range(1, 11) for change in changes(watch, {7: 40000.0 + 20 * step})]
    assert told == [(7, "changed", 40080.0), (7, "changed", 40160.0)]


def test_memory_that_the_driver_stops_telling_is_a_change():
    watch = ProcessWatch(0)
    changes(watch, {7: 100.0})
    assert changes(watch, {7: None}) == [(7, "changed", None)]


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (b"/usr/bin/python3\0/work/train.py\0--epochs\0", "python3 train.py"),
        (b"/usr/bin/python3\0-c\0import torch\0", "python3"),
        (b"/opt/app\0x\0", "app"),
        (b"", "comm-name"),
    ],
)
def test_a_process_is_named_by_its_program_and_script(tmp_path, command, name):
    (tmp_path / "5").mkdir()
    (tmp_path / "5/cmdline").write_bytes(command)
    (tmp_path / "5/comm").write_text("comm-name\n")
    assert process_name(5, tmp_path) == name


def test_a_pid_that_is_not_visible_has_no_name(tmp_path):
    assert process_name(5, tmp_path) == ""


def test_a_real_process_has_a_name():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        # until it has called exec, a child still bears its parent's name
        wait_for(lambda: process_name(process.pid).startswith("python"))
        process.communicate(b"\n")

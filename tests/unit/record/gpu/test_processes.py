import os
import subprocess
import sys

import pytest
from conftest import wait_for

from gpu_report.record.gpu.process_owners import Owners
from gpu_report.record.gpu.processes import ProcessWatch, process_name


def changes(watch, found):
    return [(change.pid, change.change, change.seen.memory_mib) for change in watch.update(found)]


def utilisations(watch, used):
    """Look at processes of constant memory; return what is written down of their utilisation."""
    told = watch.update(dict.fromkeys(used, 100.0), {pid: pct for pid, pct in used.items() if pct is not None})
    return {change.pid: change.seen.util_pct for change in told}


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


def test_utilisation_is_told_when_it_moved_by_more_than_20_points():
    watch = ProcessWatch(0)
    assert utilisations(watch, {7: None}) == {7: None}
    assert utilisations(watch, {7: 24.0}) == {7: 24.0}
    assert utilisations(watch, {7: 44.0}) == {}
    assert utilisations(watch, {7: None}) == {}  # not read at this look
    assert utilisations(watch, {7: 45.0}) == {7: 45.0}
    assert utilisations(watch, {7: 0.0}) == {7: 0.0}


def test_a_look_writes_a_bounded_number_of_rows_for_utilisation():
    watch = ProcessWatch(0)
    utilisations(watch, dict.fromkeys(range(1, 100), 0.0))
    told = utilisations(watch, {pid: 30.0 + pid / 10 for pid in range(1, 100)})
    assert set(told) == {99, 98, 97, 96}


def test_an_owner_that_becomes_known_is_told_once():
    owners = Owners()
    watch = ProcessWatch(0, owners)
    pid = os.getpid()

    def told():
        return [(change.change, change.seen.owner) for change in watch.update({pid: 100.0})]

    assert told() == [("appeared", "unknown")]
    assert told() == []
    owners.learn(pid, None)
    assert told() == [("changed", "trainer")]
    assert told() == []


def test_all_owners_are_asked_anew_when_a_process_appears_and_not_otherwise(monkeypatch):
    asked = []

    def answer(_owners, pids, gpu):
        asked.append((gpu, sorted(pids)))
        return dict.fromkeys(pids, "trainer" if len(pids) == 1 else "unknown")

    monkeypatch.setattr(Owners, "of", answer)
    watch = ProcessWatch(3)
    looks = ({7: 1.0}, {7: 1.0}, {7: 1.0, 8: 1.0}, {8: 1.0})
    told = [[(change.pid, change.seen.owner) for change in watch.update(found)] for found in looks]
    assert told == [[(7, "trainer")], [], [(7, "unknown"), (8, "unknown")], [(7, "unknown")]]
    assert asked == [(3, [7]), (3, [7, 8])]


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (b"/usr/bin/python3\0/work/train.py\0--epochs\0", "python3 train.py"),
        (b"/usr/bin/python3\0-c\0import torch\0", "python3"),
        (b"/opt/app\0x\0", "app"),
        (b"", "comm-name"),
        (b"train --hub-token a/b --epochs 3\0\0", "train --hub-token *** --epochs 3"),
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

"""Which processes are dumped, from a /proc of our own."""

import pytest

from gpu_report.record.py_spy import processes
from gpu_report.record.py_spy.processes import Candidates, Target, Targets


@pytest.fixture
def machine(tmp_path):
    """Return what makes processes, and what chooses among candidates: (mains, workers, on_gpus)."""
    proc, notes = tmp_path / "proc", tmp_path / "stacks"
    targets = Targets(notes, proc)

    def process(pid, parent=1, exe="/usr/bin/python3.12", files=()):
        (proc / str(pid) / "fd").mkdir(parents=True)
        (proc / str(pid) / "stat").write_text(f"{pid} (a) b) S {parent} 1 1 0\n")
        (proc / str(pid) / "exe").symlink_to(exe)
        for number, file in enumerate(files):
            (proc / str(pid) / "fd" / str(number)).symlink_to(file)

    def choose(mains, workers=(), on_gpus=()):
        return targets.choose(Candidates(frozenset(mains), frozenset(workers), frozenset(on_gpus)))

    return process, choose, notes


def test_a_main_process_and_its_workers(machine):
    process, choose, _ = machine
    process(10)
    process(11, parent=10)
    process(12, parent=11)  # of a fork server
    process(13, parent=10, exe="/usr/bin/ffmpeg")
    process(20)
    process(21, parent=20)
    assert choose({10, 20}, {11, 12, 13, 21}, {10}) == [Target(10), Target(11, 10), Target(12, 10)]


def test_one_that_notes_its_own_lines_is_left_alone_with_its_workers(machine):
    process, choose, notes = machine
    process(10)
    process(11, parent=10)
    notes.mkdir()
    (notes / "10.jsonl").touch()
    assert choose({10}, {11}, {10}) == []


def test_what_is_no_python_is_left_alone(machine):
    process, choose, _ = machine
    process(10, exe="/opt/train/bin/trainer")
    assert choose({10}, (), {10}) == []


def test_a_gpu_of_another_training_is_none_of_ours(machine):
    process, choose, _ = machine
    process(10)
    process(20)
    assert choose({10}, (), {20}) == []


def test_where_the_driver_names_no_process_that_is_here_those_count_that_hold_a_gpu(machine):
    process, choose, _ = machine
    process(9, exe="/bin/sh", files=["/dev/pts/0"])
    process(10, parent=9, files=["/dev/nvidiactl", "socket:[1]"])  # torchrun
    process(11, parent=10, files=["/dev/nvidia0"])
    process(12, parent=11, files=["/dev/nvidia0"])  # a forked worker
    process(13, parent=10, files=["/dev/nvidia1"])
    found = choose({9}, {10, 11, 12, 13}, {4_190_000})
    assert found == [Target(11), Target(13), Target(12, 11)]


def test_who_holds_no_gpu_is_not_looked_at(machine):
    process, choose, _ = machine
    process(10, files=["/dev/nvidiactl", "/dev/null"])
    assert choose({10}, (), ()) == []


def test_of_many_all_have_their_turn(machine):
    process, choose, _ = machine
    for pid in range(10, 18):
        process(pid)
        process(pid + 100, parent=pid)
    seen = [choose(set(range(10, 18)), set(range(110, 118)), set(range(10, 18))) for _ in range(2)]
    assert all(len(each) <= processes.MOST_MAINS + processes.MOST_WORKERS for each in seen)
    assert {target.pid for each in seen for target in each if target.parent is None} == set(range(10, 18))


def test_a_process_that_is_gone_or_has_no_parent_ends_nothing(machine):
    process, choose, _ = machine
    process(10, parent=10)
    assert choose({10, 99}, {98}, {10, 99}) == [Target(10)]

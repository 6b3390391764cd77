"""Whose a process is, told by its ancestors or by the run that it alone can have made."""

import os
import subprocess
import sys

import pytest
from conftest import wait_for

from gpu_report.record.gpu.process_owners import Owners

HERE = 10**6  # beyond what any test machine gives out, so that only the made-up /proc knows them
GONE = 2**22 + 7


@pytest.fixture
def proc(tmp_path):
    class Proc:
        path = tmp_path / "proc"

        def add(
            self,
            pid,
            parent,
            folder=tmp_path / "elsewhere",
            comm="python3",
            words=("python3", "train.py"),
            group=None,
            at=0,
        ):
            here = self.path / str(pid)
            here.mkdir(parents=True)
            (here / "stat").write_text(f"{pid} ({comm} (x) 1) S {parent} {group or pid} {'0 ' * 16}{at} 0\n")
            (here / "comm").write_text(f"{comm}\n")
            (here / "cmdline").write_bytes("\0".join(words).encode())
            (here / "cwd").symlink_to(folder)
            return pid

        def owners(self, *pids, command=None, run=None):
            owners = Owners(self.path)
            owners.learn(command, run)
            return owners.of(set(pids))

    return Proc()


def test_what_descends_from_the_command_is_the_trainers(proc):
    shell = proc.add(HERE, 1, comm="sh")
    trainer = proc.add(HERE + 1, shell)
    rank = proc.add(HERE + 2, trainer)
    stranger = proc.add(HERE + 3, 1)
    assert proc.owners(trainer, rank, stranger, GONE, command=shell) == {
        trainer: "trainer",
        rank: "trainer",
        stranger: "other",
        GONE: "not visible",
    }


def test_what_lost_its_parent_is_known_by_the_commands_group(proc):
    script = proc.add(HERE, 1, comm="sh", group=HERE, at=10)
    recorder = proc.add(HERE + 1, script, group=HERE, at=20)
    command = proc.add(HERE + 2, recorder, comm="sh", group=HERE, at=30)
    orphan = proc.add(HERE + 3, 1, group=HERE, at=40)
    its_worker = proc.add(HERE + 4, orphan, group=HERE, at=50)
    beside = proc.add(HERE + 5, script, group=HERE, at=60)  # the script's next training
    elsewhere = proc.add(HERE + 6, 1, at=70)
    owners = proc.owners(orphan, its_worker, beside, elsewhere, command=command)
    assert owners == {orphan: "trainer", its_worker: "trainer", beside: "other", elsewhere: "other"}


def test_without_a_command_the_one_training_that_can_have_made_the_run_owns_it(proc, tmp_path):
    run = tmp_path / "work/runs/detect/train"
    trainer = proc.add(HERE, 1, tmp_path / "work")
    stranger = proc.add(HERE + 1, 1, tmp_path / "other")
    assert proc.owners(trainer, stranger) == {trainer: "unknown", stranger: "unknown"}
    assert proc.owners(trainer, stranger, run=run) == {trainer: "trainer", stranger: "other"}


def test_a_project_on_the_command_line_tells_too(proc, tmp_path):
    words = ("python3", "yolo", "train", f"project={tmp_path}/runs")
    trainer = proc.add(HERE, 1, words=words)
    assert proc.owners(trainer, run=tmp_path / "runs/train") == {trainer: "trainer"}


def test_the_ranks_of_one_training_are_one_and_two_trainings_in_a_folder_are_unknown(proc, tmp_path):
    shell = proc.add(HERE, 1, comm="bash", folder=tmp_path / "work")
    launcher = proc.add(HERE + 1, shell, tmp_path / "work")
    ranks = [proc.add(HERE + n, launcher, tmp_path / "work") for n in (2, 3)]
    run = tmp_path / "work/runs/train"
    assert set(proc.owners(*ranks, run=run).values()) == {"trainer"}
    second = proc.add(HERE + 4, shell, tmp_path / "work")
    assert set(proc.owners(*ranks, second, run=run).values()) == {"unknown"}


def test_two_trainings_in_a_folder_are_unknown_on_two_gpus_too(proc, tmp_path):
    first, second = proc.add(HERE, 1, tmp_path / "work"), proc.add(HERE + 1, 1, tmp_path / "work")
    owners = Owners(proc.path)
    owners.learn(None, tmp_path / "work/runs/train")
    assert owners.of({first}, gpu=0) == {first: "trainer"}
    assert owners.of({second}, gpu=1) == {second: "unknown"}
    assert owners.of({first}, gpu=0) == {first: "unknown"}


def test_a_parent_on_the_gpu_belongs_to_its_ranks_whatever_it_is_called(proc, tmp_path):
    parent = proc.add(HERE, 1, tmp_path, comm="yolo")
    launcher = proc.add(HERE + 1, parent, tmp_path)
    rank = proc.add(HERE + 2, launcher, tmp_path)
    assert proc.owners(parent, rank, run=tmp_path / "train") == {parent: "trainer", rank: "trainer"}


def test_a_run_far_below_a_home_folder_is_not_told_by_it(proc, tmp_path):
    shell_in_home = proc.add(HERE, 1, tmp_path)
    assert proc.owners(shell_in_home, run=tmp_path / "a/b/c/d/e/f/g/train") == {shell_in_home: "unknown"}


def test_a_real_child_is_told(tmp_path):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        owners = Owners()
        owners.learn(os.getpid(), None)
        wait_for(lambda: owners.of({child.pid}) == {child.pid: "trainer"})
        assert owners.of({1}) == {1: "other"}
        child.communicate(b"\n")


def test_a_process_that_proc_hides_is_another_users_not_another_containers(proc, monkeypatch):
    def refuse(_pid, _signal):
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert proc.owners(GONE, command=HERE) == {GONE: "other"}


def test_a_parent_loop_in_a_broken_proc_ends(proc):
    proc.add(HERE, HERE + 1)
    proc.add(HERE + 1, HERE)
    assert proc.owners(HERE, command=5) == {HERE: "other"}

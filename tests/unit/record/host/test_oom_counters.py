"""What the kernel's OOM killer did, by made-up counters."""

import pytest

from gpu_report.record.clocks import Clocks
from gpu_report.record.host.oom_counters import LOOK_EVERY_S, OomWatch


class Machine:
    def __init__(self, folder):
        self.proc = folder / "proc"
        self.proc.mkdir()
        self.told = []

    def kills(self, machine=None, **groups):
        if machine is not None:
            (self.proc / "vmstat").write_text(f"pswpin 9\noom_kill {machine}\nother 1\n")
        for name, count in groups.items():
            folder = self.proc.parent / name
            folder.mkdir(exist_ok=True)
            (folder / "memory.events").write_text(f"low 0\noom 7\noom_kill {count}\noom_group_kill 5\n")

    def group(self, name):
        return self.proc.parent / name

    def emit(self, kind, at, fields):
        self.told.append((at.mono_s, kind, fields["where"], fields["count"]))


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def at(mono_s):
    return Clocks(1000 + mono_s, mono_s, mono_s)


def test_what_was_killed_before_the_recording_is_not_its_own(machine):
    machine.kills(machine=4, job=2)
    watch = OomWatch(machine.proc, machine.group("job"))
    watch.look(at(0), None, machine.emit)
    assert (machine.told, watch.kills) == ([], {"machine": 0, "cgroup": 0})
    machine.kills(machine=6, job=3)
    watch.look(at(LOOK_EVERY_S), None, machine.emit)
    assert machine.told == [(5.0, "oom_kill", "machine", 2), (5.0, "oom_kill", "cgroup", 1)]
    assert watch.kills == {"machine": 2, "cgroup": 1}


def test_between_two_looks_only_the_last_one_of_a_recording_takes_place(machine):
    machine.kills(machine=0)
    watch = OomWatch(machine.proc)
    watch.look(at(0), None, machine.emit)
    machine.kills(machine=1)
    watch.look(at(1), None, machine.emit)
    assert machine.told == []
    watch.look(at(1.05), None, machine.emit, last=True)
    assert machine.told == [(1.05, "oom_kill", "machine", 1)]


def test_the_trainers_group_is_kept_when_the_trainer_has_gone(machine):
    machine.kills(job=5, other=9)
    watch = OomWatch(machine.proc, machine.group("job"))
    watch.look(at(0), None, machine.emit)
    watch.look(at(5), machine.group("other"), machine.emit)  # another group's count is no growth
    machine.kills(other=10)
    watch.look(at(10), None, machine.emit)
    assert machine.told == [(10.0, "oom_kill", "cgroup", 1)]


def test_what_nobody_counts_is_not_known(machine):
    (machine.proc / "vmstat").write_text("oom_kill none\n")
    watch = OomWatch(machine.proc)
    watch.look(at(0), machine.group("gone"), machine.emit)
    assert (machine.told, watch.kills) == ([], {"machine": None, "cgroup": None})

"""Which programs of others used the CPU: as /proc plays it, when it is looked at, and of real processes."""

import os
import pwd
import signal
import subprocess
import time
from types import SimpleNamespace

import pytest

from gpu_report.record.clocks import Clocks
from gpu_report.record.host import other_programs
from gpu_report.record.host.other_programs import Machine, OtherPrograms
from gpu_report.record.host.process_table import family_of, read_processes, used_between
from gpu_report.record.host.user_names import UserNames
from gpu_report.without_secrets import safe_text
from tests.conftest import wait_for

MAIN, WORKER, RECORDER = 100, 101, os.getpid()
CROWDED = Machine(64, 5000.0, 400.0)


class Played:
    """A /proc of our own, with a recorder that looks at it."""

    def __init__(self, folder):
        self.folder, self.rows, self.looks, self.cost_s = folder, [], 0, 0.0
        self.affinity = {MAIN: {0, 1, 2, 3}, WORKER: {0, 1}}
        names = SimpleNamespace(of=lambda uid: {1001: "bob"}.get(uid, str(uid)))
        self.programs = OtherPrograms(self._write, folder, self._affinity, names, self._cpu_s)
        self._spent_s = 0.0
        for pid, parent in ((1, 0), (RECORDER, 1), (MAIN, RECORDER), (WORKER, MAIN)):
            self.process(pid, "python3", 0, parent=parent)

    def process(self, pid, name, own, *, parent=1, reaped=0, started=50, uid=1001):
        """Let a process have used so many ticks (10 ms)."""
        folder = self.folder / str(pid)
        folder.mkdir(exist_ok=True)
        rest = f"0 0 0 0 0 0 0 0 0 {own} 0 {reaped} 0 20 0 1 0 {started} " + "0 " * 30
        (folder / "stat").write_text(f"{pid} ({name}) S {parent} {rest}\n")
        (folder / "status").write_text(f"Name:\t{name}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")

    def end(self, pid):
        for file in (self.folder / str(pid)).iterdir():
            file.unlink()
        (self.folder / str(pid)).rmdir()

    def tick(self, second, machine=CROWDED, roots=(MAIN,)):
        """Return what was written at a tick."""
        self.rows.clear()
        self.programs.look(Clocks(1e9 + second, second, second), machine, roots, (MAIN, WORKER))
        return list(self.rows)

    def _write(self, at, values):
        self.rows.append({"at": at.mono_s, **values})

    def _affinity(self, pid):
        return self.affinity.get(pid, set(range(64)))

    def _cpu_s(self):
        self.looks += 0.5  # asked before and after each
        self._spent_s += self.cost_s
        return self._spent_s


@pytest.fixture
def played(tmp_path):
    return Played(tmp_path)


def test_programs_are_summed_by_name_and_user(played):
    for pid in range(200, 240):
        played.process(pid, "stress-ng", 100)
    played.process(300, "stress-ng", 0, uid=1002)
    played.process(400, "sshd", 5000)
    assert played.tick(10) == []  # one look says nothing
    for pid in range(200, 240):
        played.process(pid, "stress-ng", 100 + 190)
    played.process(239, "stress-ng", 100 + 200)
    played.process(300, "stress-ng", 1000, uid=1002)
    assert played.tick(11) == []
    first, second = played.tick(12)
    assert first == {
        "at": 12,
        "seconds": 2,
        "name": "stress-ng",
        "user": "bob",
        "pid": 239,
        "processes": 40,
        "cpu_pct": pytest.approx(3805),
        "on_trainer_cores_pct": 100,
    }
    assert (second["user"], second["processes"], second["cpu_pct"]) == ("1002", 1, 500)


def test_what_the_training_started_is_not_others(played):
    played.process(102, "ffmpeg", 0, parent=WORKER)
    played.process(103, "py-spy", 0, parent=RECORDER)
    played.tick(10)
    played.process(102, "ffmpeg", 4000, parent=1)  # its parent has ended: it was seen to be of the training
    played.process(104, "gzip", 4000, parent=102, started=60)
    for pid, parent in ((103, RECORDER), (MAIN, RECORDER), (WORKER, MAIN)):
        played.process(pid, "python3", 4000, parent=parent)
    assert played.tick(12) == []


def test_threads_of_the_kernel_are_no_programs(played):
    played.process(2, "kthreadd", 0, parent=0)
    (played.folder / "2" / "comm").write_text("kthreadd\n")
    (played.folder / "2" / "task" / "2").mkdir(parents=True)
    (played.folder / "2" / "task" / "2" / "children").write_text("3 4 ")
    played.process(3, "kswapd0", 0, parent=2)
    played.tick(10)
    played.process(3, "kswapd0", 4000, parent=2)
    assert played.tick(12) == []


def test_short_processes_are_their_parents(played):
    """A build starts a compiler for each file: what each used is known once it is over."""
    played.process(200, "make", 0, reaped=100)
    played.process(201, "cc1plus", 150, parent=200)
    played.tick(10)
    played.end(201)  # 60 more, then others that nobody saw
    played.process(200, "make", 10, reaped=100 + 210 + 3000)
    (row,) = played.tick(12)
    assert (row["name"], row["processes"], row["cpu_pct"]) == ("make", 1, pytest.approx((10 + 60 + 3000) / 2))


def test_what_is_reaped_at_once_is_no_more_than_others_used(played):
    """A shell ends that ran for days, and its parent reaps all that it had used."""
    played.process(200, "systemd", 0)
    played.process(201, "busy", 0)
    played.tick(10)
    played.process(200, "systemd", 0, reaped=10_000_000)
    played.process(1, "init", 0, parent=0, reaped=10_000_000)
    played.process(201, "busy", 8000)
    found = {row["name"]: row["cpu_pct"] for row in played.tick(12)}
    assert found == {"busy": 4000, "systemd": pytest.approx(46 * 2 * 100 / 2 - 4000, abs=1)}


def test_a_number_that_is_another_process_by_now_begins_anew(played):
    played.process(200, "old", 7000, started=50)
    played.tick(10)
    played.process(200, "new", 4000, started=900)
    (row,) = played.tick(12)
    assert (row["name"], row["cpu_pct"]) == ("new", 2000)


def test_a_program_that_may_not_run_on_the_cores_of_the_trainer_says_so(played):
    played.affinity |= {200: {8, 9}, 201: {3, 4}}
    played.process(200, "busy", 0), played.process(201, "busy", 0)
    played.tick(10)
    played.process(200, "busy", 3000), played.process(201, "busy", 1000)
    (row,) = played.tick(12)
    assert (row["cpu_pct"], row["on_trainer_cores_pct"]) == (2000, 25)


@pytest.mark.parametrize(
    ("machine", "roots"),
    [
        (Machine(64, 450.0, 400.0), (MAIN,)),
        (Machine(64, None, 400.0), (MAIN,)),
        (Machine(64, 5000.0, None), (MAIN,)),
        (CROWDED, ()),
        (Machine(2, 190.0, 150.0), (MAIN,)),
    ],
)
def test_nobody_looks_while_others_use_hardly_any_cpu(played, machine, roots):
    for second in range(60):
        played.tick(second, machine, roots)
    assert played.looks == 0


def test_on_two_cores_half_a_core_counts(played):
    played.tick(10, Machine(2, 190.0, 130.0))
    assert played.looks == 1


@pytest.mark.parametrize("cost_s", [0.006, 0.063, 0.5])
@pytest.mark.parametrize("is_crowded", [lambda second: True, lambda second: second % 10 < 2])
def test_looks_cost_no_more_than_their_share_of_a_core(played, cost_s, is_crowded):
    played.cost_s = cost_s
    for second in range(1000):
        played.tick(second, CROWDED if is_crowded(second) else Machine(64, 400.0, 400.0))
    assert played.looks * cost_s <= 1.05 * other_programs.COST_SHARE * 1000 + 2 * cost_s
    assert played.looks > 1


def test_a_name_may_hold_anything_but_a_secret(played):
    for number, name in enumerate(("a) S 1 (b", "\x1b[31m<b>", "token=hf_abcdefghijklmnopqrstuvwxyz0123"), 1):
        played.process(200, name, 0, started=number)
        played.tick(1000 * number)
        played.process(200, name, 6000, started=number)
        (row,) = played.tick(1000 * number + 6)
        assert row["name"] == safe_text(name)


def test_a_process_that_goes_while_it_is_looked_at_is_left_out(tmp_path):
    (tmp_path / "7").mkdir()
    (tmp_path / "8").mkdir()
    (tmp_path / "8" / "stat").write_text("8 (cut) S 1 2")
    assert read_processes(tmp_path) == {}


def test_users_have_a_name_or_a_number():
    names = UserNames()
    assert (names.of(0), names.of(4_000_000_123)) == ("root", "4000000123")


def test_nobody_waits_for_a_list_of_users_that_hangs(monkeypatch):
    monkeypatch.setattr(
        "gpu_report.record.host.user_names.pwd.getpwuid", lambda _: time.sleep(0.3) or pwd.getpwnam("root")
    )
    monkeypatch.setattr("gpu_report.record.host.user_names.WAIT_S", 0.01)
    names = UserNames()
    assert names.of(1001) == "1001"
    wait_for(lambda: names.of(1001) == "root")  # the answer came late


def test_a_real_busy_process_is_found():
    """One whose parent has ended, so that it is nobody's child here."""
    pid = int(subprocess.check_output(["sh", "-c", "while :; do :; done >/dev/null & echo $!"]))
    try:
        before = read_processes()
        wait_for(lambda: used_between(before, read_processes())[pid].own > 0)
        assert before[pid].name == "sh"
        assert pid not in family_of({os.getpid(): None}, before)
        assert {os.getpid()} <= family_of({os.getppid(): before[os.getppid()].started}, before)
        assert family_of({os.getppid(): before[os.getppid()].started + 1}, before) == set()
    finally:
        os.kill(pid, signal.SIGKILL)

import os
import subprocess
import sys
import time

import pytest
from conftest import wait_for

from gpu_report.record.host.psi_disk import PressureSampler
from gpu_report.record.host.trainer_processes import TrainerTree, read_process

DISKSTATS = """   8 0 sda 100 0 {sda} 0 0 0 0 0 0 0 0
   8 1 sda1 100 0 {sda} 0 0 0 0 0 0 0 0
 259 0 nvme0n1 5 0 {nvme} 0 0 0 0 0 0 0 0
 259 1 nvme0n1p1 5 0 {nvme} 0 0 0 0 0 0 0 0
   7 0 loop0 5 0 99999999 0 0 0 0 0 0 0 0
 253 0 dm-0 5 0 99999999 0 0 0 0 0 0 0 0
"""


@pytest.fixture
def proc(tmp_path):
    def write(cpu_us, io_us, sda, nvme, swapped=0):
        (tmp_path / "pressure").mkdir(exist_ok=True)
        (tmp_path / "pressure" / "cpu").write_text(f"some avg10=0.00 avg60=0.00 avg300=0.00 total={cpu_us}\n")
        (tmp_path / "pressure" / "io").write_text(
            f"some avg10=0.00 total={io_us}\nfull avg10=0.00 total={io_us // 2}\n"
        )
        (tmp_path / "vmstat").write_text(f"pgpgin 5\npswpin {swapped}\n")
        (tmp_path / "diskstats").write_text(DISKSTATS.format(sda=sda, nvme=nvme))
        return tmp_path

    return write


def test_totals_become_rates_of_the_time_between_two_looks(proc):
    sampler = PressureSampler(proc(0, 0, 0, 0))
    assert sampler.sample(10.0)["cpu_pressure_pct"] is None
    proc(1_000_000, 500_000, 2048 * 4, 2048 * 6, swapped=512)
    rates = sampler.sample(12.0)
    assert rates["cpu_pressure_pct"] == 50
    assert (rates["io_pressure_pct"], rates["io_full_pressure_pct"]) == (25, 12.5)
    assert rates["disk_read_mib_s"] == 5  # (4 + 6) MiB in 2 s: neither partitions nor loop devices count twice
    assert rates["swap_in_mib_s"] == pytest.approx(512 * os.sysconf("SC_PAGE_SIZE") / 2**20 / 2)
    assert rates.get("memory_pressure_pct") is None


def test_a_pressure_of_a_look_that_came_late_is_all_of_the_time(proc):
    sampler = PressureSampler(proc(0, 0, 0, 0))
    sampler.sample(10.0)
    proc(1_040_000, 0, 0, 2048 * 900)
    rates = sampler.sample(11.0)
    assert rates["cpu_pressure_pct"] == 100
    assert rates["disk_read_mib_s"] == 900  # a rate of bytes has no such end


def test_a_total_that_went_back_is_missing(proc):
    sampler = PressureSampler(proc(5_000_000, 0, 0, 0))
    sampler.sample(10.0)
    proc(1_000_000, 0, 0, 0)
    assert sampler.sample(11.0)["cpu_pressure_pct"] is None


def test_without_psi_the_columns_are_absent(tmp_path):
    assert "cpu_pressure_pct" not in PressureSampler(tmp_path).sample(1.0)


BUSY = """
import multiprocessing, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, lambda *a: sys.exit())
def burn():
    while True: pass
if __name__ == "__main__":
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    workers = [multiprocessing.get_context(how).Process(target=burn, daemon=True) for how in ("fork", "spawn")]
    [w.start() for w in workers]
    time.sleep(60)
"""


def test_workers_are_told_from_the_main_process_and_from_its_commands(tmp_path):
    (tmp_path / "busy.py").write_text(BUSY)
    trainer = subprocess.Popen([sys.executable, tmp_path / "busy.py"])
    tree = TrainerTree()

    def look(on_gpu=(trainer.pid,)):
        return tree.sample(time.monotonic(), trainer.pid, lambda: set(on_gpu))

    try:
        wait_for(lambda: look().get("workers") == 2)
        time.sleep(1)
        columns = look()
        assert columns["workers_cpu_pct"] > 20
        assert columns["main_cpu_pct"] < columns["workers_cpu_pct"]
        assert tree.busy_cores
        assert tree.busy_cores <= os.sched_getaffinity(0)  # those of the two that burn
        tree._due_s = 0.0
        assert look(on_gpu=())["workers"] > 2  # the command may be a shell around the trainer
    finally:
        trainer.terminate()
        trainer.wait()


def write_stat(folder, pid, state="R", used="0 0 0 0 0 0", started=0, pages=0):
    before, after = " ".join(["0"] * 8), " ".join(["0"] * 4)
    (folder / "stat").write_text(f"{pid} (py (x) 1) {state} {before} {used} {after} {started} 0 {pages}\n")


def test_who_outlives_a_command_is_known_by_when_it_began(tmp_path):
    folders = {pid: tmp_path / str(pid) for pid in (20, 21, 22, 23)}
    for pid, folder in folders.items():
        folder.mkdir()
        write_stat(folder, pid, started=100 + pid)
    tree = TrainerTree(tmp_path)
    tree._mains, tree._workers = frozenset({20, 21}), frozenset({22, 23})
    tree._remember()
    tree._mains, tree._workers = frozenset(), frozenset()
    write_stat(folders[21], 21, started=999)  # its number is another process's by now
    write_stat(folders[22], 22, state="Z", started=122)  # it has ended, and nobody asked how
    (folders[23] / "stat").unlink()
    tree._remember()
    assert tree.still_running() == {20}


def test_rates_are_percent_of_one_core(tmp_path):
    def process(pid, ticks, state="R", read=0, programs=0, faults=0):
        folder = tmp_path / str(pid)
        (folder / "task" / str(pid)).mkdir(parents=True, exist_ok=True)
        write_stat(folder, pid, state, f"{faults} 0 {ticks} 0 {programs} 0")
        (folder / "io").write_text(f"rchar: 1\nread_bytes: {read}\n")

    per_s = os.sysconf("SC_CLK_TCK")
    process(10, 0)
    affinity = {10: range(16), 12: range(4)}
    tree = TrainerTree(tmp_path, lambda pid: affinity[pid] if pid in affinity else os.sched_getaffinity(2**22 + 1))
    tree._mains, tree._workers, tree._due_s = frozenset({10}), frozenset({11, 12}), 1e9
    process(11, 0)
    process(12, 0)
    assert tree.sample(100.0, 10, set)["main_cpu_pct"] is None
    process(10, per_s // 2)
    process(11, 2 * per_s, read=4 * 2**20)
    process(12, per_s, state="D")
    columns = tree.sample(102.0, 10, set)
    assert (columns["main_cpu_pct"], columns["busiest_worker_cpu_pct"], columns["workers_cpu_pct"]) == (25, 100, 150)
    assert (columns["workers"], columns["workers_blocked"], columns["trainer_read_mib_s"]) == (2, 1, 2)
    assert (columns["main_cores"], columns["worker_cores"]) == (16, 4)
    assert columns["workers_major_faults"] == 0
    process(10, per_s // 2, programs=9 * per_s, faults=400)  # workers of an epoch before, which it waited for
    process(11, 2 * per_s, programs=per_s, faults=30)
    process(12, per_s, programs=3600 * per_s, faults=10)  # an hour of a program that is over now
    columns = tree.sample(104.0, 10, set)
    assert (columns["main_cpu_pct"], columns["busiest_worker_cpu_pct"], columns["workers_cpu_pct"]) == (0, 100, 150)
    assert columns["workers_major_faults"] == 20


def test_memory_is_that_of_the_trainer_and_its_workers(tmp_path):
    for pid in (10, 11):
        (tmp_path / str(pid)).mkdir()
        write_stat(tmp_path / str(pid), pid, pages=pid * 2**20 // os.sysconf("SC_PAGE_SIZE"))
    tree = TrainerTree(tmp_path)
    tree._mains, tree._workers, tree._due_s = frozenset({10}), frozenset({11}), 1e9
    assert tree.sample(100.0, 10, set)["trainer_memory_mib"] == 21
    mine = TrainerTree()
    mine._mains, mine._due_s = frozenset({os.getpid()}), 1e9
    assert 10 < mine.sample(time.monotonic(), None, set)["trainer_memory_mib"] < 100_000


def test_the_cpu_of_a_program_that_a_worker_ran_is_the_workers(tmp_path):
    burn = "import time\nwhile time.process_time() < 0.5: pass"
    runs = f"import subprocess, sys\nwhile True: subprocess.run([sys.executable, '-S', '-c', {burn!r}])"
    worker = subprocess.Popen([sys.executable, "-c", runs])
    tree = TrainerTree()
    tree._mains, tree._workers, tree._due_s = frozenset({os.getpid()}), frozenset({worker.pid}), 1e9
    try:
        tree.sample(time.monotonic(), None, set)
        time.sleep(3)
        assert tree.sample(time.monotonic(), None, set)["workers_cpu_pct"] > 30
    finally:
        worker.kill()
        worker.wait()


def test_a_process_that_is_gone_is_no_error():
    assert read_process(TrainerTree()._proc, 2**22 + 1) is None

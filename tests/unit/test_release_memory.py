import ctypes
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gpu_report.release_memory import give_back_memory, keep_one_heap

ASKED = {"NUMPY_MADVISE_HUGEPAGE", "OPENBLAS_NUM_THREADS"}  # of numpy, by keep_one_heap


def resident_mb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def test_what_was_freed_is_given_back():
    held = [np.ones(12_000) for _ in range(2_000)]  # 192 MB in pieces that come from the heap
    kept = held[::20]
    del held
    before = resident_mb()
    give_back_memory()
    assert resident_mb() < before - 100
    assert all(piece[0] == 1 for piece in kept)


def test_threads_share_one_heap():
    held = """
import threading
from gpu_report.release_memory import keep_one_heap
if {one}:
    keep_one_heap()
together = threading.Barrier(4)  # all at once: a thread that has ended leaves its heap to the next
def use():
    together.wait()
    held = [bytearray(1000) for _ in range(1000)]
    together.wait()
threads = [threading.Thread(target=use) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(sum("[heap]" not in line and " rw-p " in line and int(line.split("-")[0], 16) % 2**26 == 0
          for line in open("/proc/self/maps")))
"""
    heaps = [
        int(subprocess.run([sys.executable, "-c", held.format(one=one)], capture_output=True, check=True).stdout)
        for one in (False, True)
    ]
    assert heaps[0] >= heaps[1] + 2  # numpy may have had one of its own before


def test_a_large_array_leaves_its_room_to_the_next_until_it_is_given_back():
    held = """
from pathlib import Path
from gpu_report.release_memory import give_back_memory, keep_one_heap
def resident_mb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6
keep_one_heap()
before = resident_mb()
array = bytearray(b"1") * 200_000_000
del array
kept = resident_mb()
give_back_memory()
print(kept - before, resident_mb() - before)
"""
    said = subprocess.run([sys.executable, "-c", held], capture_output=True, check=True).stdout
    kept_mb, rest_mb = map(float, said.split())
    assert kept_mb > 190
    assert rest_mb < 10


@pytest.mark.parametrize("words", [("render", "report.html"), ("summary",), ("check",), ("compare", "samples.csv")])
def test_no_large_pages_and_threads_are_asked_for_before_numpy_is_imported(words, tmp_path):
    (tmp_path / "samples.csv").write_text("wall_s,gpu,gpu_util_pct\n1795000000,0,50\n1795000001,0,50\n")
    looked = """
import os, sys
class Look:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            print("pages", os.environ.get("NUMPY_MADVISE_HUGEPAGE"), os.environ.get("OPENBLAS_NUM_THREADS"))
sys.meta_path.insert(0, Look())
from gpu_report.cli import main
main()
"""
    env = {name: value for name, value in os.environ.items() if name not in ASKED}
    command = [sys.executable, "-c", looked, *words, "samples.csv"]
    said = subprocess.run(command, capture_output=True, check=False, env=env, text=True, cwd=tmp_path).stdout
    assert said.splitlines()[0] == "pages 0 1"


def test_numpy_begins_no_threads_in_a_process_of_our_own():
    began = """
from pathlib import Path
from gpu_report.release_memory import keep_one_heap
keep_one_heap()
import numpy
print(len(list(Path("/proc/self/task").iterdir())))
"""
    env = {name: value for name, value in os.environ.items() if name not in ASKED}
    assert int(subprocess.run([sys.executable, "-c", began], capture_output=True, check=True, env=env).stdout) == 1


@pytest.mark.parametrize("error", [OSError, AttributeError, TypeError])
def test_a_c_library_that_cannot_is_not_asked(error, monkeypatch):
    def refuse(name):
        raise error

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    give_back_memory()
    keep_one_heap()

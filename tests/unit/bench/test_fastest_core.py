"""Which core serves a GPU, and what is said of the host."""

import os
import sys
import types

import pytest

from gpu_report.bench import fastest_core as module
from gpu_report.bench.fastest_core import LAUNCHES, LOOPS, MOST_CORES, Cores


class Machine:
    """Cores of which each has a speed, with this thread on one of them; torch counts its operations."""

    def __init__(self, loops_ms):
        self.loops_ms, self.allowed, self.operations, self.waits = loops_ms, set(loops_ms), 0, 0
        self.gone = set()

    def sched_getaffinity(self, who):
        return set(self.allowed)

    def sched_setaffinity(self, who, cores):
        assert who == 0  # this thread, no other
        if cores <= self.gone:
            raise OSError(22, "Invalid argument")
        self.allowed = set(cores)

    def zeros(self, count, device):
        def add(one):
            self.operations += 1

        return types.SimpleNamespace(add=add)

    def perf_counter(self):
        """Return a clock that goes on by each operation, at the speed of the core."""
        self.now_s += self.operations / LAUNCHES * self.loops_ms[min(self.allowed)] / 1000
        self.operations = 0
        return self.now_s

    now_s = 0.0


@pytest.fixture
def machine(monkeypatch):
    """Put such a machine into the place of this one."""

    def put(loops_ms):
        made = Machine(loops_ms)
        torch = types.ModuleType("torch")
        torch.zeros = made.zeros

        def synchronize(gpu):
            made.waits += 1

        torch.cuda = types.SimpleNamespace(synchronize=synchronize)
        monkeypatch.setitem(sys.modules, "torch", torch)
        monkeypatch.setattr(module.os, "sched_getaffinity", made.sched_getaffinity)
        monkeypatch.setattr(module.os, "sched_setaffinity", made.sched_setaffinity)
        monkeypatch.setattr(module.time, "perf_counter", made.perf_counter)
        return made

    return put


def test_a_gpu_is_served_by_the_core_that_is_the_fastest_now(machine):
    made = machine({3: 0.6, 4: 0.5, 5: 0.8})
    cores = Cores(0)
    with cores.fastest() as place:
        assert made.allowed == {4}
    assert made.allowed == {3, 4, 5}
    assert place == {"core": 4, "loop_ms": pytest.approx(0.5), "typical_loop_ms": pytest.approx(0.6)}
    assert made.waits >= 3 * LOOPS
    made.loops_ms[4] = 0.9
    with cores.fastest() as place:
        assert made.allowed == {3}


def test_the_thread_gets_its_cores_back_after_a_failure(machine):
    made = machine({0: 0.5, 1: 0.6})
    with pytest.raises(RuntimeError), Cores(0).fastest():
        raise RuntimeError
    assert made.allowed == {0, 1}


@pytest.mark.parametrize(("gone", "core"), [({0}, 1), ({0, 1}, None)])
def test_a_core_that_may_not_be_used_is_left_out(machine, gone, core):
    made = machine({0: 0.5, 1: 0.6})
    made.gone = gone
    with Cores(0).fastest() as place:
        assert place.get("core") == core
    assert place["loop_ms"] == pytest.approx(0.6 if core else 0.5)


def test_of_many_cores_some_are_tried_all_over_them(machine):
    machine({core: 1.0 - core / 1000 for core in range(100)})
    assert Cores(0)._tried() == list(range(0, 100, 7))
    assert len(Cores(0)._tried()) <= MOST_CORES
    with Cores(0).fastest() as place:
        assert place["core"] == 98


def test_a_model_on_the_cpu_keeps_all_cores_and_nothing_waits_for_a_gpu(machine):
    made = machine({0: 0.5, 1: 0.6})
    with Cores(None).fastest() as place:
        assert made.allowed == {0, 1}
    assert place == {"loop_ms": pytest.approx(0.5)}
    assert made.waits == 0


def test_the_loop_runs_on_this_machine_as_it_is():
    pytest.importorskip("torch")
    before = os.sched_getaffinity(0)
    assert Cores(None).loop_ms() > 0
    assert os.sched_getaffinity(0) == before


def test_how_long_a_thread_waited_for_a_core_is_the_kernels_own_count(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SCHEDSTAT", tmp_path / "schedstat")
    assert module.waited_s() is None
    (tmp_path / "schedstat").write_text("83000000 1500000000 12\n")
    assert module.waited_s() == 1.5
    (tmp_path / "schedstat").write_text("")
    assert module.waited_s() is None

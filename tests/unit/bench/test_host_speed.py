"""What a benchmark says of the host: its loop, and the wait for a core."""

import sys
import types

import pytest

from gpu_report.bench import host_speed as module
from gpu_report.bench.host_speed import LAUNCHES, LOOPS, loop_ms, waited_s


class Torch(types.ModuleType):
    """A torch whose operations take a time each; the first loop has cold caches."""

    def __init__(self):
        super().__init__("torch")
        self.now_s, self.operations, self.waits, self.device = 0.0, 0, 0, None
        self.cuda = types.SimpleNamespace(synchronize=self._synchronize)

    def zeros(self, count, device):
        self.device = device
        return types.SimpleNamespace(add=self._add)

    def _add(self, one):
        self.now_s += (2e-5 if self.operations < LAUNCHES else 5e-6) * one
        self.operations += 1

    def _synchronize(self, gpu):
        self.waits += 1
        self.now_s += 1e-4


@pytest.fixture
def torch(monkeypatch):
    """Put such a torch, and its clock, into the place of the real ones."""
    made = Torch()
    monkeypatch.setitem(sys.modules, "torch", made)
    monkeypatch.setattr(module.time, "perf_counter", lambda: made.now_s)
    return made


def test_the_loop_on_a_gpu_ends_when_the_gpu_has_done_it(torch):
    assert loop_ms(1) == pytest.approx(0.6)
    assert (torch.device, torch.waits, torch.operations) == ("cuda:1", LOOPS, LOOPS * LAUNCHES)


def test_a_model_on_the_cpu_waits_for_no_gpu(torch):
    assert loop_ms(None) == pytest.approx(0.5)
    assert (torch.device, torch.waits) == ("cpu", 0)


def test_the_loop_runs_on_this_machine_as_it_is():
    pytest.importorskip("torch")
    assert loop_ms(None) > 0


def test_how_long_a_thread_waited_for_a_core_is_the_kernels_own_count(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SCHEDSTAT", tmp_path / "schedstat")
    assert waited_s() is None
    (tmp_path / "schedstat").write_text("83000000 1500000000 12\n")
    assert waited_s() == 1.5
    (tmp_path / "schedstat").write_text("")
    assert waited_s() is None

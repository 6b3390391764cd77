"""What slows a whole process is looked at beside its stacks, and the line that set it found once."""

import json
import sys
import time
from types import SimpleNamespace as Some

import pytest

from gpu_report.inside.on_path.gpu_report_inside import notes, process_modes
from gpu_report.inside.on_path.gpu_report_inside.process_modes import ProcessModes
from tests.conftest import wait_for

PLACE = {"name": "cudnn_benchmark", "file": "/a/embed.py", "line": 21}


@pytest.fixture
def cudnn(monkeypatch):
    module = Some(enabled=True, benchmark=False)
    monkeypatch.setitem(sys.modules, "torch.backends.cudnn", module)
    return module


def test_where_it_was_set_is_looked_for_once_and_only_if_it_stays_on(cudnn, monkeypatch):
    asked = []
    monkeypatch.setattr(process_modes.setting_locations, "found", lambda names: asked.append(names) or [PLACE])
    modes = ProcessModes()
    assert modes.now() == {}
    cudnn.benchmark = True
    assert modes.now() == {"slow_modes": ["cudnn_benchmark"]}
    assert not asked
    modes.now()
    wait_for(lambda: "set_in" in modes.now())
    assert modes.now() == {"slow_modes": ["cudnn_benchmark"], "set_in": [PLACE]}
    assert asked == [["cudnn_benchmark"]]


def test_a_look_costs_next_to_nothing(cudnn):
    modes = ProcessModes()
    modes.now()
    began_s = time.perf_counter()
    for _ in range(100):
        modes.now()
    assert time.perf_counter() - began_s < 0.1  # a millisecond each; it took 10 us, every two seconds


def test_a_block_has_it_beside_its_notes():
    block = notes.Notes(0.05)
    block.note(0, 1.0)
    line = json.loads(block.block("main", 2.0, slow_modes=["cudnn_off"]))
    assert (line["slow_modes"], line["role"]) == (["cudnn_off"], "main")

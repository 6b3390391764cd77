"""What is read from a GPU at a tick, call by call, with NVML played."""

from types import SimpleNamespace

import pynvml
import pytest

from gpu_report import schema
from gpu_report.record.gpu import nvml_quantities
from gpu_report.record.gpu.gpm import METRICS
from gpu_report.record.gpu.nvml_quantities import NVML_CALLS, Change, DeviceReader, NvmlCall
from gpu_report.render.quantity_labels import LANES


@pytest.fixture
def played(monkeypatch):
    """Return a reader of one column that is played: `error` is what its call answers, `asked` how often it was made."""
    state = SimpleNamespace(error=None, asked=0)

    def read(_handle):
        state.asked += 1
        if state.error is not None:
            raise pynvml.NVMLError(state.error)
        return {"power_w": 42.0}

    monkeypatch.setattr(nvml_quantities, "NVML_CALLS", (NvmlCall(("power_w",), read),))
    monkeypatch.setattr(nvml_quantities, "Gpm", lambda _mig: SimpleNamespace(metrics=(), read=lambda _handle: {}))
    state.reader = DeviceReader(0, None)
    return state


def test_a_call_is_made_at_each_tick(played):
    assert [played.reader.read(t_s) for t_s in (0.0, 1.0)] == [({"power_w": 42.0}, [])] * 2


def test_what_a_board_does_not_have_is_said_once_and_asked_no_more(played):
    played.error = pynvml.NVML_ERROR_NOT_SUPPORTED
    assert played.reader.read(0.0) == ({}, [Change(0, "power_w", "Not Supported")])
    assert played.reader.read(1.0) == ({}, [])
    assert played.asked == 1


def test_what_fails_for_a_while_is_asked_again_and_said_to_be_back(played):
    played.error = pynvml.NVML_ERROR_UNKNOWN
    assert [change.reason for change in played.reader.read(0.0)[1]] == ["Unknown Error"]
    played.error = None
    assert played.reader.read(1.0) == ({"power_w": 42.0}, [Change(0, "power_w", None)])


def test_each_column_of_a_gpu_is_filled_by_one_call():
    filled = [name for call in NVML_CALLS for name in call.columns] + list(METRICS)
    assert sorted(filled) == sorted(column.name for column in schema.GPU_QUANTITIES)


def test_a_column_that_is_read_seldom_has_no_lane():
    seldom = {name for call in NVML_CALLS if call.every_s for name in call.columns}
    assert not seldom & {name for lane in LANES if lane.kind == "gpu" for name in lane.drawn}  # points without a line

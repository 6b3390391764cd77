from types import SimpleNamespace

import pynvml
import pytest

from gpu_report import schema
from gpu_report.record.gpu.health import read_health

LOST, NOT_SUPPORTED = pynvml.NVML_ERROR_GPU_IS_LOST, pynvml.NVML_ERROR_NOT_SUPPORTED


@pytest.fixture
def driver(monkeypatch):
    """A driver whose calls answer from `fields`, `rows`, `ecc` and `replays`, each a value or an error's code."""
    state = SimpleNamespace(fields={230: 0}, rows=(1, 2, 1, 0), ecc=3, replays=4, calls=0)

    def tell(value):
        state.calls += 1
        if isinstance(value, dict) and "error" in value:
            raise pynvml.NVMLError(value["error"])
        return value

    def fields(_handle, numbers):
        told = tell(state.fields)
        return [
            SimpleNamespace(
                fieldId=number,
                nvmlReturn=0 if number in told else NOT_SUPPORTED,
                valueType=1,
                value=SimpleNamespace(uiVal=told.get(number, 0)),
            )
            for number in numbers
        ]

    monkeypatch.setattr(pynvml, "nvmlDeviceGetFieldValues", fields)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetRemappedRows", lambda _handle: tell(state.rows))
    monkeypatch.setattr(pynvml, "nvmlDeviceGetTotalEccErrors", lambda _handle, _kind, _counter: tell(state.ecc))
    monkeypatch.setattr(pynvml, "nvmlDeviceGetPcieReplayCounter", lambda _handle: tell(state.replays))
    return state


def known(handle=None):
    return {name: value for name, value in read_health(handle).items() if value is not None}


def test_every_name_of_the_schema_is_there(driver):
    assert list(read_health(None)) == [column.name for column in schema.GPU_HEALTH]
    assert known() == {
        "recovery_action": "none",
        "ecc_volatile_corrected": 3,
        "ecc_volatile_uncorrected": 3,
        "ecc_aggregate_corrected": 3,
        "ecc_aggregate_uncorrected": 3,
        "remapped_rows_correctable": 1,
        "remapped_rows_uncorrectable": 2,
        "row_remap_pending": 1,
        "row_remap_failed": 0,
        "pcie_replays": 4,
    }


def test_an_older_board_has_retired_pages_instead(driver):
    driver.rows = {"error": NOT_SUPPORTED}
    driver.fields = {29: 5, 30: 1, 31: 0}
    assert {name: value for name, value in known().items() if name.startswith(("re", "row"))} == {
        "retired_pages_corrected": 5,
        "retired_pages_uncorrected": 1,
        "retired_pages_pending": 0,
    }


def test_what_a_board_lacks_is_none_and_the_rest_is_read(driver):
    driver.ecc = {"error": NOT_SUPPORTED}
    driver.fields = {"error": pynvml.NVML_ERROR_FUNCTION_NOT_FOUND}
    assert set(known()) == {
        "remapped_rows_correctable",
        "remapped_rows_uncorrectable",
        "row_remap_pending",
        "row_remap_failed",
        "pcie_replays",
    }


def test_a_lost_gpu_is_asked_once(driver):
    driver.fields = {"error": LOST}
    assert known() == {}
    assert driver.calls == 1


def test_an_action_that_is_newer_than_we_are_is_a_number(driver):
    driver.fields = {230: 12}
    assert known()["recovery_action"] == "action 12"

from types import SimpleNamespace

import pynvml
import pytest

from gpu_report.record.gpu.process_utilisation import ALONE_EVERY_S, ProcessUtilisation


@pytest.fixture
def driver(monkeypatch):
    """A driver that answers from `samples` (pid, stamp in us, SM %), or with the error `code`."""
    state = SimpleNamespace(samples=[], code=None, asked=[])

    def answer(_handle, last_us):
        state.asked.append(last_us)
        if state.code is not None:
            raise pynvml.NVMLError(state.code)
        return [SimpleNamespace(pid=pid, timeStamp=stamp, smUtil=used) for pid, stamp, used in state.samples]

    monkeypatch.setattr(pynvml, "nvmlDeviceGetProcessUtilization", answer)
    return state


def test_the_first_look_only_says_from_when_on_to_count(driver):
    utilisation = ProcessUtilisation()
    driver.samples = [(7, 100, 90)]
    assert utilisation.read(None, [7, 8], 0.0) == {}
    driver.samples = [(7, 200, 24)]
    assert utilisation.read(None, [7, 8], 5.0) == {7: 24, 8: 0}  # what ran nothing is not listed
    assert driver.asked == [0, 100]


def test_old_stamps_and_impossible_shares_do_not_count(driver):
    utilisation = ProcessUtilisation(last_us=1000)
    driver.samples = [(7, 900, 80), (7, 1200, 40), (7, 1300, 20), (7, 1400, 4294967295), (8, 1100, 250)]
    assert utilisation.read(None, [7, 8], 5.0) == {7: 30, 8: 0}
    assert utilisation.last_us == 1400


def test_a_process_that_is_alone_is_read_seldom(driver):
    utilisation = ProcessUtilisation(last_us=1)
    driver.samples = [(7, 200, 24)]
    for at in range(0, 61, 5):
        utilisation.read(None, [7], float(at))
    assert len(driver.asked) == 1 + 60 // ALONE_EVERY_S
    utilisation.read(None, [7, 8], 61.0)
    assert len(driver.asked) == 2 + 60 // ALONE_EVERY_S


def test_an_idle_gpu_is_not_asked(driver):
    ProcessUtilisation().read(None, [], 0.0)
    assert driver.asked == []


@pytest.mark.parametrize("code", [pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_SUCCESS])
def test_nothing_ran_is_zero_once_the_driver_has_told_anything(driver, code):
    driver.code = code
    assert ProcessUtilisation().read(None, [7], 0.0) == {}
    assert ProcessUtilisation(last_us=1).read(None, [7], 0.0) == {7: 0}


@pytest.mark.parametrize(("code", "asked"), [(pynvml.NVML_ERROR_NOT_SUPPORTED, 1), (pynvml.NVML_ERROR_UNKNOWN, 2)])
def test_only_an_error_that_cannot_pass_ends_the_asking(driver, code, asked):
    utilisation = ProcessUtilisation(last_us=1)
    driver.code = code
    with pytest.raises(pynvml.NVMLError):
        utilisation.read(None, [7, 8], 0.0)
    driver.code = None
    driver.samples = [(7, 9, 50)]
    assert utilisation.read(None, [7, 8], 5.0) == ({} if asked == 1 else {7: 50, 8: 0})
    assert len(driver.asked) == asked

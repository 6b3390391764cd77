import pandas as pd
import pytest

from gpu_report.load.run_info import gpus, recording

NO_SAMPLES = pd.DataFrame({"gpu": [], "t_s": []})


def test_the_health_of_a_gpu_is_what_was_known_of_it():
    start = {"recovery_action": "none", "pcie_replays": 12, "ecc_volatile_corrected": None, "of the future": 1}
    (gpu,) = gpus({"gpus": [{"index": 0, "health_start": start, "health_end": None}]}, NO_SAMPLES)
    assert gpu.health_start == {"recovery_action": "none", "pcie_replays": 12}
    assert gpu.health_end is None


@pytest.mark.parametrize("nonsense", ["x", 3, [], {"pcie_replays": -1}, {"pcie_replays": "9"}, {"recovery_action": []}])
def test_nonsense_is_unknown(nonsense):
    (gpu,) = gpus({"gpus": [{"index": 0, "health_start": nonsense}]}, NO_SAMPLES)
    assert not gpu.health_start


@pytest.mark.parametrize(("told", "known"), [("0,1", "0,1"), ("", ""), (None, None), (3, None), (["0"], None)])
def test_the_devices_that_a_command_was_given_are_a_text_or_unknown(told, known):
    assert recording({"cuda_visible_devices": told}, NO_SAMPLES).cuda_visible_devices == known
    assert recording({}, NO_SAMPLES).cuda_visible_devices is None

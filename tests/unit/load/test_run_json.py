import pandas as pd
import pytest

from gpu_report.load.run_json import gpus, recording
from gpu_report.model import Mount

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


@pytest.mark.parametrize(("job", "known"), [("123", "123"), (123, None), ("12;rm", None), ("", None), ("9" * 21, None)])
def test_a_slurm_job_is_a_number_or_unknown(job, known):
    assert recording({"slurm_job_id": job}, NO_SAMPLES).slurm_job_id == known


def told(**info):
    return recording(info, pd.DataFrame({"gpu": [], "t_s": []}))


def test_what_the_machine_has_and_what_of_it_may_be_used():
    mount = {"point": "/data", "type": "nfs4", "source": "s:/x", "device": None, "rotational": None, "free_mib": None}
    host = {"cores": 16, "cores_online": 64, "cpu_limit": 4.0, "shm_total_mib": 64, "memory_limit_mib": 8192}
    seen = told(host={**host, "mounts": [mount]}, cuda_visible_devices="", oom_kills={"machine": 1, "cgroup": None})
    assert (seen.cores, seen.cores_online, seen.cpu_limit, seen.usable_cores) == (16, 64, 4.0, 4.0)
    assert (seen.shm_total_mib, seen.memory_limit_mib) == (64, 8192)
    assert seen.mounts == (Mount("/data", "nfs4", "s:/x"),)
    assert (seen.cuda_visible_devices, seen.oom_kills) == ("", {"machine": 1})


def test_a_recording_that_does_not_say_knows_nothing():
    old = told(host={"cores": 16})
    assert (old.usable_cores, old.cpu_limit, old.shm_total_mib, old.mounts, old.oom_kills) == (16, None, None, (), {})
    assert old.cuda_visible_devices is None
    assert told().usable_cores is None


@pytest.mark.parametrize("nonsense", ["x", 3, [3], [{"point": "/"}], [{"point": "/", "type": "ext4"}, {}]])
def test_a_garbled_list_of_filesystems_is_none_at_all(nonsense):
    assert told(host={"mounts": nonsense}).mounts == ()


def test_a_limit_of_nothing_is_none():
    assert told(host={"cores": 4, "cpu_limit": 0}).usable_cores == 4

"""How many GPUs torch sees, by what CUDA_VISIBLE_DEVICES says and by what is known where it says nothing."""

import dataclasses

import pytest
from support.runs import make_run

from gpu_report.analyse.timeline.device_argument import visible_devices, visible_gpus
from gpu_report.model import Gpu


@pytest.mark.parametrize(
    ("named", "devices"),
    [
        ("0", ["0"]),
        ("0,1", ["0", "1"]),
        (" 3 , 2 ", ["3", "2"]),
        ("", []),
        (" ", []),
        ("-1", []),
        ("0,-1,1", ["0"]),  # what follows the first that is none is hidden
        ("0,x,1", ["0"]),
        ("0,,1", ["0"]),
        ("1gpu,2", ["1", "2"]),  # digits are read as far as they go
        ("01,2", ["1", "2"]),
        ("0,0", []),  # one that comes twice hides all
        ("0,00", []),
        ("NoDevFiles", []),  # what Slurm and others set for none
        ("GPU-8f6e1a2b,GPU-77aa", ["GPU-8f6e1a2b", "GPU-77aa"]),
        ("GPU-8f6e1a2b,GPU-8f6e1a2b", []),
        ("GPU-8f6e1a2b,1", ["GPU-8f6e1a2b"]),
        ("0,GPU-8f6e1a2b", ["0"]),
        ("MIG-1111", ["MIG-1111"]),
        ("MIG-1111,MIG-2222", ["MIG-1111"]),  # a process gets one MIG device only
        ("MIG-GPU-8f6e/1/0", ["MIG-GPU-8f6e/1/0"]),
        ("MIG-1111,MIG-1111", []),
    ],
)
def test_what_cuda_visible_devices_leaves(named, devices):
    assert visible_devices(named) == devices
    run = make_run([[50.0] * 10] * 4)
    given = dataclasses.replace(run, recording=dataclasses.replace(run.recording, cuda_visible_devices=named))
    assert visible_gpus(given) == len(devices)


@pytest.mark.parametrize(
    ("gpus", "devices", "count"),
    [
        ([0, 1], [], 2),
        ([0], [], 1),
        ([3], [], 4),
        ([0], ["0,5"], 6),
        ([0], [[1, 2]], 3),
        ([0], ["cuda:3"], 4),
        ([0], ["-1,-1", "cpu", None, ""], 1),
        ([], [], 1),
    ],
)
def test_without_it_there_are_as_many_as_are_known(gpus, devices, count):
    run = dataclasses.replace(make_run([50.0] * 10), gpus=tuple(Gpu(index) for index in gpus))
    assert visible_gpus(run, *devices) == count


def test_mig_devices_are_no_gpus_of_their_own():
    gpus = (Gpu(0), *(Gpu(1000 + n, parent_index=0, mig_index=n) for n in range(3)))
    assert visible_gpus(dataclasses.replace(make_run([50.0] * 10), gpus=gpus)) == 1

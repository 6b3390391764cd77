"""Which devices are chosen by what the user calls them."""

import pytest

from gpu_report.errors import UsageError
from gpu_report.record.gpu.devices import NvmlDevice, boards, choose
from gpu_report.record.gpu.mig import MigPlace


def gpu(index, *, divided=False):
    return NvmlDevice(index, f"handle {index}", {"name": "H200", "uuid": f"GPU-{index}aaa"}, divided=divided)


def mig(parent, slot):
    place = MigPlace(parent, slot, f"handle {parent}", 7 + slot)
    return NvmlDevice(place.index, "a handle", {"name": "H200 MIG", "uuid": f"MIG-{parent}{slot}bb"}, place)


ALL = (gpu(0), gpu(3, divided=True), mig(3, 0), mig(3, 1))


@pytest.mark.parametrize(
    ("words", "indexes"),
    [
        ((), [0, 3, 4000, 4001]),
        (("0",), [0]),
        (("3",), [3, 4000, 4001]),
        (("GPU-3",), [3, 4000, 4001]),
        (("MIG-31",), [4001]),
        (("3:0",), [4000]),
        (("4001", "0"), [0, 4001]),
    ],
)
def test_a_gpu_brings_its_mig_devices_and_a_mig_device_comes_alone(words, indexes):
    assert [device.index for device in choose(ALL, words, {})] == indexes


@pytest.mark.parametrize("word", ["1", "3:2", "MIG-", "GPU-9", ""])
def test_what_is_not_there_or_not_one_is_refused_with_what_is(word):
    with pytest.raises(UsageError, match=r"3:1 \(H200 MIG, MIG-31bb\)"):
        choose(ALL, (word,), {})


def test_events_are_registered_once_for_each_board():
    assert boards(ALL[2:]) == ((3, "handle 3"),)
    assert boards(ALL) == ((0, "handle 0"), (3, "handle 3"))

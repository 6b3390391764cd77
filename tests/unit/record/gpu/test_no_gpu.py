"""Why there is no GPU, told apart on made-up roots that hold only the signs."""

import pynvml
import pytest

from gpu_report.record.gpu.no_gpu import explain

MISSING = pynvml.NVML_ERROR_LIBRARY_NOT_FOUND


def root(tmp_path, *signs, **files):
    for sign in signs:
        path = tmp_path / sign
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    for name, text in files.items():
        path = tmp_path / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def gpu_on_the_bus(tmp_path, **more):
    device = "sys__bus__pci__devices__0"
    return root(tmp_path, **{f"{device}__vendor": "0x10de\n", f"{device}__class": "0x030200\n"}, **more)


def test_a_machine_without_a_gpu(tmp_path):
    assert "no NVIDIA GPU" in explain(MISSING, root=tmp_path).reason


def test_a_gpu_without_its_driver(tmp_path):
    assert "install the NVIDIA driver" in explain(MISSING, root=gpu_on_the_bus(tmp_path)).advice


def test_a_device_of_nvidia_that_is_no_gpu_does_not_count(tmp_path):
    here = gpu_on_the_bus(tmp_path)
    (here / "sys/bus/pci/devices/0/class").write_text("0x020000\n")  # a network card, since Mellanox
    assert "no NVIDIA GPU" in explain(MISSING, root=here).reason


@pytest.mark.parametrize("sign", [".dockerenv", "run/.containerenv"])
def test_a_container_without_a_gpu(tmp_path, sign):
    for code in (MISSING, pynvml.NVML_ERROR_DRIVER_NOT_LOADED):
        assert "--gpus all" in explain(code, root=root(tmp_path, sign)).advice


def test_a_pod(tmp_path):
    assert "container" in explain(MISSING, root=root(tmp_path, proc__1__cgroup="0::/kubepods/burstable/x\n")).reason


def test_windows_subsystem_for_linux(tmp_path):
    assert "WSL" in explain(MISSING, root=root(tmp_path, proc__version="Linux 5.15-microsoft-standard-WSL2")).reason


def test_a_container_that_lost_its_gpu_is_told_from_an_unknown_error(tmp_path):
    unknown = pynvml.NVML_ERROR_UNKNOWN
    assert "nvidia-smi" in explain(unknown, pynvml.NVMLError(unknown), root=tmp_path).advice
    assert "restart the container" in explain(unknown, root=root(tmp_path, ".dockerenv")).advice


@pytest.mark.parametrize(
    ("code", "word"),
    [
        (pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH, "reboot"),
        (pynvml.NVML_ERROR_NO_PERMISSION, "/dev/nvidia"),
        (pynvml.NVML_ERROR_NOT_FOUND, "lspci"),
        (pynvml.NVML_ERROR_DRIVER_NOT_LOADED, "modprobe"),
    ],
)
def test_each_known_code_has_its_way_out(tmp_path, code, word):
    assert word in explain(code, pynvml.NVMLError(code), root=tmp_path).advice

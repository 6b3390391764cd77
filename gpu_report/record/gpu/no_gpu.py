"""Why no GPU can be recorded here, in one line, and what would change that."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pynvml

from gpu_report.gpu_words import gpu_words
from gpu_report.record.proc_files import container, read_text

NVIDIA_VENDOR = "0x10de"
DISPLAY_CLASSES = ("0x0300", "0x0302")  # VGA and 3D controllers


@dataclass(frozen=True)
class Unavailable:
    """Why there is nothing to read, and what to do about it."""

    reason: str
    advice: str


_LOST_BY_CONTAINER = Unavailable(
    "this container has lost its GPU (NVML: Unknown Error; `systemctl daemon-reload` on the host does that)",
    "restart the container",
)
_BY_CODE: Mapping[int | None, Unavailable] = {
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: Unavailable(
        "the NVIDIA driver was upgraded and its library no longer fits the loaded kernel module",
        "reboot, or reload the module: `sudo rmmod nvidia_uvm nvidia && sudo modprobe nvidia`",
    ),
    pynvml.NVML_ERROR_NO_PERMISSION: Unavailable(
        "no permission to use the NVIDIA driver", "check that you may read and write /dev/nvidia*"
    ),
    pynvml.NVML_ERROR_NOT_FOUND: Unavailable(
        "the NVIDIA driver is there but sees no GPU", "look for it: `lspci -d 10de:`, `dmesg | grep NVRM`"
    ),
}


def explain(code: int | None, error: Exception | None = None, root: Path = Path("/")) -> Unavailable:
    """Say why NVML gave `code` when it was opened; `root` is where /proc, /sys and /dev lie."""
    if code == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND:
        return _no_library(root)
    if code == pynvml.NVML_ERROR_DRIVER_NOT_LOADED:
        return _not_loaded(root)
    if code == pynvml.NVML_ERROR_UNKNOWN and container(root):
        return _LOST_BY_CONTAINER
    unknown = Unavailable(f"NVML could not be opened ({error})", "check that `nvidia-smi` works here")
    return _BY_CODE.get(code, unknown)


def none_answers(unusable: Sequence[tuple[int, str]]) -> Unavailable:
    """Say why nothing can be read where NVML was opened, but gives no GPU: each one's index and reason."""
    reasons = "; ".join(f"{gpu_words(index)}: {reason}" for index, reason in unusable)
    return Unavailable(reasons, "look into `dmesg`, or reboot")


NO_ANSWER = Unavailable("the NVIDIA driver does not answer", "look into `dmesg`")


def _no_library(root: Path) -> Unavailable:
    if container(root):
        return Unavailable(
            "this container has no access to a GPU",
            "install nvidia-container-toolkit on the host, then start it with: `docker run --gpus all ...`",
        )
    if is_wsl(root):
        return Unavailable(
            "this is WSL, and the NVIDIA library is not found",
            "install the NVIDIA driver in Windows and add /usr/lib/wsl/lib to LD_LIBRARY_PATH",
        )
    if has_nvidia_device(root):
        return Unavailable(
            "there is an NVIDIA GPU, but its driver is not installed (libnvidia-ml.so.1 is missing)",
            "install the NVIDIA driver",
        )
    return Unavailable("this machine has no NVIDIA GPU and no NVIDIA driver", "run it on the machine with the GPU")


def _not_loaded(root: Path) -> Unavailable:
    if container(root):
        return Unavailable("this container has no access to a GPU", "start it with: `docker run --gpus all ...`")
    return Unavailable("the NVIDIA kernel module is not loaded", "reboot, or load it: `sudo modprobe nvidia`")


def is_wsl(root: Path = Path("/")) -> bool:
    """Say whether this is the Windows Subsystem for Linux."""
    return "microsoft" in read_text(root / "proc/version").lower() or (root / "usr/lib/wsl/lib").exists()


def has_nvidia_device(root: Path = Path("/")) -> bool:
    """Say whether an NVIDIA display device stands on the PCI bus."""
    return any(
        read_text(device / "vendor").strip() == NVIDIA_VENDOR
        and read_text(device / "class").strip().startswith(DISPLAY_CLASSES)
        for device in (root / "sys/bus/pci/devices").glob("*")
    )

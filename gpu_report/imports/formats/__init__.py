"""The formats that are imported: by the name of each, how its logs are read, and how they are known from others."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from gpu_report.imports.format_names import AUTO
from gpu_report.imports.formats import clearml, gpustat, mlflow, nvitop, prometheus, telegraf, tensorboard, wandb
from gpu_report.imports.formats.nvidia_smi import dmon, pmon, screens
from gpu_report.imports.formats.nvidia_smi import query as nvidia_smi
from gpu_report.imports.parsing.readings import Found
from gpu_report.imports.parsing.text_file import read_head
from gpu_report.imports.selection import Selection

__all__ = ["AUTO", "FORMATS", "Selection", "format_of"]

FORMATS: Final[Mapping[str, Callable[[Sequence[Path], Selection], Found]]] = {
    "nvidia-smi": nvidia_smi.read,
    "dmon": dmon.read,
    "pmon": pmon.read,
    "nvidia-smi-table": screens.read,
    "gpustat": gpustat.read,
    "nvitop": nvitop.read,
    "prometheus": prometheus.read,
    "wandb": wandb.read,
    "mlflow": mlflow.read,
    "clearml": clearml.read,
    "telegraf": telegraf.read,
    "tensorboard": tensorboard.read,
}
# In this order: the first that knows a file as its own has it.
_KNOWN_BY: Final[Mapping[str, Callable[[Path, str], bool]]] = {
    "mlflow": mlflow.is_log,
    "wandb": wandb.is_log,
    "tensorboard": tensorboard.is_log,
    "pmon": pmon.is_log,
    "dmon": dmon.is_log,
    "nvidia-smi-table": screens.is_log,
    "gpustat": gpustat.is_log,
    "nvitop": nvitop.is_log,
    "prometheus": prometheus.is_log,
    "telegraf": telegraf.is_log,
    "clearml": clearml.is_log,
}


def format_of(log: Path) -> str:
    """Return the name of a log's format by its content; nvidia-smi's where none is known, which says what it lacks."""
    return _known(log) or "nvidia-smi"


def is_known(log: Path) -> bool:
    """Tell whether a log is in a format that is known by its content."""
    return _known(log) is not None


def _known(log: Path) -> str | None:
    head = read_head(log)
    return next((name for name, is_log in _KNOWN_BY.items() if is_log(log, head)), None)

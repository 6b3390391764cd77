"""Import of other tools' logs: each module turns one format into a run folder."""

from gpu_report.imports.nvidia_smi import import_nvidia_smi
from gpu_report.imports.tensorboard import import_tensorboard

__all__ = ["import_nvidia_smi", "import_tensorboard"]

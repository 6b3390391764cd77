"""Import of other tools' logs: each module turns one format into a run folder."""

from gpu_report.imports.nvidia_smi import import_nvidia_smi

__all__ = ["import_nvidia_smi"]

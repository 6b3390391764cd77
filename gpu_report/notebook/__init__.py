"""gpu-report in a notebook: `attach` records a training that a cell starts."""

from gpu_report.notebook.attaching import attach

__all__ = ["attach"]

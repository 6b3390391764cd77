"""gpu-report in a notebook: `attach` records a training that a cell starts, with a live output; `show` shows a run."""

from gpu_report.notebook.attaching import attach
from gpu_report.notebook.showing import RunDisplay, show

__all__ = ["RunDisplay", "attach", "show"]

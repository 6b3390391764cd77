"""Records the GPU while a YOLO run trains and says, in one HTML file, when it was idle and why."""

from __future__ import annotations

TYPE_CHECKING = False  # typing's own takes longer to import than all of this
if TYPE_CHECKING:
    import os
    from pathlib import Path
    from typing import Any

    from gpu_report.notebook import RunDisplay

__all__ = ["__version__", "attach", "show"]
__version__ = "0.2.0.dev0"


def attach(model: Any, run: str | os.PathLike[str] | None = None, *, live: bool = False) -> Path:
    """Have the training of a YOLO model tell its phases, epochs and data waits, and return the run folder.

    For notebooks and scripts that are not started by `gpu-report record -- ...` (under it, there is nothing to do):

        import gpu_report
        model = YOLO("yolo26n.pt")
        gpu_report.attach(model)
        model.train(data="coco8.yaml")

    It writes into `run`, else into the recording that is running under ./gpu-runs, else into a new one, which ends with
    the training. With `live`, the cell that trains shows how it goes, and the verdict at its end. Raises
    gpu_report.errors.GpuReportError where nothing can be recorded.
    """
    from gpu_report.notebook import attach as attach_now  # noqa: PLC0415 - `import gpu_report` must stay light

    return attach_now(model, run, live=live)


def show(run: str | os.PathLike[str] | None = None) -> RunDisplay:
    """Return a run as something that a notebook shows: verdict, where the time went, utilisation and epochs.

        gpu_report.show()                                # the training that was attached last, else the newest run
        gpu_report.show(folder).save("report.html")      # with the full report in a file, and a link to it

    In a script, `print` it. Raises gpu_report.errors.InputError where there is no such run, or it cannot be read.
    """
    from gpu_report.notebook import show as show_now  # noqa: PLC0415 - `import gpu_report` must stay light

    return show_now(run)

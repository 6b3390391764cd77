"""`gpu_report.show(run)`: a run as the output of a notebook's cell, and as text where there is none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from gpu_report import run_folder, schema
from gpu_report.baseline_store import one_run
from gpu_report.errors import InputError, UsageError, unwritable
from gpu_report.notebook import attaching

if TYPE_CHECKING:
    from gpu_report.model import Analysis

REPORT = "report.html"
TEXT_COLUMNS = 100


class RunDisplay:
    """What was found out about a run. A notebook shows it when it is the last value of a cell; `print` shows text."""

    def __init__(self, analysis: Analysis) -> None:
        """Show this analysis; no full report has been saved yet."""
        self.analysis = analysis
        self.report: Path | None = None

    def save(self, path: str | os.PathLike[str] = REPORT) -> RunDisplay:
        """Write the full report, one self-contained HTML file, and link it from what is shown; return this again.

        Missing parent folders are created. UsageError where the file is one that was recorded, InputError where it
        cannot be written.
        """
        from gpu_report.render import render_html  # noqa: PLC0415 - a training that is attached needs none of it

        file = Path(path)
        if file.is_dir() or file.name in schema.RECORDED_FILES:
            raise UsageError(f"{file} is a folder, or may be part of a recording: name another file, such as {REPORT}")
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            run_folder.write_text(file, render_html(self.analysis))
        except OSError as error:
            raise InputError(f"{file} cannot be written: {unwritable(file, error)}") from error
        self.report = file
        return self

    def __str__(self) -> str:
        """Return the summary as text."""
        from gpu_report.render.run.terminal import render_text  # noqa: PLC0415 - likewise

        return render_text(self.analysis, width=TEXT_COLUMNS)

    def __repr__(self) -> str:
        """Return the summary as text, which is what a console shows."""
        return str(self)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:  # noqa: ARG002
        """Return the run as HTML and as text, for IPython."""
        from gpu_report.render.page.notebook import render_notebook  # noqa: PLC0415 - likewise

        link, instead = self._way_to_report()
        return {"text/html": render_notebook(self.analysis, link, instead), "text/plain": str(self)}

    def _way_to_report(self) -> tuple[str, str]:
        """Return the full report's address, and for where that opens nothing its path, or the code that writes it."""
        if self.report is None:
            return "", f'gpu_report.show({self.analysis.run.path!r}).save("{REPORT}")'
        return _address(self.report), os.fspath(self.report)


def show(run: str | os.PathLike[str] | None = None) -> RunDisplay:
    """Return a run as something that a notebook shows: verdict, where the time went, utilisation, epochs.

    `run` is a run folder or a samples CSV; left out, the one that `attach` returned last, else the newest under
    ./gpu-runs. InputError where there is none, or it cannot be read.
    """
    from gpu_report.analyse import analyse  # noqa: PLC0415 - a training that is attached needs none of it
    from gpu_report.load import load_run  # noqa: PLC0415 - likewise
    from gpu_report.model import Options  # noqa: PLC0415 - likewise

    return RunDisplay(analyse(load_run(_run(run)), Options()))


def _run(run: str | os.PathLike[str] | None) -> Path:
    if run is not None:
        return one_run(Path(run))
    if attaching.attached:
        return attaching.attached[-1]
    return run_folder.newest_run(Path(run_folder.RUNS_DIR))


def _address(report: Path) -> str:
    """Return a file's address as seen from the notebook, whose folder is the kernel's; empty where it lies outside."""
    try:
        return quote(report.resolve().relative_to(Path.cwd()).as_posix())
    except (OSError, ValueError):
        return ""

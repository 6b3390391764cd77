"""Writing a report and its summary.json."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gpu_report.cli.output_files import write

if TYPE_CHECKING:
    from concurrent.futures import Future

    from gpu_report.model import Analysis
    from gpu_report.render import BlankPage, Packing


def write_report(
    analysis: Analysis,
    output: Path,
    json_path: Path | None,
    packing: Packing | None = None,
    blank: Future[BlankPage] | None = None,
) -> None:
    """Write the page and, where it is asked for, summary.json; parts that were begun earlier are taken as they are."""
    from gpu_report.render import page_texts
    from gpu_report.render.run.summary_json import render_summary

    write(output, *page_texts(analysis, packing, blank.result() if blank else None))
    if json_path is not None:
        write(json_path, render_summary(analysis))

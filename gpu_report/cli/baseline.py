"""`baseline`: runs that are kept to compare later ones with."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpu_report import run_folder
from gpu_report.baseline_store import KEPT, Shelf
from gpu_report.cli.baseline_choice import fitting
from gpu_report.cli.common import analysed, say
from gpu_report.errors import NotComparableError
from gpu_report.terminal import ProgressLine

if TYPE_CHECKING:
    from gpu_report.model import Analysis


@click.group()
def baseline() -> None:
    """Keep runs to compare later ones with."""


@baseline.command()
@click.argument("run", type=click.Path(path_type=Path), required=False)
@click.option(
    "--baseline-dir", type=click.Path(path_type=Path, file_okay=False), required=True, help="Where baselines are kept."
)
@click.option("--key", default="default", show_default=True, help="What they are of: a branch, a data set.")
@click.option(
    "--keep", type=click.IntRange(1), default=KEPT, show_default=True, help="How many of one set-up are kept."
)
@click.option("--if-none", is_flag=True, help="Only where RUN's set-up has no baseline yet, as in CI's first run.")
def accept(run: Path | None, baseline_dir: Path, key: str, keep: int, *, if_none: bool) -> None:
    """Make RUN the newest baseline of its set-up (the newest run under ./gpu-runs when left out)."""
    from gpu_report.analyse.compare import fingerprint_of, unfinished
    from gpu_report.analyse.compare.fingerprint import slug

    path = run if run is not None else run_folder.newest_run(Path(run_folder.RUNS_DIR))
    with ProgressLine("starting ...") as progress:
        analysis = analysed(path, 50.0, 10.0, None, progress)
    if why := unfinished(analysis):
        raise NotComparableError(f"{path} is no baseline: {why}")
    known, shelf = fingerprint_of(analysis), Shelf(baseline_dir, key)
    if if_none and (there := _first_of(shelf, analysis)):
        say(f"note: {there} is a baseline of this set-up already: {path} does not become one (--if-none)")
        return
    click.echo(shelf.accept(path, slug(known), {"fingerprint": asdict(known)}, keep, _began(analysis)))


def _began(run: Analysis) -> str:
    """Return when a run began as a name, empty where that is no time that a calendar has."""
    try:
        return run_folder.name_of(run.run.start_wall_s)
    except (ValueError, OverflowError, OSError):
        return ""


def _first_of(shelf: Shelf, run: Analysis) -> Path | None:
    """Return the newest baseline of a run's set-up, None where there is none."""
    try:
        return fitting(shelf, run)[0][0].path
    except NotComparableError:
        return None

"""`baseline`: runs that are kept to compare later ones with."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpu_report import run_folder
from gpu_report.baseline_store import KEPT, BaselineSet, baseline_sets
from gpu_report.cli.baseline_choice import baselines_with_same_setup
from gpu_report.cli.common import CountRange, NamedPath, analysed, say
from gpu_report.cli.help_text import CommandList, examples
from gpu_report.errors import NotComparableError
from gpu_report.terminal import ProgressLine, plain, without_commands

if TYPE_CHECKING:
    from gpu_report.model import Analysis


OPTION_OF_FOLDER = click.option(
    "--baseline-dir",
    metavar="FOLDER",
    type=NamedPath(file_okay=False),
    required=True,
    help="Where baselines are kept.",
)


@click.group(
    cls=CommandList,
    epilog=examples(
        "gpu-report baseline accept gpu-runs/20261121-103501 --baseline-dir baselines",
        "gpu-report baseline list --baseline-dir baselines",
        "gpu-report compare gpu-runs/after --baseline-dir baselines",
    ),
)
def baseline() -> None:
    """Keep runs to compare later ones with."""


@baseline.command(
    "list",
    epilog=examples(
        "gpu-report baseline list --baseline-dir baselines",
        "gpu-report baseline list --baseline-dir baselines --key main",
    ),
)
@OPTION_OF_FOLDER
@click.option("--key", default=None, metavar="NAME", help="Only the baselines of this name. Default: all.")
def list_baselines(baseline_dir: Path, key: str | None) -> None:
    """List the runs that are kept as baselines.

    Runs of one set-up stand together, the newest first, with the time when each was accepted.
    """
    found = [shelf for shelf in baseline_sets(baseline_dir) if key is None or shelf.key == key]
    if not found:
        say(f"note: {baseline_dir} has no baseline{f' of key {key}' if key else ''}")
    for shelf in found:
        by_set_up: dict[Path, list[str]] = {}
        for each in shelf.accepted():
            line = f"  {each.path.name}  accepted {_utc(each.accepted_wall_s)}"
            by_set_up.setdefault(each.path.parent, []).append(line)
        for folder, lines in by_set_up.items():
            click.echo(without_commands("\n".join(map(plain, (str(folder), *lines)))))


def _utc(wall_s: float) -> str:
    """Return a wall time in UTC; facts of a baseline that were written by others may hold any number."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(wall_s))
    except (ValueError, OverflowError, OSError):
        return "at an unknown time"


@baseline.command(
    epilog=examples(
        "gpu-report baseline accept --baseline-dir baselines",
        "gpu-report baseline accept gpu-runs/20261121-103501 --baseline-dir baselines",
    )
)
@click.argument("run", type=NamedPath(), required=False)
@OPTION_OF_FOLDER
@click.option("--key", default="default", metavar="NAME", help="A name: a branch, a data set. Default: default.")
@click.option(
    "--keep",
    type=CountRange(1),
    default=KEPT,
    metavar="NUMBER",
    help=f"How many to keep of each set-up. Default: {KEPT}.",
)
@click.option("--if-none", is_flag=True, help="Only if RUN's set-up has no baseline yet, as in CI's first run.")
def accept(run: Path | None, baseline_dir: Path, key: str, keep: int, *, if_none: bool) -> None:
    """Make a run the newest baseline of its set-up.

    RUN is a run folder or a samples CSV. Default: the newest run under ./gpu-runs.
    """
    from gpu_report.analyse.compare import fingerprint_of, unfinished
    from gpu_report.analyse.compare.fingerprint import slug

    path = run if run is not None else run_folder.newest_run(Path(run_folder.RUNS_DIR))
    with ProgressLine("starting ...") as progress:
        analysis = analysed(path, None, progress)
    if why := unfinished(analysis):
        raise NotComparableError(f"{path} cannot be a baseline: {why}")
    known, shelf = fingerprint_of(analysis), BaselineSet(baseline_dir, key)
    if if_none and (there := _first_of(shelf, analysis)):
        say(f"note: {there} is a baseline of this set-up already, so {path} is not added (--if-none)")
        return
    click.echo(shelf.accept(path, slug(known), {"fingerprint": asdict(known)}, keep, _began(analysis)))


def _began(run: Analysis) -> str:
    """Return when a run began as a name, empty where that is no time that a calendar has."""
    try:
        return run_folder.name_of(run.run.start_wall_s)
    except (ValueError, OverflowError, OSError):
        return ""


def _first_of(shelf: BaselineSet, run: Analysis) -> Path | None:
    """Return the newest baseline of a run's set-up, None where there is none."""
    try:
        return baselines_with_same_setup(shelf, run)[0][0].path
    except NotComparableError:
        return None

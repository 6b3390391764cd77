"""`stop`: the end of a recorder in the background."""

from __future__ import annotations

from pathlib import Path

import click

from gpu_report import run_folder
from gpu_report.cli.common import NamedPath
from gpu_report.cli.help_text import examples


@click.command(epilog=examples("gpu-report stop", "gpu-report stop gpu-runs/20261121-103501"))
@click.argument("run", type=NamedPath(), required=False)
def stop(run: Path | None) -> None:
    """Stop a recording that was started with --background.

    RUN is its run folder. Default: the newest one under ./gpu-runs that is still being recorded. The recording of a
    command is left alone: the command would be stopped, too.
    """
    from gpu_report.record.lifecycle import background

    folder = run if run is not None else background.running(Path(run_folder.RUNS_DIR), to_stop=True)
    background.stop(folder)
    click.echo(folder)

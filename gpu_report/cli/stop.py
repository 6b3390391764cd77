"""`stop`: the end of a recorder in the background."""

from __future__ import annotations

from pathlib import Path

import click

from gpu_report import run_folder


@click.command()
@click.argument("run", type=click.Path(path_type=Path), required=False)
def stop(run: Path | None) -> None:
    """End a recorder that was started with --background (the newest under ./gpu-runs when RUN is left out)."""
    from gpu_report.record.lifecycle import background

    folder = run if run is not None else background.running(Path(run_folder.RUNS_DIR))
    background.stop(folder)
    click.echo(folder)

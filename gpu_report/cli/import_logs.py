"""`import`: a run folder from what another tool logged."""

from __future__ import annotations

from pathlib import Path

import click

from gpu_report.cli.common import say, say_notes


@click.command("import")
@click.argument("logs", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "--from",
    "source",
    type=click.Choice(["nvidia-smi"]),
    default="nvidia-smi",
    show_default=True,
    help="The tool that wrote the logs.",
)
@click.option("--output", type=click.Path(path_type=Path), required=True, help="The run folder to make.")
@click.option(
    "--yolo", type=click.Path(path_type=Path), default=None, help="The folder of the YOLO run (args.yaml, results.csv)."
)
@click.option(
    "--kernel-log",
    type=click.Path(path_type=Path),
    default=None,
    help="A kernel log: dmesg in any of its forms, kmsg, journalctl, kern.log.",
)
@click.option(
    "--timezone",
    default=None,
    help="Zone of time stamps that carry none, such as Europe/Berlin; the local one when left out.",
)
@click.option(
    "--boot-time", default=None, help="When that machine was booted (ISO 8601 or seconds since 1970), for plain dmesg."
)
@click.option(
    "--train-start",
    default=None,
    help="When training started (ISO 8601 or seconds since 1970), if results.csv lost its file time.",
)
def import_logs(  # noqa: PLR0913, PLR0917 - one parameter an option of the command line
    logs: tuple[Path, ...],
    source: str,
    output: Path,
    yolo: Path | None,
    kernel_log: Path | None,
    timezone: str | None,
    boot_time: str | None,
    train_start: str | None,
) -> None:
    """Make a run folder from what another tool logged."""
    from gpu_report.imports import import_nvidia_smi

    del source  # one so far
    notes = import_nvidia_smi(
        logs, output, yolo=yolo, kernel_log=kernel_log, timezone=timezone, boot_time=boot_time, train_start=train_start
    )
    say_notes(notes)
    say(f"imported into {output}: now `gpu-report render report.html {output}`")

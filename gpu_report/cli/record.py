"""`record`: a training, or what this machine does, into a run folder."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from gpu_report.cli.common import FiniteRange, say
from gpu_report.errors import UsageError

if TYPE_CHECKING:
    from gpu_report.record import RecordOptions


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "--duration",
    type=FiniteRange(0, min_open=True),
    default=None,
    help="Seconds; until Ctrl-C or the command's end when left out.",
)
@click.option(
    "--interval", type=FiniteRange(0.02, 3600), default=1.0, show_default=True, help="Seconds between two samples."
)
@click.option("--gpus", default="", help="Indices or UUIDs, separated by commas; all when left out.")
@click.option(
    "--output", type=click.Path(path_type=Path), default=None, help="The run folder; gpu-runs/<UTC time> when left out."
)
@click.option(
    "--yolo",
    type=click.Path(path_type=Path),
    default=None,
    help="The folder of the YOLO run (its results.csv); found by itself when left out.",
)
@click.option(
    "--kernel-log",
    type=click.Path(path_type=Path),
    default=None,
    help="A file that kernel messages are appended to, where the kernel log itself cannot be read.",
)
@click.option("--detail", is_flag=True, help="Also record power every 20 ms, where the driver keeps it.")
@click.option(
    "--no-inject", is_flag=True, help="Do not load our callbacks into the command; phases are then seen from outside."
)
@click.option("--no-stacks", is_flag=True, help="Do not note in which line of code the command's processes stand.")
@click.option("--background", is_flag=True, help="Return at once and record on, also after logout; `stop` ends it.")
@click.option("--with-parent", type=int, default=None, hidden=True, help="End when this parent process does.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def record(  # noqa: PLR0913, PLR0917 - one parameter an option of the command line
    duration: float | None,
    interval: float,
    gpus: str,
    output: Path | None,
    yolo: Path | None,
    kernel_log: Path | None,
    detail: bool,  # noqa: FBT001 - click passes flags so
    no_inject: bool,  # noqa: FBT001 - click passes flags so
    no_stacks: bool,  # noqa: FBT001 - click passes flags so
    background: bool,  # noqa: FBT001 - click passes flags so
    with_parent: int | None,
    command: tuple[str, ...],
) -> NoReturn:
    """Record GPUs, host, kernel log and epochs into a run folder.

    With a COMMAND after -- it is started, recorded until it ends, and its exit code is passed on:

      gpu-report record -- yolo detect train data=data.yaml model=yolo26n.yaml
    """
    from gpu_report.record import RecordOptions, record_run

    if with_parent is not None:
        from gpu_report.notebook import die_with

        die_with(with_parent)
    chosen = tuple(filter(None, (part.strip() for part in gpus.split(","))))
    if gpus and not chosen:
        raise UsageError(f"--gpus {gpus} names no GPU")
    if not command and "--" in sys.argv:
        raise UsageError("there is no command after --: leave it out to watch without one")
    options = RecordOptions(
        command=command,
        duration_s=duration,
        interval_s=interval,
        gpus=chosen,
        output=output,
        yolo=yolo,
        kernel_log=kernel_log,
        detail=detail,
        inject=not no_inject,
        stacks=not no_stacks,
    )
    sys.exit(_record_in_background(options) if background else record_run(options, say=say))


def _record_in_background(options: RecordOptions) -> int:
    """Start the same recording detached, and print its folder."""
    from gpu_report.record.lifecycle import background

    if options.command:
        raise UsageError(
            "--background watches; to start a command that outlives the shell: nohup gpu-report record -- ..."
        )
    click.echo(background.start(options))
    return 0

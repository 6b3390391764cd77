"""`export`: a run in the form of another tool."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from gpu_report.cli.common import (
    NamedPath,
    examined,
    folder_of,
    option_of_run,
    option_to_redact,
    options_of_analysis,
    read,
    run_of,
    say,
)
from gpu_report.cli.help_text import examples
from gpu_report.cli.job_folders import refuse_job
from gpu_report.cli.tensorboard_folder import file_in, write_event_file
from gpu_report.terminal import ProgressLine

if TYPE_CHECKING:
    from gpu_report.model import Analysis, Options

TOOLS: Final = ("tensorboard",)


@click.command(
    epilog=examples(
        "gpu-report export --to tensorboard tb/run1",
        "gpu-report export gpu-runs/20261121-103501 --to tensorboard tb/run1",
        "gpu-report export --to tensorboard tb/run1 --report https://host/r.html",
        "# to look at it:",
        "tensorboard --logdir tb",
    )
)
@click.argument("run", type=NamedPath(), required=False)
@option_of_run
@click.option(
    "--to",
    "target",
    type=(click.Choice(TOOLS), NamedPath()),
    required=True,
    metavar="tensorboard DIR",
    help="The tool, and the folder to write for it: one of its own.",
)
@click.option(
    "--report",
    default=None,
    metavar="LINK",
    help="Where the run's report lies, a file or an https:// address: named in TensorBoard.",
)
@option_to_redact
@options_of_analysis
def export(  # noqa: PLR0913, PLR0917 - one parameter an option of the command line
    run: Path | None,
    named: Path | None,
    target: tuple[str, Path],
    report: str | None,
    redacted: bool,  # noqa: FBT001 - click passes flags so
    options: Options,
) -> None:
    """Write a run for TensorBoard.

    It has minimum, mean and maximum of each quantity over time, figures of epochs, and the findings as text. RUN is a
    run folder or a samples CSV. Default: the newest run under ./gpu-runs. DIR must not be YOLO's own folder.
    """
    _, folder = target
    with ProgressLine("starting ...") as progress:
        refuse_job(asked := run_of(run, named))
        source = folder_of(asked)
        path = file_in(folder)
        analysis = examined(read(source, progress), options, progress)
        progress.step(f"writing {path} ...")
        write_event_file(path, _rendered(analysis, report, redacted=redacted))
    say(f"exported into {folder}. Next: `{shlex.join(['tensorboard', '--logdir', str(folder)])}`")


def _rendered(analysis: Analysis, report: str | None, *, redacted: bool) -> bytes:
    from gpu_report.render.tensorboard import render_event_file

    if redacted:
        from gpu_report.render.redaction.redact import redact

        analysis = redact(analysis)
    return render_event_file(analysis, report)

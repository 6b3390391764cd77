"""`summary`: what the report says, printed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpu_report.cli.common import NamedPath, analysed, option_of_run, options_of_analysis, run_of
from gpu_report.cli.help_text import examples
from gpu_report.cli.job_folders import refuse_job
from gpu_report.cli.own_process import in_own_process
from gpu_report.terminal import ProgressLine, is_terminal

if TYPE_CHECKING:
    from gpu_report.model import Options


@click.command(
    epilog=examples(
        "gpu-report summary",
        "gpu-report summary gpu-runs/20261121-103501",
        'gpu-report summary --format markdown >> "$GITHUB_STEP_SUMMARY"',
        "gpu-report summary --format json | jq '.verdict[0].text'",
    )
)
@click.argument("run", type=NamedPath(), required=False)
@option_of_run
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "markdown"]), default="text", help="Default: text."
)
@in_own_process
@options_of_analysis
def summary(
    run: Path | None,
    named: Path | None,
    form: str,
    options: Options,
) -> None:
    """Print the report's main facts in the terminal.

    RUN is a run folder or a samples CSV. Default: the newest run under ./gpu-runs.
    """
    refuse_job(asked := run_of(run, named))
    with ProgressLine("starting ...") as progress:
        analysis = analysed(asked, options, progress)
    if form == "json":
        from gpu_report.render.run.summary_json import render_summary

        text = render_summary(analysis)
    else:
        from gpu_report.render.run.terminal import render_markdown, render_text

        text = (
            render_markdown(analysis) if form == "markdown" else render_text(analysis, colour=is_terminal(sys.stdout))
        )
    click.echo(text, nl=False)

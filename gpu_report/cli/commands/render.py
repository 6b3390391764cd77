"""`render`: a run as one HTML file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

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
)
from gpu_report.cli.help_text import examples
from gpu_report.cli.job_folders import begin_processes, nodes_of, read_nodes
from gpu_report.cli.output_files import OutputFile, refuse_twice, write
from gpu_report.cli.own_process import in_own_process
from gpu_report.cli.report_files import write_report
from gpu_report.terminal import ProgressLine, width_of, with_command_lines, without_commands

if TYPE_CHECKING:
    from gpu_report.model import Options


@click.command(
    epilog=examples(
        "gpu-report render report.html",
        "gpu-report render report.html gpu-runs/20261121-103501 --json summary.json",
        "gpu-report render report.html --redact           # to share it",
        "gpu-report render report.html --price-per-hour 3.5",
        "gpu-report render job.html node-0 node-1         # several nodes of one job",
    )
)
@click.argument("output", type=OutputFile(before_run=True))
@click.argument("runs", metavar="[RUN]...", type=NamedPath(), nargs=-1)
@option_of_run
@click.option(
    "--json",
    "json_path",
    type=OutputFile(),
    default=None,
    metavar="FILE",
    help="Also write summary.json here.",
)
@click.option("--open", "open_it", is_flag=True, help="Open the report in a browser.")
@option_to_redact
@in_own_process
@options_of_analysis
def render(  # noqa: PLR0913, PLR0917 - one parameter an option of the command line
    output: Path,
    runs: tuple[Path, ...],
    named: Path | None,
    json_path: Path | None,
    open_it: bool,  # noqa: FBT001 - click passes flags so
    redacted: bool,  # noqa: FBT001 - click passes flags so
    options: Options,
) -> None:
    """Render a run as one self-contained HTML file.

    OUTPUT is the file to write. Missing parent folders are created. RUN is a run folder or a samples CSV. Default: the
    newest run under ./gpu-runs. Several runs, or a folder of them, are the nodes of one job: they become one report.
    """
    refuse_twice((output, json_path))
    run = run_of(runs[0] if runs else None, named)
    nodes = nodes_of(runs or tuple(filter(None, [named])))
    if nodes:
        said = _render_job(nodes, output, json_path, options, redacted=redacted)
    else:
        said = _render_run(run, output, json_path, options, redacted=redacted)
    for number, line in enumerate(said.split("\n")):
        said = with_command_lines(line if number else f"{output}: {line}", width_of(sys.stdout))
        click.echo(without_commands(said))
    if open_it:
        click.launch(str(output))


def _render_run(run: Path | None, output: Path, json_path: Path | None, options: Options, *, redacted: bool) -> str:
    """Write the report of one run, and return its verdict."""
    with ProgressLine("starting ...") as progress:
        folder = folder_of(run)
        from gpu_report.pandas_without_arrow import import_pandas_without_arrow

        import_pandas_without_arrow()
        from gpu_report.release_memory import give_back_memory
        from gpu_report.render import Packing, begin_blank_page
        from gpu_report.render.sentence_kinds import verdict_text
        from gpu_report.usable_cores import threads

        blank = begin_blank_page()
        recorded = read(folder, progress)
        meanwhile = threads("meanwhile", spared=1)
        packing = Packing(recorded, meanwhile)
        analysis = examined(recorded, options, progress, meanwhile)
        give_back_memory()  # of a long run the analysis leaves a third of what it held
        progress.step(f"writing {output} ...")
        if redacted:
            from gpu_report.render.redaction.redact import redact

            analysis = redact(analysis)
        write_report(analysis, output, json_path, packing, blank)
    return verdict_text(analysis)


def _render_job(nodes: list[Path], output: Path, json_path: Path | None, options: Options, *, redacted: bool) -> str:
    """Write the report of a job of several nodes, and return its verdict."""
    with ProgressLine("starting ...") as progress:
        if not redacted:
            begin_processes(nodes)
        from gpu_report.analyse.job import analyse_job
        from gpu_report.render.job.job_json import render_job_json
        from gpu_report.render.job.page import render_job_html
        from gpu_report.render.job.terminal import render_job_text
        from gpu_report.render.redaction.redact import JobRedaction

        redaction = JobRedaction() if redacted else None
        job = analyse_job(*read_nodes(nodes, options, progress, redaction))
        progress.step(f"writing {output} ...")
        if redaction is not None:
            job = redaction.redact(job)
        write(output, render_job_html(job))
        if json_path is not None:
            write(json_path, render_job_json(job))
    return render_job_text(job)

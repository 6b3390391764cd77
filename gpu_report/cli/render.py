"""`render`: a run as one HTML file."""

from __future__ import annotations

from pathlib import Path

import click

from gpu_report.cli.common import (
    examined,
    folder_of,
    option_of_run,
    option_to_redact,
    options_of_analysis,
    read,
    run_of,
)
from gpu_report.cli.help_text import examples
from gpu_report.cli.output_files import OutputFile, refuse_twice
from gpu_report.cli.report_files import write_report
from gpu_report.terminal import ProgressLine, with_command_lines, without_commands


@click.command(
    epilog=examples(
        "gpu-report render report.html",
        "gpu-report render report.html gpu-runs/20261121-103501 --json summary.json",
        "gpu-report render report.html --redact           # to share it",
        "gpu-report render report.html --price-per-hour 3.5",
    )
)
@click.argument("output", type=OutputFile(before_run=True))
@click.argument("run", type=click.Path(path_type=Path), required=False)
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
@options_of_analysis
def render(  # noqa: PLR0913, PLR0917 - one parameter an option of the command line
    output: Path,
    run: Path | None,
    named: Path | None,
    json_path: Path | None,
    open_it: bool,  # noqa: FBT001 - click passes flags so
    redacted: bool,  # noqa: FBT001 - click passes flags so
    drop_percent: float,
    drop_seconds: float,
    price_per_hour: float | None,
) -> None:
    """Render a run as one self-contained HTML file.

    OUTPUT is the file to write. Missing parent folders are created. RUN is a run folder or a samples CSV. Default: the
    newest run under ./gpu-runs.
    """
    refuse_twice((output, json_path))
    with ProgressLine("starting ...") as progress:
        folder = folder_of(run_of(run, named))
        from gpu_report.load.release_memory import keep_one_heap
        from gpu_report.render import begin_blank_page, begin_packing
        from gpu_report.render.sentence_kinds import verdict_text

        keep_one_heap()
        blank = begin_blank_page()
        recorded = read(folder, progress)
        packing = begin_packing(recorded)
        analysis = examined(recorded, drop_percent, drop_seconds, price_per_hour, progress)
        progress.step(f"writing {output} ...")
        if redacted:
            from gpu_report.render.redaction.redact import redact

            analysis = redact(analysis)
        write_report(analysis, output, json_path, packing, blank)
    click.echo(without_commands(with_command_lines(f"{output}: {verdict_text(analysis)}")))
    if open_it:
        click.launch(str(output))

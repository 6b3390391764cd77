"""`demo`: the real run that comes with gpu-report, in the installed package or in the checkout's sample_runs/."""

from __future__ import annotations

import sys
from pathlib import Path

import click

import gpu_report
from gpu_report import schema
from gpu_report.cli.common import analysed
from gpu_report.cli.help_text import examples
from gpu_report.cli.output_files import OutputFile
from gpu_report.cli.report_files import write_report
from gpu_report.errors import InputError
from gpu_report.terminal import ProgressLine, width_of, with_command_lines, without_commands

NAME = "n-starved"  # a clear answer: which argument to change, and what that saves


@click.command(epilog=examples("gpu-report demo", "gpu-report demo /tmp/demo.html --open"))
@click.argument("output", type=OutputFile(), default=Path("demo.html"))
@click.option("--open", "open_it", is_flag=True, help="Open the report in a browser.")
def demo(output: Path, open_it: bool) -> None:  # noqa: FBT001 - click passes flags so
    """Render the report of a real run that comes with gpu-report.

    It is a YOLO26 training on an H200 that waited for its data. OUTPUT is the file to write.
    """
    with ProgressLine("starting ...") as progress:
        from gpu_report.render import begin_blank_page
        from gpu_report.render.sentence_kinds import verdict_text

        blank = begin_blank_page()
        analysis = analysed(demo_run(), None, progress)
        progress.step(f"writing {output} ...")
        write_report(analysis, output, None, blank=blank)
    said = with_command_lines(f"{output}: {verdict_text(analysis)}", width_of(sys.stdout))
    click.echo(without_commands(said))
    if open_it:
        click.launch(str(output))


def demo_run() -> Path:
    """Return the folder of the shipped run; InputError naming both places when it is in neither."""
    package = Path(gpu_report.__file__).parent
    places = (package / "demo_run", package.parent / "sample_runs" / NAME)
    for place in places:
        if (place / schema.SAMPLES_CSV).is_file():
            return place
    raise InputError(f"the demo run is in neither {places[0]} nor {places[1]}: install gpu-report again")

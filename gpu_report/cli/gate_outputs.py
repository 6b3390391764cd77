"""What `compare` and `check` print and write, and the exit code: 0 passed, 1 failed, 3 cannot tell."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from gpu_report.cli.common import say
from gpu_report.cli.output_files import OutputFile, write
from gpu_report.terminal import is_terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpu_report.cli.common import Command
    from gpu_report.model import Comparison

OUTPUTS = {
    "json": "Write JSON here (docs/compare.schema.json).",
    "markdown": "Write a summary for a pull request here.",
    "junit": "Write JUnit XML here: one test case per gate.",
    "bencher": "Write Bencher Metric Format here.",
    "smaller-is-better": "Write JSON for github-action-benchmark here.",
    "bigger-is-better": "The same, for values of which more is better.",
}


def options_of_outputs(command: Command) -> Command:
    """Add the options that name files to write, and what may stand in them."""
    command = click.option(
        "--redact",
        "redacted",
        is_flag=True,
        help="For sharing: hide names of hosts, users, folders and commands, addresses and serial numbers.",
    )(command)
    for option, words in reversed(OUTPUTS.items()):
        name = f"{option.replace('-', '_')}_path"
        command = click.option(f"--{option}", name, metavar="FILE", type=OutputFile(), default=None, help=words)(
            command
        )
    return command


def redacted_comparison(comparison: Comparison) -> Comparison:
    """Return a comparison for sharing."""
    from gpu_report.render.redaction.redact import redact_comparison

    return redact_comparison(comparison)


def finish(comparison: Comparison, paths: Mapping[str, Path | None]) -> NoReturn:
    """Write the files that were asked for, print what came of it, and exit by the gates."""
    from gpu_report.render.comparison.github import annotations
    from gpu_report.render.comparison.terminal import render_comparison_text

    for name, path in paths.items():
        if path is not None:
            write(path, _content(name.removesuffix("_path"), comparison))
    text = render_comparison_text(comparison, colour=is_terminal(sys.stdout))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        text += "".join(f"{line}\n" for line in annotations(comparison))
    click.echo(text, nl=False)
    _add_step_summary(comparison)
    sys.exit(comparison.exit_code)


def _content(name: str, comparison: Comparison) -> str:
    """Return what a file of this name holds."""
    from gpu_report.render.comparison import benchmark_services
    from gpu_report.render.comparison.comparison_json import build_comparison
    from gpu_report.render.comparison.junit import render_junit
    from gpu_report.render.comparison.markdown import render_comparison_markdown
    from gpu_report.render.comparison.page import render_comparison_html
    from gpu_report.render.machine_values import json_text

    makers: Mapping[str, Callable[[], str]] = {
        "html": lambda: render_comparison_html(comparison),
        "json": lambda: json_text(build_comparison(comparison)),
        "markdown": lambda: render_comparison_markdown(comparison),
        "junit": lambda: render_junit(comparison),
        "bencher": lambda: json_text(benchmark_services.bencher(comparison)),
        "smaller_is_better": lambda: json_text(benchmark_services.github_benchmark(comparison, bigger_is_better=False)),
        "bigger_is_better": lambda: json_text(benchmark_services.github_benchmark(comparison, bigger_is_better=True)),
    }
    return makers[name]()


def _add_step_summary(comparison: Comparison) -> None:
    """Append the Markdown to the job's summary where GitHub asks for one; a summary that cannot be is no failure."""
    from gpu_report.render.comparison.markdown import render_comparison_markdown

    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return
    try:
        with Path(path).open("a", encoding="utf-8") as summary:
            summary.write(render_comparison_markdown(comparison))
    except OSError as error:
        say(f"note: {path} cannot be written: {error.strerror}")

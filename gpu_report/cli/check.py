"""`check`: a run beside gates that need no baseline."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import click

from gpu_report.cli.common import analysed, option_of_run, options_of_analysis, run_of
from gpu_report.cli.gate_options import gates_asked_for, options_of_gates
from gpu_report.cli.gate_outputs import finish, options_of_outputs, redacted_comparison
from gpu_report.cli.output_files import refuse_twice
from gpu_report.terminal import ProgressLine


@click.command()
@click.argument("run", type=click.Path(path_type=Path), required=False)
@option_of_run
@options_of_gates
@options_of_outputs
@options_of_analysis
def check(  # noqa: PLR0913, PLR0917 - one parameter an option of the command line
    run: Path | None,
    named: Path | None,
    fail_on: tuple[str, ...],
    warn_on: tuple[str, ...],
    config: Path | None,
    redacted: bool,  # noqa: FBT001 - click passes flags so
    drop_percent: float,
    drop_seconds: float,
    price_per_hour: float | None,
    **paths: Path | None,
) -> NoReturn:
    """Hold RUN against gates that need no baseline; exit 0, 1 or 3 (the newest under ./gpu-runs when left out).

    Folders on the way to a file to write that are missing are made.
    """
    from gpu_report.analyse.compare import compare as compare_runs

    refuse_twice(paths.values())
    gates = gates_asked_for(fail_on, warn_on, config, baseline=False)
    with ProgressLine("starting ...") as progress:
        analysis = analysed(run_of(run, named), drop_percent, drop_seconds, price_per_hour, progress)
    comparison = compare_runs((), analysis, gates)
    finish(redacted_comparison(comparison) if redacted else comparison, paths)

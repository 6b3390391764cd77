"""`check`: a run beside gates that need no baseline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from gpu_report.cli.common import NamedPath, analysed, option_of_run, options_of_analysis, run_of
from gpu_report.cli.gate_options import gates_asked_for, options_of_gates
from gpu_report.cli.gate_outputs import finish, options_of_outputs, redacted_comparison
from gpu_report.cli.help_text import examples
from gpu_report.cli.job_folders import refuse_job
from gpu_report.cli.output_files import refuse_twice
from gpu_report.cli.own_process import in_own_process
from gpu_report.terminal import ProgressLine

if TYPE_CHECKING:
    from gpu_report.model import Options


@click.command(
    epilog=examples(
        "gpu-report check",
        "gpu-report check --fail-on 'util:60%' --fail-on 'xid.fatal:0'",
        "gpu-report check gpu-runs/20261121-103501 --junit gates.xml",
    )
)
@click.argument("run", type=NamedPath(), required=False)
@option_of_run
@options_of_gates(baseline=False)
@options_of_outputs
@in_own_process
@options_of_analysis
def check(  # noqa: PLR0913, PLR0917 - one parameter an option of the command line
    run: Path | None,
    named: Path | None,
    fail_on: tuple[str, ...],
    warn_on: tuple[str, ...],
    config: Path | None,
    redacted: bool,  # noqa: FBT001 - click passes flags so
    options: Options,
    **paths: Path | None,
) -> NoReturn:
    """Check a run against gates, without a baseline.

    RUN is a run folder or a samples CSV. Default: the newest run under ./gpu-runs. Missing parent folders of files to
    write are created.

    Exit code: 0 passed, 1 a gate failed, 3 not enough data to decide.
    """
    from gpu_report.analyse.compare import compare as compare_runs

    refuse_twice(paths.values())
    gates = gates_asked_for(fail_on, warn_on, config, baseline=False)
    refuse_job(asked := run_of(run, named))
    with ProgressLine("starting ...") as progress:
        analysis = analysed(asked, options, progress)
    comparison = compare_runs((), analysis, gates(analysis))
    finish(redacted_comparison(comparison) if redacted else comparison, paths)

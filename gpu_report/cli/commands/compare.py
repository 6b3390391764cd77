"""`compare`: a run beside its baselines, and the gates of a CI."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from gpu_report import run_folder
from gpu_report.baseline_store import BaselineSet, refuse_missing, runs_in
from gpu_report.cli.baseline_choice import baselines_in_set, newest_run_for, others, readable
from gpu_report.cli.common import NamedPath, analysed, options_of_analysis
from gpu_report.cli.gate_options import gates_asked_for, options_of_gates
from gpu_report.cli.gate_outputs import finish, options_of_outputs, redacted_comparison
from gpu_report.cli.help_text import examples
from gpu_report.cli.output_files import OutputFile, refuse_twice
from gpu_report.cli.own_process import in_own_process
from gpu_report.errors import NotComparableError, UsageError
from gpu_report.terminal import ProgressLine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpu_report.model import Analysis, Comparison, Gate, Options


@click.command(
    epilog=examples(
        "gpu-report compare gpu-runs/before gpu-runs/after",
        "gpu-report compare gpu-runs/before gpu-runs/after --fail-on 'epoch_time:+5%'",
        "gpu-report compare gpu-runs/after --baseline-dir baselines --junit gates.xml",
    )
)
@click.argument("baseline", type=NamedPath(), required=False)
@click.argument("run", type=NamedPath(), required=False)
@click.option(
    "--baseline-dir",
    type=NamedPath(file_okay=False),
    default=None,
    metavar="FOLDER",
    help="A folder of baselines: those with the set-up of RUN are taken. Then name only RUN.",
)
@click.option("--key", default="default", metavar="NAME", help="Name of the baselines. Default: default.")
@options_of_gates(baseline=True)
@click.option("--html", "html_path", metavar="FILE", type=OutputFile(), default=None, help="Write a page here.")
@options_of_outputs
@in_own_process
@options_of_analysis
def compare(  # noqa: PLR0913, PLR0917 - one parameter an option of the command line
    baseline: Path | None,
    run: Path | None,
    baseline_dir: Path | None,
    key: str,
    fail_on: tuple[str, ...],
    warn_on: tuple[str, ...],
    config: Path | None,
    html_path: Path | None,
    redacted: bool,  # noqa: FBT001 - click passes flags so
    options: Options,
    **paths: Path | None,
) -> NoReturn:
    """Compare a run with a baseline: faster, slower or the same.

    BASELINE is a run, or a folder of several runs: they show how much runs differ by chance. With one name alone, it is
    the BASELINE and RUN is the newest run under ./gpu-runs. With --baseline-dir, one name is the RUN. Missing parent
    folders of files to write are created.

    Exit code: 0 passed, 1 a gate failed, 3 not comparable, or not enough data to decide.
    """
    refuse_twice((*paths.values(), html_path))
    gates = gates_asked_for(fail_on, warn_on, config, baseline=True)
    refuse_missing([path for path in (baseline, run) if path is not None])

    def analyse(path: Path | None) -> Analysis:
        with ProgressLine("starting ...") as progress:
            return analysed(path, options, progress)

    shelf = None if baseline_dir is None else BaselineSet(baseline_dir, key)
    path, find = _sides(baseline, run, shelf)
    after = analyse(path)

    def before() -> Sequence[Analysis]:
        found = readable(others(find(after), path), analyse)
        return found if shelf else sorted(found, key=lambda each: -each.run.start_wall_s)

    comparison = _compared(after, gates(after), before)
    finish(redacted_comparison(comparison) if redacted else comparison, {**paths, "html_path": html_path})


def _sides(
    baseline: Path | None, run: Path | None, shelf: BaselineSet | None
) -> tuple[Path, Callable[[Analysis], Sequence[Path]]]:
    """Return the run, and what finds its baselines once it is analysed; UsageError where too few or many are named."""
    if shelf is None:
        if baseline is None:
            raise UsageError(
                "name a baseline: gpu-report compare BASELINE RUN, or gpu-report compare RUN --baseline-dir FOLDER"
            )
        path = run if run is not None else newest_run_for(baseline)
        return path, lambda _: runs_in(baseline, but=path)
    if run is not None:
        raise UsageError("with --baseline-dir, name only the run: it is compared with the baselines in that folder")
    path = baseline if baseline is not None else run_folder.newest_run(Path(run_folder.RUNS_DIR))
    return path, lambda after: baselines_in_set(shelf, path, after)


def _compared(run: Analysis, gates: Sequence[Gate], find: Callable[[], Sequence[Analysis]]) -> Comparison:
    """Return a run compared with the baselines that are found; without one nothing is measured, and it is said why."""
    from gpu_report.analyse.compare import compare as compare_runs
    from gpu_report.analyse.compare import without_baseline

    try:
        baselines = find()
    except NotComparableError as error:
        return without_baseline(run, gates, str(error))
    return compare_runs(baselines, run, gates)

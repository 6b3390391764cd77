"""The commands of a gate in CI: `compare`, `check` and `baseline accept`. Exit 0: passed, 1: failed, 3: cannot tell."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from gpu_report import run_folder
from gpu_report.baseline_store import KEPT, Shelf, runs_in
from gpu_report.cli.baselines import fitting, newest_beside, of_shelf, others, readable
from gpu_report.cli.common import analysed, option_of_run, options_of_analysis, run_of, say
from gpu_report.cli.gate_options import gates_asked_for, options_of_gates
from gpu_report.cli.output_files import OutputFile, refuse_twice, write
from gpu_report.errors import NotComparableError, UsageError
from gpu_report.terminal import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gpu_report.cli.common import Command
    from gpu_report.model import Analysis, Comparison, Gate


OUTPUTS = {
    "json": "Write everything for machines here (docs/compare.schema.json).",
    "markdown": "Write a summary for a pull request here.",
    "junit": "Write JUnit XML here, a test case a gate.",
    "bencher": "Write Bencher Metric Format here.",
    "smaller-is-better": "Write github-action-benchmark's customSmallerIsBetter here.",
    "bigger-is-better": "Write github-action-benchmark's customBiggerIsBetter here.",
}


def options_of_outputs(command: Command) -> Command:
    """Add the options that name files to write, and what may stand in them."""
    command = click.option(
        "--redact",
        "redacted",
        is_flag=True,
        help="For sharing: replace hosts, users, folders, commands, addresses and serial numbers by placeholders.",
    )(command)
    for option, words in reversed(OUTPUTS.items()):
        name = f"{option.replace('-', '_')}_path"
        command = click.option(f"--{option}", name, type=OutputFile(), default=None, help=words)(command)
    return command


@click.command()
@click.argument("baseline", type=click.Path(path_type=Path), required=False)
@click.argument("run", type=click.Path(path_type=Path), required=False)
@click.option(
    "--baseline-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=None,
    help="Take the baselines from here, those of the same set-up; name RUN alone then.",
)
@click.option("--key", default="default", show_default=True, help="Which baselines of --baseline-dir.")
@options_of_gates
@click.option("--html", "html_path", type=OutputFile(), default=None, help="Write a page here.")
@options_of_outputs
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
    drop_percent: float,
    drop_seconds: float,
    price_per_hour: float | None,
    **paths: Path | None,
) -> NoReturn:
    """Hold RUN against BASELINE: better, worse, the same or not comparable; exit 0, 1 or 3 by the gates.

    BASELINE is a run, or a folder of several, which give a noise band. A single name is the BASELINE: RUN is the newest
    under ./gpu-runs then. With --baseline-dir a single name is the RUN. Folders on the way to a file to write that are
    missing are made.
    """
    refuse_twice((*paths.values(), html_path))
    gates = gates_asked_for(fail_on, warn_on, config, baseline=True)

    def analyse(path: Path | None) -> Analysis:
        with Progress("starting ...") as progress:
            return analysed(path, drop_percent, drop_seconds, price_per_hour, progress)

    if baseline_dir is not None:
        if run is not None:
            raise UsageError("with --baseline-dir name the run alone: it is compared with the baselines there")
        path = baseline if baseline is not None else run_folder.newest_run(Path(run_folder.RUNS_DIR))
        after = analyse(path)
        comparison = _compared(
            after, gates, lambda: readable(others(of_shelf(Shelf(baseline_dir, key), path, after), path), analyse)
        )
    else:
        if baseline is None:
            raise UsageError("name a baseline: gpu-report compare BASELINE RUN, or compare RUN --baseline-dir DIR")
        path = run if run is not None else newest_beside(baseline)
        after, before = analyse(path), runs_in(baseline, but=path)
        comparison = _compared(
            after,
            gates,
            lambda: sorted(readable(others(before, path), analyse), key=lambda each: -each.run.start_wall_s),
        )
    _finish(_redacted(comparison) if redacted else comparison, {**paths, "html_path": html_path})


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
    from gpu_report.analyse.compare import compare as compare_runs  # noqa: PLC0415 - see cli.py

    refuse_twice(paths.values())
    gates = gates_asked_for(fail_on, warn_on, config, baseline=False)
    with Progress("starting ...") as progress:
        analysis = analysed(run_of(run, named), drop_percent, drop_seconds, price_per_hour, progress)
    comparison = compare_runs((), analysis, gates)
    _finish(_redacted(comparison) if redacted else comparison, paths)


@click.group()
def baseline() -> None:
    """Keep runs to compare later ones with."""


@baseline.command()
@click.argument("run", type=click.Path(path_type=Path), required=False)
@click.option(
    "--baseline-dir", type=click.Path(path_type=Path, file_okay=False), required=True, help="Where baselines are kept."
)
@click.option("--key", default="default", show_default=True, help="What they are of: a branch, a data set.")
@click.option(
    "--keep", type=click.IntRange(1), default=KEPT, show_default=True, help="How many of one set-up are kept."
)
@click.option("--if-none", is_flag=True, help="Only where RUN's set-up has no baseline yet, as in CI's first run.")
def accept(run: Path | None, baseline_dir: Path, key: str, keep: int, *, if_none: bool) -> None:
    """Make RUN the newest baseline of its set-up (the newest run under ./gpu-runs when left out)."""
    from gpu_report.analyse.compare import fingerprint_of, unfinished  # noqa: PLC0415 - see cli.py
    from gpu_report.analyse.compare.fingerprint import slug  # noqa: PLC0415 - see cli.py

    path = run if run is not None else run_folder.newest_run(Path(run_folder.RUNS_DIR))
    with Progress("starting ...") as progress:
        analysis = analysed(path, 50.0, 10.0, None, progress)
    if why := unfinished(analysis):
        raise NotComparableError(f"{path} is no baseline: {why}")
    known, shelf = fingerprint_of(analysis), Shelf(baseline_dir, key)
    if if_none and (there := _first_of(shelf, analysis)):
        say(f"note: {there} is a baseline of this set-up already: {path} does not become one (--if-none)")
        return
    click.echo(shelf.accept(path, slug(known), {"fingerprint": asdict(known)}, keep, _began(analysis)))


def _began(run: Analysis) -> str:
    """Return when a run began as a name, empty where that is no time that a calendar has."""
    try:
        return run_folder.name_of(run.run.start_wall_s)
    except (ValueError, OverflowError, OSError):
        return ""


def _first_of(shelf: Shelf, run: Analysis) -> Path | None:
    """Return the newest baseline of a run's set-up, None where there is none."""
    try:
        return fitting(shelf, run)[0][0].path
    except NotComparableError:
        return None


def _compared(run: Analysis, gates: Sequence[Gate], find: Callable[[], Sequence[Analysis]]) -> Comparison:
    """Return a run held against the baselines that are found; without one nothing is measured, and it is said why."""
    from gpu_report.analyse.compare import compare as compare_runs  # noqa: PLC0415 - see cli.py
    from gpu_report.analyse.compare import without_baseline  # noqa: PLC0415 - see cli.py

    try:
        baselines = find()
    except NotComparableError as error:
        return without_baseline(run, gates, str(error))
    return compare_runs(baselines, run, gates)


def _redacted(comparison: Comparison) -> Comparison:
    from gpu_report.render.redaction.redact import redact_comparison  # noqa: PLC0415 - see cli.py

    return redact_comparison(comparison)


def _finish(comparison: Comparison, paths: Mapping[str, Path | None]) -> NoReturn:
    """Write the files that were asked for, print what came of it, and exit by the gates."""
    from gpu_report.render.comparison.github import annotations, muted  # noqa: PLC0415 - see cli.py
    from gpu_report.render.comparison.terminal import render_comparison_text  # noqa: PLC0415 - see cli.py

    for name, path in paths.items():
        if path is not None:
            write(path, _content(name.removesuffix("_path"), comparison))
    text = render_comparison_text(comparison, colour=sys.stdout.isatty())
    if os.environ.get("GITHUB_ACTIONS") == "true":
        text = muted(text) + "".join(f"{line}\n" for line in annotations(comparison))
    click.echo(text, nl=False)
    _add_step_summary(comparison)
    sys.exit(comparison.exit_code)


def _content(name: str, comparison: Comparison) -> str:
    """Return what a file of this name holds."""
    from gpu_report.render.comparison import benchmark_services  # noqa: PLC0415 - see cli.py
    from gpu_report.render.comparison.comparison_json import build_comparison  # noqa: PLC0415 - see cli.py
    from gpu_report.render.comparison.junit import render_junit  # noqa: PLC0415 - see cli.py
    from gpu_report.render.comparison.markdown import render_comparison_markdown  # noqa: PLC0415 - see cli.py
    from gpu_report.render.comparison.page import render_comparison_html  # noqa: PLC0415 - see cli.py

    makers: Mapping[str, Callable[[], str]] = {
        "html": lambda: render_comparison_html(comparison),
        "json": lambda: _json(build_comparison(comparison)),
        "markdown": lambda: render_comparison_markdown(comparison),
        "junit": lambda: render_junit(comparison),
        "bencher": lambda: _json(benchmark_services.bencher(comparison)),
        "smaller_is_better": lambda: _json(benchmark_services.github_benchmark(comparison, bigger_is_better=False)),
        "bigger_is_better": lambda: _json(benchmark_services.github_benchmark(comparison, bigger_is_better=True)),
    }
    return makers[name]()


def _json(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _add_step_summary(comparison: Comparison) -> None:
    """Append the Markdown to the job's summary where GitHub asks for one; a summary that cannot be is no failure."""
    from gpu_report.render.comparison.markdown import render_comparison_markdown  # noqa: PLC0415 - see cli.py

    path = os.environ.get("GITHUB_STEP_SUMMARY")
    if not path:
        return
    try:
        with Path(path).open("a", encoding="utf-8") as summary:
            summary.write(render_comparison_markdown(comparison))
    except OSError as error:
        say(f"note: {path} cannot be written: {error.strerror}")

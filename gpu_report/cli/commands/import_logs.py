"""`import`: a run folder from what another tool logged."""

from __future__ import annotations

import errno
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from gpu_report.cli.common import FiniteRange, NamedPath, say, say_notes
from gpu_report.cli.help_text import examples
from gpu_report.cli.option_groups import as_one
from gpu_report.errors import InputError, UsageError
from gpu_report.imports.format_names import AUTO, NAMES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_report.imports.selection import Selection

PROFILER = "profiler"
MOST_NAMED = 10  # missing logs: of more the shell's pattern is what to look at
NO_OUTPUT = "name the run folder to create with --output, or with --run the one that traces belong to"


class Asked(NamedTuple):
    """Which part of what is logged is asked for, as it is typed; all but the labels of a Prometheus server alone."""

    labels: tuple[str, ...]
    start: str | None
    end: str | None
    step: float | None


# By the arguments of imports.import_logs, to which they go.
options_beside_logs = as_one(
    "beside",
    dict,
    (
        click.option(
            "--yolo",
            metavar="FOLDER",
            type=NamedPath(),
            default=None,
            help="Where YOLO wrote its args.yaml and results.csv.",
        ),
        click.option(
            "--kernel-log",
            type=NamedPath(),
            default=None,
            metavar="FILE",
            help="A kernel log: from dmesg, /dev/kmsg, journalctl or kern.log.",
        ),
        click.option(
            "--timezone",
            default=None,
            metavar="ZONE",
            help="Time zone of the logs, such as Europe/Berlin. Default: the local one.",
        ),
        click.option(
            "--boot-time",
            default=None,
            metavar="TIME",
            help="For a plain dmesg: when that machine booted (ISO 8601, or seconds since 1970).",
        ),
    ),
)
options_of_selection = as_one(
    "asked",
    Asked,
    (
        click.option(
            "--label",
            "labels",
            multiple=True,
            metavar="NAME=VALUE",
            help="Import only what has this label, such as Hostname=node1, pod=NAME, hpc_job=4711 or run=ID (MLflow).",
        ),
        click.option(
            "--start",
            default=None,
            metavar="TIME",
            help="Prometheus: first time to fetch, written as for --train-start.",
        ),
        click.option("--end", default=None, metavar="TIME", help="Prometheus: last time to fetch."),
        click.option(
            "--step",
            type=FiniteRange(min=1),
            default=None,
            metavar="S",
            help="Prometheus: seconds between points. Default: as scraped.",
        ),
    ),
)


@click.command(
    "import",
    epilog=examples(
        "gpu-report import smi.csv --output run",
        "gpu-report import smi.csv --yolo runs/detect/train --output run",
        "gpu-report import smi.csv --kernel-log dmesg.txt --output run",
        "gpu-report import runs/detect/train --from tensorboard --output run",
        "gpu-report import dmon.txt pmon.txt --yolo runs/detect/train --output run",
        "gpu-report import http://prometheus:9090 --label Hostname=node1 \\",
        "    --start 2026-11-21T08:00 --end 2026-11-21T12:00 --output run",
        "gpu-report import trace.json --run gpu-runs/20261121-103501",
        "gpu-report import trace.json --output run  # without a recording",
        "# how to log:",
        "nvidia-smi --query-gpu=timestamp,index,utilization.gpu,memory.used \\",
        "    --format=csv -l 1 > smi.csv",
    ),
)
@click.argument("logs", nargs=-1, required=True)
@click.option(
    "--from",
    "source",
    type=click.Choice([AUTO, *NAMES, PROFILER]),
    default=AUTO,
    metavar="NAME",
    help=f"The tool that wrote the logs: {', '.join((*NAMES, PROFILER))}. Default: auto, by the content of each.",
)
@click.option("--output", metavar="FOLDER", type=NamedPath(), default=None, help="The run folder to create.")
@click.option(
    "--run",
    metavar="RUN",
    type=NamedPath(),
    default=None,
    help="A run folder: LOGS are traces of PyTorch's profiler, which are put into it.",
)
@options_beside_logs
@options_of_selection
@click.option(
    "--train-start",
    default=None,
    metavar="TIME",
    help="When training started, if results.csv lost its file time.",
)
def import_logs(  # noqa: PLR0913, PLR0917 - one parameter an option of the command line
    logs: tuple[str, ...],
    source: str,
    output: Path | None,
    run: Path | None,
    beside: dict[str, Any],
    asked: Asked,
    train_start: str | None,
) -> None:
    """Make a run folder from the logs of another tool.

    LOGS are what nvidia-smi (query, dmon, pmon) or another tool wrote; logs of the same minutes become one run. They
    may be TensorBoard's events.out.tfevents... or their folder. Traces (.json, .json.gz) of PyTorch's profiler go
    alone, or with --run into the run that was recorded meanwhile. The address of a Prometheus server that scrapes
    dcgm-exporter is a log, too.
    """
    paths = tuple(Path(log) for log in logs if not _is_server(log))
    _refuse_missing(paths)
    if _are_traces(paths, source, run):
        if source not in {AUTO, PROFILER} or any((*beside.values(), train_start)):
            raise UsageError("for a trace of PyTorch's profiler name --run or --output, and nothing else")
        if run is not None:
            _import_traces(paths, run, output)
        else:
            _import_traces_alone(paths, output)
        return
    if output is None:
        raise UsageError(NO_OUTPUT)
    from gpu_report.imports.import_logs import import_logs as make_run

    selection = _selection(logs, asked, beside["timezone"])
    notes = make_run(paths, output, source=source, train_start=train_start, selection=selection, **beside)
    say_notes(notes)
    _say_imported(output)


def _refuse_missing(logs: Sequence[Path]) -> None:
    """Raise InputError that names all logs that are not there, where there are several: of one its reader says it."""
    missing = [str(log) for log in logs if _is_missing(log)]
    if len(missing) > 1:
        from gpu_report.wording import few_names

        named = few_names(missing, MOST_NAMED)
        raise InputError(f"{named} cannot be read ({os.strerror(errno.ENOENT)}): name logs that a tool wrote")


def _is_missing(log: Path) -> bool:
    try:
        return not log.exists()
    except OSError:  # the way to it is barred, or its name is too long
        return False


def _is_server(log: str) -> bool:
    return log.startswith(("http://", "https://"))


def _selection(logs: tuple[str, ...], asked: Asked, zone: str | None) -> Selection:
    """Return what is asked of Prometheus; UsageError where it cannot be."""
    from gpu_report.imports import times
    from gpu_report.imports.selection import Selection

    servers = [log for log in logs if _is_server(log)]
    if len(servers) > 1:
        raise UsageError("name one server: its address says all but --label, --start and --end")
    pairs = [label.partition("=") for label in asked.labels]
    if wrong := next((label for label, pair in zip(asked.labels, pairs, strict=True) if not all(pair)), None):
        raise UsageError(f"--label {wrong!r} is no NAME=VALUE, such as Hostname=node1")
    start_s = times.moment(asked.start, "--start", times.zone(zone))
    end_s = times.moment(asked.end, "--end", times.zone(zone))
    chosen = tuple((name, value) for name, _, value in pairs)
    return Selection(chosen, servers[0] if servers else None, start_s, end_s, asked.step)


def _are_traces(logs: tuple[Path, ...], source: str, run: Path | None) -> bool:
    """Tell whether logs are the profiler's, by what the user says, else by their names and content."""
    if run is not None or source != AUTO:
        return run is not None or source == PROFILER
    if not logs or not all(log.name.endswith((".json", ".json.gz")) for log in logs):
        return False
    from gpu_report.imports.formats import is_known

    return not any(map(is_known, logs))


def _say_imported(output: Path) -> None:
    say(f"imported into {output}. Next: `{shlex.join(['gpu-report', 'render', 'report.html', str(output)])}`")


def _import_traces_alone(logs: tuple[Path, ...], output: Path | None) -> None:
    if output is None:
        raise UsageError(NO_OUTPUT)
    from gpu_report.imports.profiler_trace import import_traces_alone
    from gpu_report.load.trace import load_trace

    import_traces_alone(logs, load_trace, output)
    _say_imported(output)


def _import_traces(logs: tuple[Path, ...], run: Path, output: Path | None) -> None:
    if output is not None:
        raise UsageError("--run and --output exclude each other: a trace goes into a run that there is")
    from gpu_report.imports.profiler_trace import import_traces
    from gpu_report.load.trace import load_trace

    for log in logs:
        load_trace(log)  # what is none goes nowhere
    for path in import_traces(logs, run):
        say(f"imported {path}")
    say(f"Next: `{shlex.join(['gpu-report', 'render', 'report.html', str(run)])}`")

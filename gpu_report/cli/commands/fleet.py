"""`fleet`: many runs, as tables and as one report."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpu_report.cli.common import CountRange, NamedPath, option_of_price, say
from gpu_report.cli.help_text import CommandList, examples
from gpu_report.cli.output_files import OutputFile, write
from gpu_report.terminal import ProgressLine, is_terminal

if TYPE_CHECKING:
    from gpu_report.fleet.index import Indexed
    from gpu_report.fleet.store import Shard
    from gpu_report.fleet.workers import Workers

SHOWN_REASONS = 5
LARGEST_SHARDS = 100_000
GROUPINGS = ("user", "project", "cause", "gpu", "week", "host", "model")


class ShardOption(click.ParamType):  # type: ignore[type-arg] # generic in some versions of click
    """Two numbers as I/N: the I-th of N shards."""

    name = "i/n"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, int]:
        """Return both numbers; wrong use where that is none of so many."""
        if isinstance(value, tuple):
            return value
        found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", str(value))
        number, count = (int(found[1]), int(found[2])) if found else (0, 0)
        if not 1 <= number <= count <= LARGEST_SHARDS:
            self.fail(f"{value!r} is no share: 1/4 is the first of four", param, ctx)
        return number, count


@click.group(
    cls=CommandList,
    epilog=examples(
        "gpu-report fleet index /data/runs --output fleet",
        "gpu-report fleet report fleet fleet.html --price-per-hour 2.5",
    ),
)
def fleet() -> None:
    """Report on many runs: GPU hours and money by user, project, cause, GPU and week."""


@fleet.command(
    epilog=examples(
        "gpu-report fleet index /data/runs /home/*/gpu-runs --output fleet",
        "gpu-report fleet index s3://bucket/runs --output fleet",
        "gpu-report fleet index /data/runs --output fleet --scheduler tcp://head:8786",
        "gpu-report fleet index /data/runs --output fleet --shard 3/16",
    )
)
@click.argument("folders", nargs=-1, required=True, metavar="FOLDER...")
@click.option(
    "--output",
    type=NamedPath(),
    required=True,
    metavar="FLEET",
    help="The folder of the tables. It is created, or brought up to date.",
)
@click.option("--jobs", type=CountRange(1, 1024), default=None, metavar="N", help="Processes. Default: one a core.")
@click.option("--scheduler", default=None, metavar="ADDRESS", help="Use the workers of this Dask scheduler.")
@click.option("--shard", type=ShardOption(), default=None, metavar="I/N", help="Only the I-th of N equal shares.")
def index(
    folders: tuple[str, ...], output: Path, jobs: int | None, scheduler: str | None, shard: tuple[int, int] | None
) -> None:
    """Analyse the runs below some folders, each once, into Parquet tables.

    FOLDER is a folder of this machine, or a URL such as s3://bucket/runs. A run is analysed again when it or the
    version of gpu-report has changed.
    """
    from gpu_report.fleet.index import index as index_runs
    from gpu_report.wording import counted

    with ProgressLine("starting ...") as progress:
        done = index_runs(folders, output, lambda: _workers(jobs, scheduler), _shard(shard), progress.step)
    for folder in done.unread:
        say(f"note: {folder} cannot be listed: what the fleet has of it stays")
    for folder in done.empty:
        say(f"note: {folder} is empty: what the fleet has of it stays; mount its disk, or remove the folder")
    _say_reasons(done)
    parts = [counted(done.runs, "run"), f"{done.read:,} analysed now"]
    parts += [f"{done.removed:,} removed"] if done.removed else []
    parts += [f"{done.failed:,} cannot be read"] if done.failed else []
    click.echo(f"{output}: {', '.join(parts)}")


def _shard(shard: tuple[int, int] | None) -> Shard:
    from gpu_report.fleet.store import WHOLE, Shard

    return WHOLE if shard is None else Shard(*shard)


def _workers(jobs: int | None, scheduler: str | None) -> Workers:
    from gpu_report.fleet.workers import dask, processes

    return processes(jobs) if scheduler is None else dask(scheduler)


def _say_reasons(done: Indexed) -> None:
    from gpu_report.wording import counted

    for path, reason in done.reasons[:SHOWN_REASONS]:
        say(f"note: {reason if path in reason else f'{path}: {reason}'}")
    if (more := len(done.reasons) - SHOWN_REASONS) > 0:
        say(f"note: {counted(more, 'more run')} cannot be read: the report of the fleet lists them")


@fleet.command(
    epilog=examples(
        "gpu-report fleet report fleet",
        "gpu-report fleet report fleet --by project --price-per-hour 2.5",
        "gpu-report fleet report fleet fleet.html --price-per-hour 2.5",
        "gpu-report fleet report fleet data.html --cause input-cpu",
    )
)
@click.argument("folder", type=NamedPath(), metavar="FLEET")
@click.argument("output", type=OutputFile(), required=False, metavar="[OUTPUT.html]")
@click.option("--by", type=click.Choice(GROUPINGS), default=None, help="Group runs by this. Default: several.")
@click.option(
    "--cause",
    default=None,
    metavar="NAME",
    help="Only the runs that lost time to this cause: its id, or its name in the report.",
)
@option_of_price
def report(folder: Path, output: Path | None, by: str | None, cause: str | None, price_per_hour: float | None) -> None:
    """Report where the GPU hours of a fleet went, what would have saved them, and the worst runs.

    FLEET is a folder that `fleet index` wrote. Without OUTPUT.html the report is printed.
    """
    from gpu_report.fleet.figures import read_fleet

    with ProgressLine("reading the tables ..."):
        read = read_fleet(folder, price_per_hour, cause)
        if output is not None:
            from gpu_report.fleet.page import render_fleet_html

            write(output, render_fleet_html(read, output, by))
    if output is not None:
        from gpu_report.fleet.words import headline

        click.echo(f"{output}: {headline(read)}")
        return
    from gpu_report.fleet.report_text import render_fleet_text

    click.echo(render_fleet_text(read, by, colour=is_terminal(sys.stdout)), nl=False)

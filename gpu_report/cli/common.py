"""What the commands share: options of the analysis, words to the user, and whole files or none."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gpu_report import run_folder
from gpu_report.baseline_store import one_run
from gpu_report.cli.option_groups import as_one
from gpu_report.errors import UsageError
from gpu_report.terminal import ERASE_LINE, ProgressLine, is_terminal, width_of, with_command_lines, without_commands

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from gpu_report.model import Analysis, Options, Run

LONGEST_LINE = 1000  # characters
HIGHEST_PRICE = 1e9  # of one GPU for one hour: above what it costs in any currency
LONGEST_DROP_S = 86_400.0  # s
Command = TypeVar("Command", bound="Callable[..., object]")


class NamedPath(click.Path):
    """A path that has a name: an empty one would be the folder where one stands, and comes of a variable not set."""

    def __init__(self, **limits: Any) -> None:
        super().__init__(path_type=Path, **limits)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; wrong use for an empty one."""
        if value == "":
            self.fail("the name is empty; is a variable not set?", param, ctx)
        return super().convert(value, param, ctx)


class FiniteRange(click.FloatRange):
    """A number within limits: nan is within none, and inf is no duration, price or share."""

    name = "number"

    def _describe_range(self) -> str:
        """Return nothing, which click would show in the help as [x>0]: an option that has limits says so in words."""
        return ""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number; wrong use for what is none, or lies outside."""
        try:
            number = float(value)
        except ValueError:
            self.fail(f"{value!r} is not a number.", param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a number in range.", param, ctx)
        if not _is_within(self, number):
            self.fail(f"{value} is out of range: {_limits(self)}.", param, ctx)
        return number


def _is_within(limits: click.FloatRange | click.IntRange, number: float) -> bool:
    low = limits.min is None or number > limits.min or (number == limits.min and not limits.min_open)
    return low and (limits.max is None or number < limits.max or (number == limits.max and not limits.max_open))


def _limits(limits: click.FloatRange | click.IntRange) -> str:
    """Return limits in words: above 0, at least 1 and at most 100."""
    low = "" if limits.min is None else f"{'above' if limits.min_open else 'at least'} {limits.min:,.15g}"
    high = "" if limits.max is None else f"{'below' if limits.max_open else 'at most'} {limits.max:,.15g}"
    return " and ".join(filter(None, (low, high)))


class CountRange(click.IntRange):
    """A whole number within limits."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number; wrong use for what is none, or lies outside."""
        try:
            number = int(value)
        except ValueError:
            self.fail(f"{value!r} is not a whole number.", param, ctx)
        if not _is_within(self, number):
            self.fail(f"{value} is out of range: {_limits(self)}.", param, ctx)
        return number

    def _describe_range(self) -> str:
        """Return nothing, as FiniteRange does."""
        return ""


def option_of_run(command: Command) -> Command:
    """Add --run, which names the run as a second argument does: nobody is to remember which command takes which."""
    option = click.option("--run", "named", metavar="RUN", type=NamedPath(), default=None, help="The same as RUN.")
    return option(command)


def run_of(run: Path | None, named: Path | None) -> Path | None:
    """Return the run that was named, as an argument or by --run; UsageError where both name one."""
    if run is not None and named is not None and run != named:
        raise UsageError(f"two runs are named, {run} and --run {named}: name only one")
    return run if run is not None else named


option_of_price = click.option(
    "--price-per-hour",
    type=FiniteRange(0, HIGHEST_PRICE),
    default=None,
    metavar="PRICE",
    help="Price of one GPU for one hour: also show what the time cost.",
)
option_to_redact = click.option(
    "--redact",
    "redacted",
    is_flag=True,
    help="For sharing: hide names of hosts, users, folders and commands, addresses and serial numbers.",
)


def _options(**values: float | None) -> Options:
    from gpu_report.model import Options

    return Options(**values)  # type: ignore[arg-type] # click sees to it that only a price is None


options_of_analysis = as_one(
    "options",
    _options,
    (
        option_of_price,
        click.option(
            "--drop-seconds",
            type=FiniteRange(0, LONGEST_DROP_S, min_open=True),
            default=10.0,
            metavar="SECONDS",
            help="A drop lasts this long or longer. Default: 10.",
        ),
        click.option(
            "--drop-percent",
            type=FiniteRange(0, 100, min_open=True, max_open=True),
            default=50.0,
            metavar="PERCENT",
            help="A drop is a fall of utilisation by more than this. Default: 50.",
        ),
    ),
)


def say(line: str) -> None:
    """Print one line to stderr, in place of a line of progress; a closed stderr is not worth ending a recording for.

    The commands in it stand on lines of their own, to be copied. Of a line that quotes far too much of a file the
    beginning is printed.
    """
    line = (
        line
        if len(line) <= LONGEST_LINE
        else f"{line[:LONGEST_LINE]} ... ({len(line) - LONGEST_LINE:,} more characters)"
    )
    try:
        at_start = ERASE_LINE if is_terminal(sys.stderr) else ""
        said = with_command_lines(f"gpu-report: {line}", width_of(sys.stderr))
        click.echo(f"{at_start}{without_commands(said)}", err=True)
    except (OSError, ValueError):
        return


def say_notes(notes: tuple[str, ...]) -> None:
    """Print notes to stderr, a line each."""
    for note in notes:
        say(f"note: {note}")


def analysed(run: Path | None, options: Options | None, progress: ProgressLine) -> Analysis:
    """Return the analysis of a run, the newest one where none is named; what could not be read is reported."""
    return examined(read(folder_of(run), progress), options, progress)


def folder_of(run: Path | None) -> Path:
    """Return a run's folder, the newest one's where none is named; InputError where that is none."""
    return one_run(run) if run is not None else run_folder.newest_run(Path(run_folder.RUNS_DIR))


def read(folder: Path, progress: ProgressLine) -> Run:
    """Return what was recorded of a run; what could not be read is reported."""
    from gpu_report.load import load_run

    progress.step(f"reading {folder} ...")
    recorded = load_run(folder)
    say_notes(recorded.problems)
    return recorded


def examined(
    recorded: Run, options: Options | None, progress: ProgressLine, meanwhile: Executor | None = None
) -> Analysis:
    """Return the analysis of what was recorded, by the usual options where none are given."""
    from gpu_report.analyse import analyse

    progress.step("finding where the GPU time went ...")
    return analyse(recorded, options, meanwhile=meanwhile)

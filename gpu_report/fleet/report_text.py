"""A fleet for a terminal: where GPU hours went, what would have saved them, the worst runs. Controls are not sent."""

from __future__ import annotations

import io

from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from gpu_report.fleet import words
from gpu_report.fleet.figures import BY, Fleet
from gpu_report.fleet.words import FleetTable
from gpu_report.terminal import plain, without_commands
from gpu_report.wording import counted

ROWS_OF_MANY = 8  # of each table where there are several
WORST_SHOWN = 10
UNBROKEN = 10_000  # columns: wider than any table


def render_fleet_text(fleet: Fleet, by: str | None = None, *, width: int | None = None, colour: bool = False) -> str:
    """Return a fleet for a terminal of `width` columns; `by` is the one grouping to show.

    When None that is the real one's; where nobody looks (without colour) no line is broken.
    """
    out = io.StringIO()
    width = width or (None if colour else UNBROKEN)
    console = Console(file=out, width=width, force_terminal=colour, highlight=False, soft_wrap=False)
    console.print(Text(plain(words.headline(fleet)), style="bold"))
    for sentence in words.what_to_do(fleet):
        console.print(Text(plain(sentence)))
    for table in (words.group_table(fleet, by),) if by else _all(fleet):
        if table.rows:
            console.print()
            _print(console, table)
            if table.more:
                console.print(Text(f"... and {counted(table.more, 'more row')}", style="dim"))
    if fleet.unread:
        console.print()
        said = f"{counted(len(fleet.unread), 'run')} cannot be read: `SELECT path, error` of the table manifest."
        console.print(Text(said, style="yellow"))
    return without_commands(out.getvalue())


def _all(fleet: Fleet) -> list[FleetTable]:
    first, *others = (words.group_table(fleet, by, ROWS_OF_MANY) for by in BY if by not in {"host", "model"})
    rest = (words.worst_table(fleet, WORST_SHOWN), words.held_table(fleet, ROWS_OF_MANY))
    return [words.fix_table(fleet), first, *others, *rest, words.after_end_table(fleet, ROWS_OF_MANY)]


def _print(console: Console, table: FleetTable) -> None:
    """Print a table; a path that it would break stands above its row, on a line that the terminal alone breaks."""
    made = _table(table)
    natural = Measurement.get(console, console.options.update(max_width=UNBROKEN), made).maximum
    if not table.has_paths or natural <= console.width:
        console.print(made)
        return
    console.print(Text(table.title, style="bold"))
    widths = [max(map(cell_len, column)) for column in zip(table.columns, *table.rows, strict=True)]
    for number, cells in enumerate((table.columns, *table.rows)):
        console.print(Text(plain(cells[0]), style="" if number else "bold"), soft_wrap=True)
        sides = zip(cells[1:], widths[1:], table.numeric[1:], strict=True)
        rest = "  ".join(_padded(plain(cell), width, right=right) for cell, width, right in sides)
        console.print(Text(f"    {rest}".rstrip(), style="" if number else "bold"), soft_wrap=True)


def _padded(text: str, width: int, *, right: bool) -> str:
    spaces = " " * (width - cell_len(text))
    return f"{spaces}{text}" if right else f"{text}{spaces}"


def _table(table: FleetTable) -> Table:
    made = Table(title=table.title, title_justify="left", box=None, pad_edge=False, title_style="bold")
    for place, name in enumerate(table.columns):
        right = table.numeric[place]
        made.add_column(name, justify="right" if right else "left", overflow="fold", no_wrap=right)
    for row in table.rows:
        made.add_row(*(Text(plain(cell)) for cell in row))
    return made

"""A fleet for a terminal: where GPU hours went, what would have saved them, the worst runs. Controls are not sent."""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpu_report.fleet import words
from gpu_report.fleet.figures import BY, Fleet
from gpu_report.fleet.words import FleetTable
from gpu_report.terminal import plain, without_commands
from gpu_report.wording import counted

ROWS_OF_MANY = 8  # of each table where there are several
WORST_SHOWN = 10


def render_fleet_text(fleet: Fleet, by: str | None = None, *, width: int | None = None, colour: bool = False) -> str:
    """Return a fleet for a terminal of `width` columns (the real one's when None); `by` is the one grouping to show."""
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=colour, highlight=False, soft_wrap=False)
    console.print(Text(plain(words.headline(fleet)), style="bold"))
    for sentence in words.what_to_do(fleet):
        console.print(Text(plain(sentence)))
    for table in (words.group_table(fleet, by),) if by else _all(fleet):
        if table.rows:
            console.print()
            console.print(_table(table))
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


def _table(table: FleetTable) -> Table:
    made = Table(title=table.title, title_justify="left", box=None, pad_edge=False, title_style="bold")
    for place, name in enumerate(table.columns):
        right = table.numeric[place]
        made.add_column(name, justify="right" if right else "left", overflow="fold", no_wrap=right)
    for row in table.rows:
        made.add_row(*(Text(plain(cell)) for cell in row))
    return made

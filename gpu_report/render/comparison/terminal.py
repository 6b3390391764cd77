"""A comparison for a terminal: answer, verdict, table, findings, gates. Controls from outside are not sent."""

import io
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpu_report.model import Comparison
from gpu_report.render.comparison.rows import (
    INTERVAL,
    LINES_TITLE,
    code_line_rows,
    difference_rows,
    filled,
    finding_rows,
    first_words,
    gate_rows,
    metric_notes,
    metric_rows,
    outcome_words,
    run_name,
    to_do,
)
from gpu_report.render.formatting import utc
from gpu_report.terminal import plain, with_command_lines, without_commands

Rows = Sequence[tuple[str, ...]]

SAID_BY_LABEL = (" images/s", "/image")  # 80 columns have no room for it twice
NOT_BROKEN = frozenset({"", INTERVAL})  # headers of columns
OUTCOMES = {"failed": "bold red", "not measured": "bold yellow", "passed": "bold green"}
COLOURS = {
    "failed": "red",
    "warning": "yellow",
    "undecided": "yellow",
    "passed": "green",
    "worse": "red",
    "better": "green",
    "slower": "red",
    "faster": "green",
    "within the band": "yellow",
}


def render_comparison_text(comparison: Comparison, *, width: int | None = None, colour: bool = False) -> str:
    """Return a comparison for a terminal of `width` columns (the real one's when None)."""
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=colour, highlight=False, soft_wrap=False)
    _print(console, first_words(comparison), OUTCOMES[comparison.outcome] if comparison.gates else "bold")
    if what := to_do(comparison):
        _print(console, what)
    for line in _head(comparison):
        console.print(Text(plain(line)))
    for title, header, rows in _tables(comparison):
        if rows:
            console.print()
            console.print(_table(title, header, rows))
    console.print()
    for note in (*metric_notes(comparison), *comparison.notes):
        _print(console, note)
    if comparison.gates:
        console.print()
        _print(console, outcome_words(comparison), "bold")
    return without_commands(out.getvalue())


def _print(console: Console, text: str, style: str = "") -> None:
    """Print a paragraph, and its commands on lines of their own, which are never broken."""
    console.print(Text(with_command_lines(text, console.width), style=style), soft_wrap=True)


def _head(comparison: Comparison) -> list[str]:
    named = [*(("baseline", each) for each in comparison.baselines), ("run", comparison.run)]
    return [f"{role:<8}  {run_name(each)}  {utc(each.run.start_wall_s)}" for role, each in named]


def _tables(comparison: Comparison) -> list[tuple[str, tuple[str, ...], Rows]]:
    several = "baseline" if len(comparison.baselines) < 2 else f"{len(comparison.baselines)} baselines"
    metrics: Rows = [tuple(map(_short, row)) for row in metric_rows(comparison)]
    header: tuple[str, ...] = ("", several, "run", "change", INTERVAL, "")
    if not comparison.baselines:
        metrics, header = [(row[0], row[2]) for row in metrics], ("", "run")
    return [
        ("", *filled(header, metrics)),
        (LINES_TITLE, ("", "line", "baseline", "run", "change"), code_line_rows(comparison)),
        ("Changed settings", ("", "baseline", "run", ""), difference_rows(comparison)),
        ("Findings", ("", "what", "baseline", "run"), finding_rows(comparison)),
        ("Gates", ("", "gate", "result"), gate_rows(comparison)),
    ]


def _short(cell: str) -> str:
    return next((cell.removesuffix(end) for end in SAID_BY_LABEL if cell.endswith(end)), cell)


def _table(title: str, header: Sequence[str], rows: Rows) -> Table:
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False, title_style="bold")
    for place, name in enumerate(header):
        table.add_column(name, overflow="fold", no_wrap=place == 0 or name in NOT_BROKEN)
    for row in rows:
        table.add_row(*(Text(plain(cell), style=COLOURS.get(cell, "")) for cell in row))
    return table

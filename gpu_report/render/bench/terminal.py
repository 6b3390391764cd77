"""A benchmark for a terminal: what to choose, the table, what failed. Controls from outside are not sent."""

import io
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpu_report.model import BenchResult
from gpu_report.render.bench.rows import HEAD, failed_rows, headline, main_rows, notes, second_sentence
from gpu_report.terminal import plain, without_commands


def render_bench_text(result: BenchResult, *, width: int | None = None, colour: bool = False) -> str:
    """Return a benchmark for a terminal of `width` columns (the real one's when None)."""
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=colour, highlight=False, soft_wrap=False)
    console.print(Text(plain(headline(result)), style="bold"))
    if second := second_sentence(result):
        console.print(Text(plain(second)))
    if rows := main_rows(result):
        console.print()
        console.print(_table(HEAD, rows))
    console.print()
    for name, why in failed_rows(result):
        console.print(Text(plain(f"{name}: {why}"), style="yellow"))
    for note in notes(result):
        console.print(Text(plain(note)))
    return without_commands(out.getvalue())


def _table(head: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in head:
        is_name = name == "Variant"
        table.add_column(name, justify="left" if is_name else "right", overflow="fold", no_wrap=not is_name)
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    return table

"""A benchmark as Markdown, for pull requests and model cards."""

from collections.abc import Sequence

from gpu_report.model import BenchResult
from gpu_report.render.bench.rows import (
    FULL_SPEED_HEAD,
    HEAD,
    INTERVALS_HEAD,
    OUTPUTS_HEAD,
    PARTS_HEAD,
    START_HEAD,
    failed_rows,
    full_speed_rows,
    headline,
    notes,
    output_rows,
    part_rows,
    second_sentence,
    start_rows,
    wide_rows,
)
from gpu_report.render.markdown_text import words

Rows = Sequence[tuple[str, ...]]


def render_bench_markdown(result: BenchResult) -> str:
    """Return a benchmark as Markdown."""
    parts = ["## GPU report: benchmark", f"**{words(headline(result))}** {words(second_sentence(result))}".strip()]
    tables: Sequence[tuple[str, tuple[str, ...], Rows]] = (
        ("", (*HEAD, *INTERVALS_HEAD), wide_rows(result)),
        ("At full speed", FULL_SPEED_HEAD, full_speed_rows(result)),
        ("Parts of a call", PARTS_HEAD, part_rows(result)),
        ("Start", START_HEAD, start_rows(result)),
        ("Outputs", OUTPUTS_HEAD, output_rows(result)),
        ("Failed", ("Variant", "Why"), failed_rows(result)),
    )
    for title, head, rows in tables:
        if rows:
            parts.append(f"### {title}\n\n{_table(head, rows)}" if title else _table(head, rows))
    parts.append("\n".join(f"- {words(note)}" for note in notes(result)))
    return "\n\n".join(parts) + "\n"


def _table(head: tuple[str, ...], rows: Rows) -> str:
    lines = [head, tuple("---" for _ in head), *(tuple(map(words, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)

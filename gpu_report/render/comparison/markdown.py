"""A comparison as Markdown, for pull requests and $GITHUB_STEP_SUMMARY: small, and with nothing alive from outside."""

from collections.abc import Callable, Sequence

from gpu_report.model import Analysis, Comparison
from gpu_report.render.comparison.rows import (
    INTERVAL,
    LINES_TITLE,
    band_head,
    band_words,
    code_line_rows,
    difference_rows,
    filled,
    finding_rows,
    gate_rows,
    metric_notes,
    metric_rows,
    outcome_words,
    run_name,
    shown,
    to_do,
)
from gpu_report.render.formatting import utc
from gpu_report.render.markdown_text import code, prose, verdict, words
from gpu_report.wording import counted

MOST_BYTES = 60_000  # GitHub drops a comment of 64 kB, and a step's summaries over 1 MiB, as a whole
MOST_ROWS = 60
HEADINGS = {"failed": "failed", "passed": "passed", "not measured": "could not decide"}

Rows = Sequence[tuple[str, ...]]
Cell = Callable[[str], str]


def render_comparison_markdown(comparison: Comparison) -> str:
    """Return a comparison as Markdown of at most MOST_BYTES; the least important is left out."""
    heading = f"GPU report: the gate {HEADINGS[comparison.outcome]}" if comparison.gates else "GPU report: comparison"
    parts = [f"## {heading}", verdict(comparison.verdict)]
    parts += [prose(to_do(comparison)), prose(outcome_words(comparison))] if comparison.gates else []
    parts.append(_runs(comparison))
    for title, header, rows, is_open in _sections(comparison):
        part = _section(title, header, rows, is_open=is_open)
        if rows and _size([*parts, part]) < MOST_BYTES:
            parts.append(part)
    notes = "\n".join(f"- {prose(note)}" for note in (*metric_notes(comparison), *comparison.notes))
    if notes and _size([*parts, notes]) < MOST_BYTES:
        parts.append(notes)
    return "\n\n".join(part for part in parts if part) + "\n"


def _runs(comparison: Comparison) -> str:
    before = ", ".join(map(_run, comparison.baselines[:10]))
    baselines = "Baseline" if len(comparison.baselines) < 2 else counted(len(comparison.baselines), "baseline")
    return f"{f'{baselines} {before}; run' if before else 'Run'} {_run(comparison.run)}"


def _run(analysis: Analysis) -> str:
    return f"{code(run_name(analysis))} ({utc(analysis.run.start_wall_s)})"


def _sections(comparison: Comparison) -> list[tuple[str, tuple[str, ...], Rows, bool]]:
    """Return title, header, rows and whether it is unfolded, in order."""
    metrics: Rows = [tuple(map(words, row)) for row in metric_rows(comparison)]
    header: tuple[str, ...] = ("", "baseline", "run", "change", INTERVAL, "")
    if not comparison.baselines:
        metrics, header = [(row[0], row[2]) for row in metrics], ("", "run")
    elif differ := band_head(comparison):
        cells = [*map(band_words, shown(comparison)), ""]  # a row of stalls is no metric
        metrics = [(*row[:2], words(cell), *row[2:]) for row, cell in zip(metrics, cells, strict=False)]
        header = (*header[:1], "median", differ, *header[2:])
    gates = [
        (f"**{word}**" if word != "passed" else word, code(gate), words(said))
        for word, gate, said in gate_rows(comparison)
    ]
    lines = [(status, code(line), *values) for status, line, *values in code_line_rows(comparison)]
    changed = [(words(name), code(a), code(b), kind) for name, a, b, kind in difference_rows(comparison)]
    findings = [(status, *map(words, rest)) for status, *rest in finding_rows(comparison)]
    return [
        ("Gates", ("", "gate", "result"), gates, True),
        ("Metrics", *filled(header, metrics), True),
        (LINES_TITLE, ("", "line", "baseline", "run", "change"), lines, True),
        ("Changed settings", ("", "baseline", "run", ""), changed, True),
        ("Findings", ("", "what", "baseline", "run"), findings, False),
    ]


def _section(title: str, header: tuple[str, ...], rows: Rows, *, is_open: bool) -> str:
    lines = [header, tuple("---" for _ in header), *rows[:MOST_ROWS]]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    more = f"\n\nand {len(rows) - MOST_ROWS} more" if len(rows) > MOST_ROWS else ""
    if is_open:
        return f"### {title}\n\n{table}{more}"
    return f"<details><summary>{title} ({len(rows)})</summary>\n\n{table}{more}\n\n</details>"


def _size(parts: Sequence[str]) -> int:
    return sum(len(part.encode()) + 2 for part in parts)

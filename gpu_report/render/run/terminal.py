"""The summary for a terminal and as Markdown. Everything from outside is plain text here: no markup, no controls."""

import io
from collections.abc import Iterable, Sequence
from statistics import median

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpu_report.catalogue import RULES, phase_words, row_words
from gpu_report.model import Advice, Analysis, EpochSummary, Finding, GpuSummary, Stats
from gpu_report.render.formatting import (
    SHOWN_SECONDS,
    heard,
    how_it_ended,
    numbers,
    outlier_words,
    partly,
    saw_training,
    sentence,
)
from gpu_report.render.machine_values import iso_utc
from gpu_report.render.markdown_text import words
from gpu_report.terminal import plain, without_commands
from gpu_report.wording import ending_words, line_words, role_words, where_words

SHOWN_FINDINGS = 20
SHOWN_OUTLIERS = 5
SHOWN_LINES = 5  # of code
SUBJECT = "The training"
AS_PLANNED = frozenset({"finished", "early stop"})

Rows = list[tuple[str, ...]]


def render_text(analysis: Analysis, *, width: int | None = None, colour: bool = False) -> str:
    """Return the summary for a terminal of `width` columns (the real one's when None)."""
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=colour, highlight=False, soft_wrap=False)
    console.print(Text(plain(analysis.verdict.text), style="bold"))
    console.print(Text(plain(_head(analysis))))
    for title, header, rows in _tables(analysis):
        if rows:
            console.print()
            console.print(_table(title, header, rows))
    console.print()
    for line in _closing(analysis):
        console.print(Text(plain(line)))
    return without_commands(out.getvalue())


def render_markdown(analysis: Analysis) -> str:
    """Return the summary as Markdown, for a pull request or a job summary."""
    parts = [f"**{words(analysis.verdict.text)}**", words(_head(analysis))]
    for title, header, rows in _tables(analysis):
        if rows:
            lines = [header, tuple("---" for _ in header), *rows]
            body = "\n".join(
                "| " + " | ".join(words(c) if i != 1 else c for c in row) + " |" for i, row in enumerate(lines)
            )
            parts.append(f"### {title}\n\n{body}")
    parts += [words(line) for line in _closing(analysis)]
    return "\n\n".join(parts) + "\n"


def _head(analysis: Analysis) -> str:
    run = analysis.run
    start = (iso_utc(run.start_wall_s) or "time unknown")[:19].replace("T", " ")
    parts = [run.path, f"{start} UTC", f"{run.duration_s:.0f} s", f"{len(analysis.epochs)} epochs"]
    return "   ".join([*parts, f"coverage {analysis.coverage:.1%}"])


def _tables(analysis: Analysis) -> Iterable[tuple[str, tuple[str, ...], Rows]]:
    header = ("GPU", "utilisation mean", "peak", "memory peak", "power mean", "temperature mean", "energy")
    partial = partly(analysis.coverage)
    over = f"GPUs, over the {partial} that was sampled" if partial else "GPUs, over the whole recording"
    yield over, header, [_gpu_row(gpu) for gpu in analysis.gpus]
    shown = [row for row in analysis.ledger if row.gpu_seconds >= SHOWN_SECONDS]
    names = [row_words(row.name, is_training=saw_training(analysis)) for row in shown]
    ledger: Rows = [(name, f"{r.gpu_seconds:.1f} s", f"{r.share:.1%}") for name, r in zip(names, shown, strict=True)]
    yield "Where the GPU time went", ("", "GPU time", "share"), ledger
    findings = [_finding_row(analysis, f) for f in analysis.findings if not f.expected][:SHOWN_FINDINGS]
    won: Rows = [
        (
            row_words(limit.cause),
            f"{limit.epoch_s_now:.1f} s",
            f"{limit.epoch_s_at_best:.1f} s",
            f"{limit.speed_up_at_most:.1f}",
            "" if limit.epoch_s_estimate is None else f"{limit.epoch_s_estimate:.1f} s with {limit.fix}",
        )
        for limit in analysis.speedup_limits
    ]
    yield "What could be won", ("without", "training of an epoch now", "at best", "times faster", "likely"), won
    yield "Lines of code with the most idle GPU time", ("", "idle GPU time", "mostly during"), _code_rows(analysis)
    yield "Findings", ("id", "at", "what", "epoch", "cause", "kernel log"), findings


def _code_rows(analysis: Analysis) -> Rows:
    """Return the worst lines, each with its process where there are several roles."""
    several = len(analysis.code_time) > 1
    return [
        (
            plain(f"{role_words(line.process)}: {line_words(line)}" if several else line_words(line)),
            f"{line.idle_gpu_s:.1f} s",
            phase_words(line.phase) if line.phase else "",
        )
        for line in analysis.code_lines[:SHOWN_LINES]
    ]


def _gpu_row(summary: GpuSummary) -> tuple[str, ...]:
    gpu, quantities = summary.gpu, summary.quantities
    util = quantities.get("gpu_util_pct")
    name = f"{gpu.index} {plain(gpu.name or '')}".strip()
    memory = _value(quantities.get("memory_used_mib"), "max", "MiB")
    total = f" of {gpu.memory_total_mib:.0f}" if gpu.memory_total_mib else ""
    energy = f"{summary.energy_j / 1000:.1f} kJ" if summary.energy_j is not None else "n/a"
    return (
        name,
        _value(util, "mean", "%"),
        _value(util, "max", "%"),
        memory + total,
        _value(quantities.get("power_w"), "mean", "W"),
        _value(quantities.get("temperature_c"), "mean", "°C"),
        energy,
    )


def _value(stats: Stats | None, which: str, unit: str) -> str:
    return f"{getattr(stats, which):.0f} {unit}" if stats else "n/a"


def _finding_row(analysis: Analysis, finding: Finding) -> tuple[str, ...]:
    at = (iso_utc(analysis.run.start_wall_s + finding.start_t_s) or "")[11:19]
    lines = finding.kernel_events
    kernel = plain(lines[0].event.text) + (f" (+{len(lines) - 1})" if len(lines) > 1 else "") if lines else ""
    epoch = "" if finding.epoch is None else f"{finding.epoch}{' (at its end)' if finding.at_boundary else ''}"
    cause = finding.cause.name if finding.cause else ""
    if finding.where:
        cause = plain(f"{cause}: {where_words(finding.where[0])}".removeprefix(": "))
    return (finding.id, at, plain(finding.summary), epoch, cause, kernel)


def _closing(analysis: Analysis) -> list[str]:
    expected = sum(f.expected for f in analysis.findings)
    ended = how_it_ended(analysis.run.recording)
    lines = [f"Ended: {ended}."] if ended else []
    lines += _ending(analysis)
    lines += _epochs(analysis)
    lines += [f"To do: {sentence(a.text)}" for a in _after_the_end(analysis)]
    lines += [f"Try {a.argument}={a.to_value} (now {a.from_value}): {a.text}." for a in _changes(analysis)]
    if expected:
        lines.append(f"{expected} expected drop{'s are' if expected > 1 else ' is'} not listed.")
    kernel = analysis.run.kernel
    if kernel.status != "read":
        lines.append(f"Kernel log: unknown ({kernel.reason or 'it was not read'}). {kernel.advice}".strip())
    else:
        lines.append(f"Kernel log: read ({kernel.source}), {heard(kernel.events)}.")
    lines += [f"Epochs: {y.note}." for y in analysis.run.yolo_runs if y.note]
    lines += [f"Note: {problem}." for problem in analysis.run.problems]
    return lines


def _changes(analysis: Analysis) -> list[Advice]:
    """Return the advice that names an argument, each once."""
    every = dict.fromkeys(advice for finding in analysis.findings for advice in finding.advice)
    return [advice for advice in every if advice.argument and advice.to_value is not None]


def _after_the_end(analysis: Analysis) -> list[Advice]:
    """Return what to do about an end that was no good one, each once; what names an argument stands apart."""
    ended = [finding for finding in analysis.findings if RULES[finding.rule].ending]
    every = dict.fromkeys(advice for finding in ended for advice in finding.advice)
    log = analysis.run.kernel.advice  # which has a line of its own
    return [advice for advice in every if advice.to_value is None and advice.text != log]


def _ending(analysis: Analysis) -> list[str]:
    """Return how the training ended, and its last minute where that was not as planned."""
    ending = analysis.ending
    if ending is None:
        return []
    tells = bool(ending.last_minute) and ending.name not in AS_PLANNED
    last = f" In its last minute: {numbers(ending.last_minute)}." if tells else ""
    text = ending_words(ending)
    subject = "" if text.startswith(SUBJECT) else f"{SUBJECT}: "
    return [f"{subject}{sentence(text)}{last}".replace("\u00a0", " ")]


def _epochs(analysis: Analysis) -> list[str]:
    """Return what an epoch comes to (medians), and which ones stand out."""
    if not analysis.epochs:
        return []
    every = analysis.epochs
    parts = [f"{_median([e.end_t_s - e.start_t_s for e in every]):.1f} s"]
    lengths = {
        "train": "train_s",
        "validation": "validation_s",
        "checkpoint": "checkpoint_s",
        "waiting for data": "data_wait_s",
    }
    typical = {words: _median([getattr(e, name) for e in every]) for words, name in lengths.items()}
    shown = ", ".join(f"{words} {seconds:.1f} s" for words, seconds in typical.items() if seconds is not None)
    parts += [f"({shown})"] if shown else []
    speed = _median([e.images_per_s for e in every])
    parts += [f"{speed:.0f} images/s"] if speed is not None else []
    return [f"Epochs: {len(every):,}, median {' '.join(parts)}.", *_outliers(every)]


def _outliers(epochs: Sequence[EpochSummary]) -> list[str]:
    """Return which epochs stand out, without those that take longer by their nature."""
    outliers = [e for e in epochs if e.outliers and not e.is_longer_by_nature]
    named = [f"{e.epoch} ({'; '.join(outlier_words(e))})" for e in outliers[:SHOWN_OUTLIERS]]
    more = f", and {len(outliers) - SHOWN_OUTLIERS} more" if len(outliers) > SHOWN_OUTLIERS else ""
    return [f"Epochs that stand out: {', '.join(named)}{more}."] if outliers else []


def _median(values: Iterable[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return median(present) if present else None


def _table(title: str, header: Sequence[str], rows: Rows) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in header:
        table.add_column(name)
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    return table

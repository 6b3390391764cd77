"""The summary for a terminal and as Markdown, in the page's order. Text from outside has no markup and no controls."""

import io
import textwrap
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpu_report.catalogue import RULES, SEVERITIES, cause_words, phase_words
from gpu_report.gpu_words import gpu_number
from gpu_report.iso_time import iso_utc
from gpu_report.model import (
    Advice,
    Analysis,
    EpochNow,
    EpochSummary,
    Finding,
    GpuSummary,
    LedgerRow,
    ProfiledSteps,
    Sentence,
    ServedModel,
    Stats,
)
from gpu_report.render.code_location_text import first_location_text
from gpu_report.render.formatting import (
    duration,
    energy,
    epoch_counts,
    epochs_in_words,
    how_it_ended,
    kernel_log_counts,
    ledger_rows,
    ledger_words,
    lines_title,
    number,
    numbers,
    outlier_words,
    partly,
    recorded_length,
    sentence,
    share,
    step_time,
    training_words,
    with_amounts_unbroken,
)
from gpu_report.render.markdown_text import prose, verdict, words
from gpu_report.render.sentence_kinds import own_text
from gpu_report.render.served_words import calls_in_all, longest_part, milliseconds, speed_words
from gpu_report.render.speedup_rows import SpeedupRow, not_listed, shown_rows
from gpu_report.render.what_to_change import listed_changes
from gpu_report.terminal import apart, plain, without_commands
from gpu_report.wording import MIB_PER_GIB, counted, ending_words, line_words, role_words, shown_ratio

# What limits the steps that PyTorch's profiler saw.
LIMITED_BY = {
    "launch": "the CPU (launch-bound)",
    "gpu": "the GPU",
    "exchange": "gradient synchronisation",
    "data": "data loading",
    "neither": "neither alone",
    "unknown": "",
}
SHOWN_FINDINGS = 20
NOT_PLACED = frozenset({"none", "no-epoch"})  # of epochs: a note of the run says so
SHOWN_OUTLIERS = 5
SHOWN_LINES = 5  # of code
SHOWN_MODELS = 10
AS_PLANNED = frozenset({"finished", "early stop"})
INDENT = 4
COLOURS = {"critical": "bold red", "warning": "bold yellow", "info": "cyan"}
HEALTHY = "bold green"  # no critical finding and no warning
FIX, NOTE, TITLE = "bold cyan", "dim", "bold"
VENDOR = "NVIDIA "  # of every GPU that NVML knows
LONGEST_NUMBER = 12  # characters
NUMBER_BEGINS = tuple("0123456789<")
NO_BREAK_SPACE = "\u00a0"  # the page keeps numbers and units together by it; a terminal breaks lines where it likes

Rows = list[tuple[str, ...]]


def render_text(analysis: Analysis, *, width: int | None = None, colour: bool = False) -> str:
    """Return the summary for a terminal of `width` columns (the real one's when None)."""
    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=colour, force_jupyter=False, highlight=False, soft_wrap=False
    )
    first, *rest = map(own_text, analysis.verdict.sentences or (Sentence("work", ""),))
    _print(console, first, _colour(analysis))
    if rest:
        _print(console, " ".join(rest))
    _print(console, _head(analysis), NOTE)
    _print_changes(console, analysis)
    _print_tables(console, (_served_table(analysis), _ledger_table(analysis), _speedup_table(analysis)))
    if beside := not_listed(analysis):
        _print(console, beside, NOTE)
    _print_findings(console, analysis)
    _print_tables(console, (_code_table(analysis), _step_table(analysis)))
    _print_lines(console, "Training" if analysis.is_training else "How it ended", _training_lines(analysis))
    _print_tables(console, (_gpu_table(analysis),))
    _print_lines(console, "Recording", _recording_lines(analysis))
    return without_commands("".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines()))


def render_markdown(analysis: Analysis) -> str:
    """Return the summary as Markdown, for a pull request or a job summary."""
    parts = [verdict(analysis.verdict.text), words(_head(analysis))]
    if steps := _steps(analysis):
        items = "\n".join(f"- {prose(': '.join(part for part in step if part))}" for step in steps)
        parts.append(f"### What to change\n\n{items}")
    tables = (_served_table, _ledger_table, _speedup_table, _finding_table, _code_table, _step_table)
    for table in tables:
        parts += _markdown_table(*table(analysis))
        parts += [prose(not_listed(analysis))] if table is _speedup_table and not_listed(analysis) else []
    parts += [prose(line) for line in _training_lines(analysis)]
    parts += _markdown_table(*_gpu_table(analysis))
    parts += [prose(line) for line in _recording_lines(analysis)]
    return "\n\n".join(parts) + "\n"


def _markdown_table(title: str, header: tuple[str, ...], rows: Rows) -> list[str]:
    if not rows:
        return []
    lines = [tuple(map(words, header)), tuple("---" for _ in header), *(tuple(map(words, row)) for row in rows)]
    body = "\n".join(f"| {' | '.join(row)} |" for row in lines)
    return [f"### {title}\n\n{body}"]


def _colour(analysis: Analysis) -> str:
    """Return the colour of the verdict: that of the worst finding."""
    found = {finding.severity for finding in analysis.findings if not finding.expected}
    worst = next((severity for severity in SEVERITIES if severity in found), "info")
    return HEALTHY if worst == "info" else COLOURS[worst]


def _print_lines(console: Console, title: str, lines: Sequence[str]) -> None:
    if lines:
        console.print()
        console.print(Text(title, style=TITLE))
    for line in lines:
        _print(console, line)


def _print(console: Console, text: str, style: str = "", indent: int = 0) -> None:
    """Print a paragraph, whose numbers do not part from their units, and its commands, which are never broken."""
    room = max(console.width - indent, 1)
    for part, command in apart(text) or [("", False)]:
        if command:
            console.print(Text(f"{' ' * (indent + INDENT)}{plain(part)}", style=style), soft_wrap=True)
            continue
        lines = textwrap.wrap(with_amounts_unbroken(plain(part)), room, break_on_hyphens=False)
        console.print(Text("\n".join(" " * indent + line for line in lines).replace(NO_BREAK_SPACE, " "), style=style))


def _print_changes(console: Console, analysis: Analysis) -> None:
    steps = _steps(analysis)
    if not steps:
        return
    console.print()
    console.print(Text("What to change", style=TITLE))
    for setting, why in steps:
        if setting:
            _print(console, setting, FIX)
        _print(console, why, indent=INDENT if setting else 0)


def _print_tables(console: Console, tables: Iterable[tuple[str, tuple[str, ...], Rows]]) -> None:
    for title, header, rows in tables:
        if rows:
            console.print()
            console.print(Text(title, style=TITLE))
            console.print(_table(header, rows))


def _print_findings(console: Console, analysis: Analysis) -> None:
    """Print each finding as a paragraph: a table of 80 columns would break its id."""
    found = [finding for finding in analysis.findings if not finding.expected]
    if not found:
        return
    console.print()
    console.print(Text(f"Findings ({len(found)})", style=TITLE))
    for finding in found[:SHOWN_FINDINGS]:
        name, at, summary, *rest = _finding_row(analysis, finding)
        when = "   ".join(
            part for part in (finding.severity, f"{at} UTC", f"epoch {rest[0]}" if rest[0] else "") if part
        )
        console.print(Text.assemble((plain(name), COLOURS[finding.severity]), f"   {when}"))
        labels = ("", "Cause: ", "Kernel log: ")
        for label, text in zip(labels, (summary, *rest[1:]), strict=True):
            if text:
                _print(console, f"{label}{text}", indent=INDENT)
    if len(found) > SHOWN_FINDINGS:
        console.print(Text(f"and {len(found) - SHOWN_FINDINGS} more, which the report shows", style=NOTE))


def _head(analysis: Analysis) -> str:
    run = analysis.run
    start = (iso_utc(run.start_wall_s) or "time unknown")[:19].replace("T", " ")
    did = epochs_in_words(analysis.epochs) if run.has_training or analysis.epochs else ""
    if analysis.is_inference:
        did = counted(calls_in_all(analysis), "call")
    elif analysis.is_validation:
        did = counted(len(analysis.validations), "validation")
    parts = [run.path, f"{start} UTC", recorded_length(run), did]
    return "   ".join(filter(None, parts)).replace(NO_BREAK_SPACE, " ")


def _steps(analysis: Analysis) -> list[tuple[str, str]]:
    """Return what to change: a setting with its value now, empty where there is none, and why; each once."""
    return [_step(each) for each in listed_changes(analysis)]


def _step(each: Advice) -> tuple[str, str]:
    title = each.short or (f"{each.typed} (now {each.now})" if each.typed else "")
    if title.startswith(each.text):  # which says more
        return "", sentence(title)
    return "" if each.text.startswith(title) else title, sentence(each.text)


def _served_table(analysis: Analysis) -> tuple[str, tuple[str, ...], Rows]:
    """Return how fast models answered after warming up, a row for each."""
    header = ("", "calls", "images/s", "median", "p95", "p99", "worst", "longest part, mean")
    return "Inference, by model", header, [_served_row(each) for each in analysis.served[:SHOWN_MODELS]]


def _served_row(served: ServedModel) -> tuple[str, ...]:
    latency = served.latency
    times = (latency.p50.value_ms, latency.p95.value_ms, latency.p99.value_ms, latency.worst_ms)
    return (
        plain(served.name),
        f"{latency.calls:,}",
        speed_words(served.images_per_s),
        *(milliseconds(each).replace(NO_BREAK_SPACE, " ") for each in times),
        longest_part(served.parts).replace(NO_BREAK_SPACE, " "),
    )


def _ledger_table(analysis: Analysis) -> tuple[str, tuple[str, ...], Rows]:
    has_price = analysis.options.price_per_hour is not None
    header = ("", "GPU time", "share", *(["cost"] if has_price else []))
    rows = [_ledger_row(row, ledger_words(row, analysis))[: len(header)] for row in ledger_rows(analysis)]
    return "Where the GPU time went", header, rows


def _ledger_row(row: LedgerRow, name: str) -> tuple[str, ...]:
    cells = (name, duration(row.gpu_seconds, aligned=True), share(row.share), number(row.money, 2))
    return tuple(cell.replace(NO_BREAK_SPACE, " ") for cell in cells)


def _speedup_table(analysis: Analysis) -> tuple[str, tuple[str, ...], Rows]:
    rows = [_speedup_row(row) for row in shown_rows(analysis)]
    return "Possible speed-up of an epoch", ("if fixed", "now", "estimate", "best case"), rows


def _speedup_row(row: SpeedupRow) -> tuple[str, ...]:
    expected = row.why_not_expected
    if row.expected_s is not None:
        faster = f"{shown_ratio(row.now_s, row.expected_s):.1f}\u00d7 faster"
        expected = f"{_seconds(row.expected_s)} ({faster}) with {row.limit.fix}"
    return row.name, _seconds(row.now_s), expected.replace(NO_BREAK_SPACE, " "), _seconds(row.limit_s)


def _finding_table(analysis: Analysis) -> tuple[str, tuple[str, ...], Rows]:
    rows = [_finding_row(analysis, f) for f in analysis.findings if not f.expected][:SHOWN_FINDINGS]
    return "Findings", ("id", "at (UTC)", "what", "epoch", "cause", "kernel log"), rows


def _gpu_table(analysis: Analysis) -> tuple[str, tuple[str, ...], Rows]:
    partial = partly(analysis.coverage)
    over = f"GPUs, over the {partial} with samples" if partial else "GPUs, over the whole recording"
    header = ("GPU", "busy", "peak", "peak memory", "power", "temperature", "energy")
    return over.replace(NO_BREAK_SPACE, " "), header, [_gpu_row(gpu) for gpu in analysis.gpus]


def _code_table(analysis: Analysis) -> tuple[str, tuple[str, ...], Rows]:
    """Return the worst lines of code, each with its process where there are several roles."""
    several, by_idle = len(analysis.code_time) > 1, bool(analysis.gpus)
    rows: Rows = [
        (
            f"{role_words(line.process)}: {line_words(line)}" if several else line_words(line),
            _seconds(line.ranked_s(by_idle=by_idle)),
            phase_words(line.phase) if line.phase else "",
        )
        for line in analysis.code_lines[:SHOWN_LINES]
    ]
    ranks = any(line.process.startswith("rank") for line in analysis.code_lines[:SHOWN_LINES])
    what = " (rank: process of one GPU)" if ranks else ""
    return f"{lines_title(analysis)}{what}", ("", "idle GPU time" if by_idle else "time", "mostly during"), rows


def _step_table(analysis: Analysis) -> tuple[str, tuple[str, ...], Rows]:
    """Return what PyTorch's profiler saw of a step, a row for each window."""
    rows: Rows = [_step_row(each) for each in analysis.profiled if each.steps.busy_s is not None]
    header = ("", "a step", "without the profiler", "GPU works", "limited by")
    return "Inside a step, by PyTorch's profiler", header, rows


def _step_row(profiled: ProfiledSteps) -> tuple[str, ...]:
    found, window = profiled.steps, profiled.window
    what = window.phase if window.epoch is None else f"{window.phase}, epoch {window.epoch}"
    return (
        what,
        _step_s(found.step_s),
        _step_s(profiled.typical_step_s),
        _step_s(found.worked_s),
        LIMITED_BY[found.launches.bound],
    )


def _step_s(seconds: float | None) -> str:
    return step_time(seconds).replace(NO_BREAK_SPACE, " ")


def _gpu_row(summary: GpuSummary) -> tuple[str, ...]:
    gpu, quantities = summary.gpu, summary.quantities
    util = quantities.get("gpu_util_pct")
    name = f"{gpu_number(gpu.index)} {plain(gpu.name or '').removeprefix(VENDOR)}".strip()
    return (
        name,
        _value(util, "mean", "%"),
        _value(util, "max", "%"),
        _memory(quantities.get("memory_used_mib"), gpu.memory_total_mib),
        _value(quantities.get("power_w"), "mean", "W"),
        _value(quantities.get("temperature_c"), "mean", "°C"),
        energy(summary.energy_j).replace(NO_BREAK_SPACE, " "),
    )


def _memory(used: Stats | None, total_mib: float | None) -> str:
    if used is None:
        return "n/a"
    total = f" of {total_mib / MIB_PER_GIB:.1f}" if total_mib else ""
    return f"{used.max / MIB_PER_GIB:.1f}{total} GiB"


def _value(stats: Stats | None, which: str, unit: str) -> str:
    return f"{getattr(stats, which):.0f} {unit}" if stats else "n/a"


def _finding_row(analysis: Analysis, finding: Finding) -> tuple[str, ...]:
    at = (iso_utc(analysis.run.start_wall_s + finding.start_t_s) or "")[11:19]
    lines = finding.kernel_events
    kernel = plain(lines[0].event.text) + (f" (+{len(lines) - 1})" if len(lines) > 1 else "") if lines else ""
    where = " (at the end of the epoch)" if finding.at_boundary else ""
    epoch = "" if finding.epoch is None else f"{finding.epoch}{where}"
    cause = cause_words(finding.cause.name) if finding.cause and not RULES[finding.rule].ending else ""
    if finding.where and finding.rule != "user-code":  # whose line its summary names
        cause = f"{cause}: {first_location_text(finding, analysis)}".removeprefix(": ")
    return (finding.id, at, plain(finding.summary), epoch, plain(cause), kernel)


def _training_lines(analysis: Analysis) -> list[str]:
    """Return how the training ended, and what its epochs were like."""
    placed = (each for each in analysis.run.yolo_runs if each.anchor not in NOT_PLACED)
    notes = dict.fromkeys(each.note for each in placed if each.note)
    return [*_ending(analysis), *_epochs(analysis), *(f"Epochs: {note}." for note in notes)]


def _recording_lines(analysis: Analysis) -> list[str]:
    """Return how the recording ended, and what of it is to be known."""
    run, kernel = analysis.run, analysis.run.kernel
    ended = how_it_ended(run.recording, analysis.ending)
    lines = [f"Ended: {ended}."] if ended else []
    lines.append(f"Samples: {share(analysis.coverage)} of the time.".replace(NO_BREAK_SPACE, " "))
    expected = sum(f.expected for f in analysis.findings)
    if expected:
        lines.append(f"{expected} expected drop{'s are' if expected > 1 else ' is'} not listed.")
    if kernel.status != "read":
        lines.append(f"Kernel log: unknown ({kernel.reason or 'it was not read'}). {sentence(kernel.advice)}".strip())
    else:
        lines.append(f"Kernel log: read ({kernel.source}), {kernel_log_counts(kernel.events)}.")
    return [*lines, *(f"Note: {problem}." for problem in run.problems)]


def _ending(analysis: Analysis) -> list[str]:
    """Return how the training ended, and what it was like just before where that was not as planned."""
    ending = analysis.ending
    if ending is None:
        return []
    shows_last = bool(ending.last_minute) and ending.name not in AS_PLANNED
    when = "In its last minute" if ending.still_recorded else "Just before"
    last = f" {when}: {numbers(ending.last_minute)}." if shows_last else ""
    subject = training_words(analysis) if analysis.is_training else "The run"
    return [f"{sentence(ending_words(ending, subject))}{last}".replace(NO_BREAK_SPACE, " ")]


def _epochs(analysis: Analysis) -> list[str]:
    """Return what an epoch comes to (medians), and which ones stand out."""
    if not analysis.epochs:
        return []
    every, now = analysis.epochs, analysis.epoch_now
    count, *notes = epoch_counts(every, now, _seconds)
    lines = [f"Epochs: {', '.join(filter(None, (count, '; '.join(notes))))}."]
    return [*lines, *(_epoch_parts(now) if now else ()), *_outliers(every)]


def _epoch_parts(now: EpochNow) -> list[str]:
    """Return what the parts of an epoch take, as far as they are known."""
    parts = {"train": now.train_s, "validation": now.validation_s, "checkpoint": now.checkpoint_s}
    shown = [f"{words} {_seconds(seconds)}" for words, seconds in parts.items() if seconds is not None]
    if shown and now.train_s is not None and now.data_wait_s is not None:
        shown[0] += f" ({_seconds(now.data_wait_s)} of it waiting for data)"
    shown += [] if now.images_per_s is None else [f"{now.images_per_s:.0f} images/s"]
    return [f"Parts of an epoch: {', '.join(shown)}."] if shown else []


def _seconds(seconds: float) -> str:
    return duration(seconds, aligned=True).replace(NO_BREAK_SPACE, " ")


def _outliers(epochs: Sequence[EpochSummary]) -> list[str]:
    """Return which epochs stand out, without those that take longer by their nature."""
    outliers = [e for e in epochs if e.outliers and not e.is_special]
    named = [f"{e.epoch} ({'; '.join(outlier_words(e))})" for e in outliers[:SHOWN_OUTLIERS]]
    more = f", and {len(outliers) - SHOWN_OUTLIERS} more" if len(outliers) > SHOWN_OUTLIERS else ""
    return [f"Epochs that stand out: {', '.join(named)}{more}."] if outliers else []


def _table(header: Sequence[str], rows: Rows) -> Table:
    table = Table(header_style=NOTE, box=None, pad_edge=False)
    for place, name in enumerate(header):
        table.add_column(name, justify="right" if place and _are_numbers(rows, place) else "left")
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    return table


def _are_numbers(rows: Rows, place: int) -> bool:
    """Tell whether a column holds one quantity a row, which are easier to compare one below the other's end."""
    return all(row[place][:1] in NUMBER_BEGINS and len(row[place]) <= LONGEST_NUMBER for row in rows)

"""Splitting a file that nvidia-smi wrote into tables: a header and its whole rows."""

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from gpu_report import schema
from gpu_report.errors import InputError
from gpu_report.imports.format_names import NAMES
from gpu_report.imports.formats.nvidia_smi.columns import NEEDED, QUERY, column_name, in_other_units
from gpu_report.imports.parsing.text_file import read_text
from gpu_report.ordinary_file import LARGEST_HEADER, MOST_GPUS

_MOST_SECTIONS = 200  # of a log that was appended to, where each does not go on where the one before ended
_OURS = ",".join(column.name for column in schema.TIME_COLUMNS)
_TABLE = ("| NVIDIA-SMI ", "==============NVSMI LOG")  # of what it prints when nothing, or -q, is asked
_STAMPED = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d[.\d]*,")
# What docker compose, kubectl, journald and srun put before each line, and what nvidia-smi's own may begin with.
_PREFIXED = re.compile(
    r"(?P<prefix>[^,#]{2,80}?)(?:\d{4}/\d\d/\d\d \d\d:\d\d:\d\d[.\d]*, ?|timestamp, |# ?(?:Date|Time|gpu)\b)"
)
# What it prints in place of a row where the driver has lost a GPU, or all of them.
NO_GPU = ("Unable to determine the device handle for", "No devices were found")
_LOOKED_AT = 1000  # lines, for what stands before each
_MOST_SHOWN = 20  # columns that a sentence lists
_SHOWN = 80  # characters of a line that is quoted in a problem


@dataclass
class LogSection:
    """The rows under one header; a log that was appended to has several.

    `lost` is what was printed in place of a row, where a GPU was gone, each with the number of the row before it.
    """

    path: Path
    columns: tuple[str, ...]
    rows: list[str] = field(default_factory=list)
    lost: list[tuple[int, str]] = field(default_factory=list)


@dataclass
class LogFile:
    """A file's sections, and in whole sentences what of it could not be read."""

    sections: list[LogSection]
    problems: list[str]


def read_log(path: Path) -> LogFile:
    """Return the sections of the nvidia-smi log at `path` that can be used; InputError when there are none."""
    text = read_text(path, "nvidia-smi")
    lines = _with_commas(text.split("\n"))
    torn = lines.pop()  # behind the last line break: empty, or a row that was being written
    sections, strays = _sections(path, lines)
    usable = _joined([section for section in sections if set(NEEDED) <= set(section.columns)])
    if not usable:
        raise InputError(_prefixed(path, lines) or _why_unusable(path, sections, lines))
    problems = []
    if torn.strip():
        problems.append(f"The last row of {path} was cut short and was left out.")
    if strays:
        shown = strays[0].strip()[:_SHOWN]
        which = f"A line of {path} is no whole row and was left out"
        if len(strays) > 1:
            which = f"{len(strays)} lines of {path} are no whole rows and were left out; the first"
        problems.append(f"{which}: {shown!r}.")
    if len(usable) > _MOST_SECTIONS:
        problems.append(f"{path} has {len(usable):,} headers with rows of different times; {_MOST_SECTIONS} are read.")
        usable = usable[:_MOST_SECTIONS]
    if not all(set(NEEDED) <= set(section.columns) for section in sections):
        problems.append(f"A part of {path} has no {' or no '.join(NEEDED)} column and was left out.")
    if other := sorted({name for section in usable for name in in_other_units(section.columns)}):
        shown = ", ".join(other[:_MOST_SHOWN])
        problems.append(f"Left out of {path}, for the unit is not that of nvidia-smi: {shown}.")
    return LogFile(usable, problems)


def _with_commas(lines: list[str]) -> list[str]:
    """Return lines as nvidia-smi writes them; spreadsheets and PowerShell save with other separators, and quotes.

    One that separates by semicolons or tabs may write decimals with a comma.
    """
    header = next((line for line in lines if "timestamp" in line or "utilization" in line), "")
    separator = next((each for each in ";\t" if each in header and "," not in header), None)
    if separator is not None:
        lines = [line.replace(",", ".").replace(separator, ",") for line in lines]
    return [line.replace('"', "") for line in lines] if '"' in header else lines


def _sections(path: Path, lines: list[str]) -> tuple[list[LogSection], list[str]]:
    """Return the sections, and the lines that belong to none: messages, torn rows, rows before any header."""
    sections: list[LogSection] = []
    strays: list[str] = []
    separators = -1
    for line in lines:
        if len(line) <= LARGEST_HEADER and ("timestamp" in line or "utilization" in line):
            columns = tuple(column_name(cell) for cell in line.split(","))
            if not set(NEEDED).isdisjoint(columns) or in_other_units(columns):
                sections.append(LogSection(path, columns))
                separators = len(columns) - 1
                continue
        if line.count(",") == separators and "\0" not in line:
            sections[-1].rows.append(line)
        elif line.strip():
            strays.append(line)
            if sections and sections[-1].rows and line.startswith(NO_GPU):
                _note_loss(sections[-1], line)
    return sections, strays


def _note_loss(section: LogSection, line: str) -> None:
    """Note that a GPU was gone after a section's last row: once, however often that was printed."""
    lost = (len(section.rows) - 1, line.strip()[:_SHOWN])
    if lost not in section.lost[-MOST_GPUS:]:
        section.lost.append(lost)


def _joined(sections: list[LogSection]) -> list[LogSection]:
    """Return the sections, those as one that go on where the one before ended: some log with a header each time."""
    joined: list[LogSection] = []
    for section in sections:
        if joined and joined[-1].columns == section.columns and _goes_on(joined[-1], section):
            joined[-1].lost += [(row + len(joined[-1].rows), line) for row, line in section.lost]
            joined[-1].rows += section.rows
        else:
            joined.append(section)
    return joined


def _goes_on(before: LogSection, after: LogSection) -> bool:
    """Tell whether rows are later than others, or there are none; nvidia-smi's times sort as text."""
    at = before.columns.index("timestamp")
    times = [rows[end].split(",")[at].strip() for rows, end in ((before.rows, -1), (after.rows, 0)) if rows]
    return times == sorted(times)


def _of_run(samples: Path) -> Path:
    """Return the run folder that holds some samples, else themselves: `render` reads both."""
    return samples.parent if (samples.parent / schema.RUN_JSON).is_file() else samples


def _prefixed(path: Path, lines: list[str]) -> str | None:
    """Return why a log cannot be used whose lines begin with something else, None where they do not."""
    prefixed = next(filter(None, map(_PREFIXED.match, lines[:_LOOKED_AT])), None)
    return prefixed and (
        f"lines of {path} begin with {prefixed['prefix']!r}, which nvidia-smi did not write: remove what is before "
        "each of its lines, and import again"
    )


def _why_unusable(path: Path, sections: list[LogSection], lines: list[str]) -> str:
    if not sections and any(line.startswith(_TABLE) for line in lines):
        return (
            f"{path} is the table that nvidia-smi prints for people, of one moment. A report needs readings over time: "
            f"start this before the training, and end it with Ctrl-C afterwards: `{QUERY} > smi.csv`"
        )
    if not sections and any(_STAMPED.match(line) for line in lines):
        return (
            f"{path} has no header (it was written with noheader): put the names that --query-gpu was given into its "
            f"first line, such as timestamp,index,utilization.gpu. Or log with `{QUERY} > smi.csv`"
        )
    if not sections and any(line.startswith(_OURS) for line in lines[:1]):
        folder = shlex.quote(str(_of_run(path)))
        return (
            f"{path} has gpu-report's own readings, which need no import: run `gpu-report render report.html {folder}`"
        )
    if not sections:
        others = ", ".join(name for name in NAMES if name != "nvidia-smi")
        return (
            f"{path} has no header with nvidia-smi's columns (was it written with noheader?). Nor is it known "
            f"by its content as a log of another tool ({others}). Log with `{QUERY}`"
        )
    of_all = [name for section in sections for name in in_other_units(section.columns)]
    if other := [name for name in of_all if name.startswith(NEEDED)]:
        return f"{path} has {other[0]}, whose unit is not known: log with `{QUERY} > smi.csv`"
    missing = [name for name in NEEDED if all(name not in section.columns for section in sections)]
    return f"{path} has no column {' and no column '.join(missing or NEEDED)}: log with `{QUERY}`"

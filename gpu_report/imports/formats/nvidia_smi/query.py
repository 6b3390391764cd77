"""Logs that people have already: `nvidia-smi --query-gpu=... --format=csv -l 1 > log.csv`."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from gpu_report.errors import InputError
from gpu_report.imports.formats.nvidia_smi.columns import QUERY, without_a_place
from gpu_report.imports.formats.nvidia_smi.file import LogSection, read_log
from gpu_report.imports.formats.nvidia_smi.table import Numbering, is_time, power_column, read_section
from gpu_report.imports.parsing.each_log import read_each
from gpu_report.imports.parsing.fields import not_imported
from gpu_report.imports.parsing.readings import Found, Readings
from gpu_report.imports.selection import Selection

TOOL: Final = "nvidia-smi"
_UTILISATION: Final = "gpu_util_pct"
_UNREAD_SHARE: Final = 0.05  # of its rows: fewer are hiccups of the driver, and change no mean to speak of
_SHOWN: Final = 40  # characters of a time that is quoted
_POWER_NAMES: Final = "power.draw.average, power.draw and power.draw.instant"


def read(paths: Sequence[Path], _: Selection) -> Found:
    """Return all rows of all logs; a log that cannot be used is a problem, and an error only where none can."""
    logs, left_out = read_each(paths, read_log, "no log was named: name the files that nvidia-smi wrote")
    sections = [section for log in logs for section in log.sections]
    problems = [*left_out, *(problem for log in logs for problem in log.problems)]
    power = power_column(sections)
    if power is not None and any(power not in section.columns for section in sections):
        problems.append(f"Power is {power}; parts of the log without it have none, since {_POWER_NAMES} differ.")
    unknown = without_a_place(name for section in sections for name in section.columns)
    problems += not_imported(TOOL, unknown)
    numbering = Numbering()
    # Parts with an index first: they say which UUID has which.
    sections.sort(key=lambda section: "index" not in section.columns)
    tables = [read_section(section, power, numbering) for section in sections]
    if not any(len(table.gpu) for table in tables):
        _refuse_other_times(sections)
    notes = tuple(_utilisation_unread(tables))
    return Found(TOOL, f"log with `{QUERY}`", tables, tuple(problems), in_utc=False, notes=notes)


def _refuse_other_times(sections: Sequence[LogSection]) -> None:
    """Raise InputError where rows have times that nvidia-smi does not write: a spreadsheet drops seconds and zeros."""
    for section in sections:
        stamps = (row.split(",")[section.columns.index("timestamp")].strip() for row in section.rows)
        if (stamp := next(stamps, "")) and not is_time(stamp):
            raise InputError(
                f"{section.path} has times as {stamp[:_SHOWN]!r}, and nvidia-smi writes 2026/11/21 01:05:51.287: "
                "import the file as nvidia-smi wrote it, not one that a spreadsheet saved"
            )


def _utilisation_unread(tables: Sequence[Readings]) -> Iterator[str]:
    """Yield of which GPUs much of utilisation, on which the whole report stands, is no number.

    Rows without any number are of a GPU that was gone. Where no row has one, the report says that it is not reported.
    """
    read: Counter[int] = Counter()
    missing: Counter[int] = Counter()
    for table in (each for each in tables if _UTILISATION in each.quantities):
        is_read = np.isfinite(table.quantities[_UTILISATION])
        gpus, counts = np.unique(table.gpu[is_read], return_counts=True)
        read.update(dict(zip(gpus.tolist(), counts.tolist(), strict=True)))
        unread = np.flatnonzero(~is_read)
        is_there = np.isfinite([values[unread] for values in table.quantities.values()]).any(axis=0)
        missing.update(table.gpu[unread[is_there]].tolist())
    for gpu, count in sorted(missing.items()):
        rows = read[gpu] + count
        if read[gpu] and count >= _UNREAD_SHARE * rows:
            yield f"Utilisation of GPU {gpu} is no number in {count:,} of {rows:,} rows. These are missing."

"""Logs that people have already: `nvidia-smi --query-gpu=... --format=csv -l 1 > log.csv`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from gpu_report.imports.formats.nvidia_smi.columns import QUERY
from gpu_report.imports.formats.nvidia_smi.file import read_log
from gpu_report.imports.formats.nvidia_smi.table import Numbering, power_column, read_section
from gpu_report.imports.parsing.each_log import read_each
from gpu_report.imports.parsing.readings import Found
from gpu_report.imports.selection import Selection

_POWER_NAMES: Final = "power.draw.average, power.draw and power.draw.instant"


def read(paths: Sequence[Path], _: Selection) -> Found:
    """Return all rows of all logs; a log that cannot be used is a problem, and an error only where none can."""
    logs, left_out = read_each(paths, read_log, "no log was named: name the files that nvidia-smi wrote")
    sections = [section for log in logs for section in log.sections]
    problems = [*left_out, *(problem for log in logs for problem in log.problems)]
    power = power_column(sections)
    if power is not None and any(power not in section.columns for section in sections):
        problems.append(f"Power is {power}; parts of the log without it have none, since {_POWER_NAMES} differ.")
    numbering = Numbering()
    # Parts with an index first: they say which UUID has which.
    sections.sort(key=lambda section: "index" not in section.columns)
    tables = [read_section(section, power, numbering) for section in sections]
    return Found("nvidia-smi", f"log with `{QUERY}`", tables, tuple(problems), in_utc=False)

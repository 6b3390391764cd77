"""What the report says of a fault at a known line of code (benchmarks/line_faults)."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from gpu_report.analyse import analyse
from gpu_report.load import load_run
from gpu_report.model import Analysis, Finding
from support.runs import on_played_gpu


@cache
def analysed(folder: Path) -> Analysis:
    """Return what is said of a run folder, which takes half a second and is asked for by several tests."""
    return analyse(on_played_gpu(load_run(folder)))


def said(folder: Path, name: str) -> tuple[Mapping[str, Any], Finding | None]:
    """Return what was done, and the finding that is judged: the one whose cause is right, else the longest."""
    truth = json.loads((folder / f"{name}.json").read_text())
    findings = [f for f in analysed(folder / name).findings if f.severity != "info" and not f.expected]
    mine = [f for f in findings if f.cause]
    return truth, max(mine, key=lambda f: (f.cause.name == truth["cause"], f.took_s), default=None)


def names_line(finding: Finding, file: str, line: int) -> bool:
    """Tell whether a line is one of the first two that a finding names."""
    return any(at.file.endswith(f"/{file}") and at.line == line for at in finding.where[:2])

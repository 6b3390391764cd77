"""Faults at a known line of code, recorded on a GPU that was played (benchmarks/line_faults): cause and line."""

import json
import tarfile
from pathlib import Path

import pytest
from conftest import REPOSITORY

from gpu_report.analyse import analyse
from gpu_report.load import load_run

ARCHIVE = REPOSITORY / "tests" / "data" / "line_faults.tar.xz"
HEALTHY = "healthy"
LINE_NOT_FOUND = {"busy-thread"}  # a thread that keeps the interpreter's lock makes the main one late in all its lines
# A thread of the user's that keeps the interpreter's lock: the main thread is late in all its lines.
LINE_NOT_FOUND = {"busy-thread"}
with tarfile.open(ARCHIVE) as packed:
    FILES = [name for name in packed.getnames() if "/" not in name]
NAMES = sorted(name.removesuffix(".json") for name in FILES if name.endswith(".json"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    into = tmp_path_factory.mktemp("line-faults")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(into)
    return into


def said(folder: Path, name: str):
    """Return what was done, and the finding that fits it best, None where there is none."""
    truth = json.loads((folder / f"{name}.json").read_text())
    findings = [f for f in analyse(load_run(folder / name)).findings if f.severity != "info" and not f.expected]
    mine = [f for f in findings if f.cause]
    return truth, max(mine, key=lambda f: (f.cause.name == truth["cause"], f.took_s), default=None)


@pytest.mark.parametrize("name", [name for name in NAMES if name != HEALTHY])
def test_a_fault_has_its_cause_and_its_line(folder, name):
    truth, finding = said(folder, name)
    assert finding.cause.name == truth["cause"]
    if truth["line"] is not None:
        file, line = truth["line"]
        is_right = any(at.file.endswith(f"/{file}") and at.line == line for at in finding.where[:2])
        assert is_right is (name not in LINE_NOT_FOUND)


def test_a_healthy_training_has_none(folder):
    analysis = analyse(load_run(folder / HEALTHY))
    assert [f.rule for f in analysis.findings if f.severity != "info"] == []
    assert analysis.verdict.text.startswith("Nothing to fix: ")

"""Faults at a known line of code, recorded on a GPU that was played (benchmarks/line_faults): cause and line."""

import tarfile

import pytest
from conftest import REPOSITORY
from support.line_faults import names_line, said

from gpu_report.analyse import analyse
from gpu_report.load import load_run

ARCHIVE = REPOSITORY / "tests" / "data" / "line_faults.tar.xz"
HEALTHY = "healthy"
LINE_NOT_FOUND = {"busy-thread"}  # a thread that keeps the interpreter's lock makes the main one late in all its lines
with tarfile.open(ARCHIVE) as packed:
    FILES = [name for name in packed.getnames() if "/" not in name]
NAMES = sorted(name.removesuffix(".json") for name in FILES if name.endswith(".json"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    into = tmp_path_factory.mktemp("line-faults")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(into)
    return into


@pytest.mark.parametrize("name", [name for name in NAMES if name != HEALTHY])
def test_a_fault_has_its_cause_and_its_line(folder, name):
    truth, finding = said(folder, name)
    assert finding.cause.name == truth["cause"]
    if truth["line"] is not None:
        assert names_line(finding, *truth["line"]) is (name not in LINE_NOT_FOUND)


def test_a_healthy_training_has_none(folder):
    analysis = analyse(load_run(folder / HEALTHY))
    assert [f.rule for f in analysis.findings if f.severity != "info"] == []
    assert analysis.verdict.text.startswith("Nothing to fix: ")

"""`import`: what it says of logs that are not there."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from gpu_report.cli.commands.import_logs import MOST_NAMED, import_logs
from gpu_report.errors import InputError


def said_of(*arguments: str) -> str:
    error = CliRunner().invoke(import_logs, list(arguments)).exception
    assert isinstance(error, InputError)
    return str(error)


@pytest.mark.parametrize("names", [("a.csv", "b.csv", "c.csv"), ("a.json", "b.json", "c.json")])
def test_all_missing_logs_are_named(names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    there = Path(f"there{Path(names[0]).suffix}")
    there.write_text("x\n")
    said = said_of(names[0], str(there), *names[1:], "--output", "run")
    assert said == f"{', '.join(names)} cannot be read (No such file or directory): name logs that a tool wrote"


def test_missing_traces_of_a_run_are_named_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert said_of("a.json", "b.json", "--run", ".").startswith("a.json, b.json cannot be read")


def test_of_very_many_missing_logs_some_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = [f"{number}.csv" for number in range(MOST_NAMED + 4)]
    assert f"{MOST_NAMED - 1}.csv and 4 more cannot be read" in said_of(*names, "--output", "run")

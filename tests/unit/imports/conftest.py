"""What tests of imports share: an import, and what it wrote."""

import csv
import json
from pathlib import Path

import pytest

from gpu_report import schema
from gpu_report.imports.import_logs import import_logs

DATA = Path(__file__).parents[2] / "data"


class Imported:
    """A run folder that was made of logs."""

    def __init__(self, folder, notes):
        self.folder, self.notes = folder, notes
        self.rows = self._table(schema.SAMPLES_CSV)
        self.processes = self._table(schema.PROCESSES_CSV)
        self.host = self._table(schema.HOST_CSV)
        self.facts = json.loads((folder / schema.RUN_JSON).read_text())
        self.events = [json.loads(line) for line in (folder / schema.EVENTS_JSONL).read_text().splitlines()]

    def _table(self, name):
        path = self.folder / name
        return list(csv.DictReader(path.read_text().splitlines())) if path.exists() else []

    def column(self, name, gpu=0):
        """The readings of a GPU, None where a cell is empty."""
        return [float(row[name]) if row[name] else None for row in self.rows if row["gpu"] == str(gpu)]

    def of_kind(self, kind):
        return [event for event in self.events if event["kind"] == kind]


@pytest.fixture
def imported(tmp_path):
    """Import logs, named as files of tests/data or as paths, into a new folder."""

    def make(*logs, timezone="UTC", **options):
        folder = tmp_path / f"run-{len(list(tmp_path.glob('run-*')))}"
        return Imported(folder, import_logs([DATA / log for log in logs], folder, timezone=timezone, **options))

    return make


@pytest.fixture
def written(tmp_path):
    """Write a log."""

    def make(text, name="log.txt"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return make

"""Reading back what a recording under test has written, without the package's own readers."""

import csv
import io
import json
from pathlib import Path
from typing import Any


class RunFolder:
    """A run folder, read without the package's own readers."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def rows(self, name: str) -> list[dict[str, str]]:
        return list(csv.DictReader(self._whole_lines(name)))

    def samples(self, gpu: int | None = None) -> list[dict[str, str]]:
        return [row for row in self.rows("samples.csv") if gpu is None or row["gpu"] == str(gpu)]

    def events(self, kind: str | None = None) -> list[dict[str, Any]]:
        events = [json.loads(line) for line in self._whole_lines("events.jsonl")]
        return [event for event in events if kind is None or event["kind"] == kind]

    def info(self) -> dict[str, Any]:
        return json.loads((self.path / "run.json").read_text(encoding="utf-8"))

    def _whole_lines(self, name: str) -> io.StringIO:
        """The lines of a file; the last one may be in the midst of being written, and is left out then."""
        with (self.path / name).open(encoding="utf-8", newline="") as file:
            text = file.read()
        return io.StringIO(text[: text.rfind("\n") + 1], newline="")

"""A run folder that grows as a recorder would have it grow, at times that a test chooses."""

import json
from pathlib import Path

from gpu_report import run_folder, schema

START_S = 1_795_000_000.0
TOTAL_MIB = 80_000.0


class GrowingRun:
    """Writes rows and lines; `at_s` are seconds since the start."""

    def __init__(self, folder: Path, gpus: int = 1) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        (folder / "inside").mkdir(exist_ok=True)
        self.gpus = range(gpus)
        facts = [
            {"index": gpu, "name": "NVIDIA H200", "uuid": f"GPU-{gpu}", "memory_total_mib": TOTAL_MIB}
            for gpu in self.gpus
        ]
        run_folder.write_json(
            folder / "run.json", {"format": 1, "interval_s": 1.0, "host": {"name": "node7"}, "gpus": facts}
        )
        (folder / "samples.csv").write_text(",".join(column.name for column in schema.SAMPLES_COLUMNS) + "\n")
        self.event("recording_started", 0.0, segment=1)

    def rows(self, begin_s: int, util_pct, *, seconds: int = 1, **values: float | None) -> None:
        """Write a row a second for each GPU; `util_pct` is one number, or one for each GPU, None where it failed."""
        each = util_pct if isinstance(util_pct, tuple) else (util_pct,) * len(self.gpus)
        with (self.folder / "samples.csv").open("ab") as file:
            for second in range(begin_s, begin_s + seconds):
                for gpu in self.gpus:
                    cells = {
                        "wall_s": START_S + second,
                        "mono_s": 100.0 + second,
                        "gpu": gpu,
                        "gpu_util_pct": each[gpu],
                    }
                    given = {"memory_used_mib": 8000.0, "power_w": 300.0, "temperature_c": 50.0, **values}
                    file.write(run_folder.format_row(schema.SAMPLES_COLUMNS, {**cells, **given}))

    def event(self, kind: str, at_s: float, **fields: object) -> None:
        """Write a line of events.jsonl."""
        self._line(self.folder / "events.jsonl", kind, at_s, fields)

    def inside(self, kind: str, at_s: float, pid: int = 7, **fields: object) -> None:
        """Write a line of our callbacks."""
        self._line(self.folder / "inside" / f"{pid}.jsonl", kind, at_s, fields)

    def _line(self, path: Path, kind: str, at_s: float, fields: dict[str, object]) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"wall_s": START_S + at_s, "mono_s": 100.0 + at_s, "kind": kind, **fields}) + "\n")

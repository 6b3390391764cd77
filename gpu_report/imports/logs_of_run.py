"""The logs of all tools as one run: what its files say, apart from what YOLO and the kernel log add."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any

import pandas as pd

from gpu_report.imports import run_writer
from gpu_report.imports.clock import on_wall
from gpu_report.imports.join import Joined
from gpu_report.imports.parsing.readings import DEVICE_FIELDS, Device, Found, ImportedEvent
from gpu_report.imports.process_rows import process_rows


@dataclass(frozen=True, eq=False)
class LogsOfRun:
    """What each tool's logs say, and their rows on one clock; `zone` is that of stamps that carry none."""

    found: Sequence[Found]
    joined: Joined
    zone: tzinfo | None

    def happenings(self) -> list[ImportedEvent]:
        """Return what the logs say happened."""
        return [
            ImportedEvent(kind, wall_s, wall_s - self.joined.start_s, fields)
            for each in self.found
            for kind, wall_s, fields in each.happenings
        ]

    def notes(self) -> tuple[str, ...]:
        """Return what the report has to say: of the log that gave the rows, and of what others added."""
        return (
            *(note for each in self.found if each.tool == self.joined.sources[0] for note in each.notes),
            *self.joined.notes,
        )

    def facts(self) -> dict[str, Any]:
        """Return run.json, with what there is to note of the logs; what no log says is null."""
        joined = self.joined
        facts = run_writer.facts_of_import(" and ".join(joined.sources), *self._ends())
        facts["host"]["name"] = next((each.host_name for each in self.found if each.host_name), None)
        facts["interval_s"] = round(max(joined.interval_s, 0.001), 3)
        facts["gpus"] = [_gpu_facts(int(gpu), joined.devices.get(gpu, {})) for gpu in joined.samples["gpu"].unique()]
        facts["gpus"].sort(key=lambda gpu: gpu["index"])
        facts["driver"] = next((device["driver"] for device in joined.devices.values() if device.get("driver")), None)
        if notes := self.notes():
            facts["notes"] = list(notes)
        return facts

    def frame(self, yolo: Path | None) -> list[ImportedEvent]:
        """Return the events at the ends of the recording, and the YOLO run that it watched."""
        start, end = self._ends()
        unheard = {"status": "unavailable", "reason": self._no_xids()}
        happenings = [
            ImportedEvent("recording_started", *start, {"segment": 1}),
            ImportedEvent("recording_ended", *end, {"ended_by": "import"}),
            ImportedEvent("xid_events", *start, unheard),
        ]
        if yolo is not None:
            happenings.append(ImportedEvent("yolo_run", *start, {"path": str(yolo), "number": 1}))
        return happenings

    def _ends(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return when the recording began and ended: wall, and seconds of its own."""
        first_wall_s, last_wall_s = self.joined.span
        return (first_wall_s, 0.0), (last_wall_s, self.joined.length_s)

    def _no_xids(self) -> str:
        """Return why Xid errors may have gone unseen."""
        if keeping := next((each.tool for each in self.found if each.keeps_last_xid), None):
            return f"{keeping} keeps the last one alone: one that came twice is seen once"
        return f"{' and '.join(self.joined.sources)} {'does' if len(self.joined.sources) == 1 else 'do'} not log them"

    def processes(self) -> pd.DataFrame | None:
        """Return rows of processes.csv, of the first log that has processes."""
        for each in self.found:
            if each.processes is not None and len(each.processes):
                return process_rows(self._timed(each.processes, each))
        return None

    def host(self) -> pd.DataFrame | None:
        """Return rows of host.csv, of the first log that says something of the host."""
        for each in self.found:
            if each.host is not None and len(each.host):
                return self._timed(each.host, each).sort_values("mono_s", kind="stable", ignore_index=True)
        return None

    def _timed(self, rows: pd.DataFrame, found: Found) -> pd.DataFrame:
        wall_s, steady_s = on_wall(rows["stamp_s"].to_numpy(), UTC if found.in_utc else self.zone)
        timed = rows.assign(wall_s=wall_s, mono_s=steady_s - self.joined.start_s)
        return timed[timed["mono_s"] >= 0]


def _gpu_facts(index: int, device: Device) -> dict[str, Any]:
    known = {field: device.get(field) for field in (*DEVICE_FIELDS, "uuid", "pci_bus_id", "name")}
    mig = device.get("mig_enabled")
    return {"index": index, **known, "mig_enabled": None if mig is None else mig == "Enabled"}

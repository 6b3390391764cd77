"""`stacks/dumps.jsonl` as it is written: a line a dump, each stack written out once."""

import json
from pathlib import Path

from gpu_report import schema
from gpu_report.record.clocks import Clocks
from gpu_report.record.py_spy.dump_json import Frames
from gpu_report.record.py_spy.processes import Target
from gpu_report.run_folder import Appender

MOST_STACKS = 2000  # that are written out, of 3 kB each; what is seen after them counts as a dump of nothing known
UNKNOWN = 0
ROLES = {False: "main", True: "worker"}


class DumpFile:
    """Appends dumps; nothing here raises: `lost` counts what could not be written, `lost_reason` says why."""

    def __init__(self, folder: Path) -> None:
        """Write into a run folder, once there is something to write."""
        self._path = folder / schema.STACKS_DIR / schema.DUMPS_JSONL
        self._file: Appender | None = None
        self._numbers: dict[Frames, int] = {}
        self.lost = 0
        self.lost_reason = ""

    def write(self, at: Clocks, target: Target, frames: Frames) -> None:
        """Append a dump that was asked for at a moment."""
        is_new = frames not in self._numbers and len(self._numbers) < MOST_STACKS
        if is_new:
            self._numbers[frames] = len(self._numbers) + 1
        line = {
            "wall_s": round(at.wall_s, 3),
            "mono_s": round(at.mono_s, 3),
            "kind": schema.DUMP_KIND,
            "pid": target.pid,
            "role": ROLES[target.parent is not None],
            "parent": target.parent,
            "stack": self._numbers.get(frames, UNKNOWN),
            **({"frames": frames} if is_new else {}),
        }
        is_written = self._append((json.dumps(line, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace"))
        if is_new and not is_written:
            del self._numbers[frames]  # to be written out when the disk takes it

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _append(self, line: bytes) -> bool:
        try:
            if self._file is None:
                self._path.parent.mkdir(exist_ok=True)
                self._file = Appender(self._path)
        except OSError as error:
            self.lost, self.lost_reason = self.lost + 1, error.strerror or str(error)
            return False
        written = self._file.write(line)
        if not written:
            self.lost, self.lost_reason = self.lost + 1, self._file.lost_reason
        return written

"""When YOLO wrote its weights: by the times of its files, at two looks of a microsecond each a tick."""

from dataclasses import dataclass, field
from pathlib import Path

WEIGHTS = "weights"
FILES = ("last.pt", "best.pt")


@dataclass
class WeightsWatch:
    """The files of weights of one YOLO run, by the times when they were last seen to be written."""

    run: Path
    since_wall_s: float
    written_s: dict[str, float] = field(default_factory=dict)

    def changes(self) -> list[tuple[str, float]]:
        """Return name and time (UTC seconds) of each file written since the last look, oldest first."""
        seen = ((name, self._mtime_s(name)) for name in FILES)
        new = [
            (name, t) for name, t in seen if t is not None and t >= self.since_wall_s and t != self.written_s.get(name)
        ]
        self.written_s.update(new)
        return sorted(new, key=lambda change: change[1])

    @property
    def last_s(self) -> float | None:
        """Return when any of them was written last, None if never."""
        return max(self.written_s.values(), default=None)

    def _mtime_s(self, name: str) -> float | None:
        try:
            return (self.run / WEIGHTS / name).stat().st_mtime
        except OSError:
            return None

"""What the training says of itself while it goes on: its phase, its epochs, how long it waited for data."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from gpu_report import schema
from gpu_report.live.reading.tail import FileTail
from gpu_report.run_folder import finite, parse_events

RECENT_EPOCHS = 5  # by which the time left is estimated: the first ones, and those of another phase, were different
MOST_PROCESSES = 64  # of YOLO in one recording that are followed
LONGEST_TEXT = 200  # characters of a name


@dataclass
class LiveTraining:
    """The newest training so far. Times are wall seconds, epochs count from 1; None is not known.

    `phase_since_s` is when its phase began, `longest_s` the longest that each phase took before. `batch` of `batches`
    are done in this epoch. `data_wait_share` (0 to 1) is that of the last whole epoch's train part.
    """

    task: str = ""
    model: str | None = None
    phase: str | None = None
    phase_since_s: float | None = None
    epoch: int | None = None
    epochs: int | None = None
    batch: int | None = None
    batches: int | None = None
    epoch_since_s: float | None = None
    epoch_lengths_s: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT_EPOCHS))
    longest_s: dict[str, float] = field(default_factory=dict)
    data_wait_s: float = 0.0
    data_wait_share: float | None = None
    begun_s: float = 0.0
    ended: str | None = None
    ended_s: float | None = None
    error: str | None = None

    def epoch_s(self) -> float | None:
        """Return how long an epoch takes (median of the last ones), None before the first is over."""
        return median(self.epoch_lengths_s) if self.epoch_lengths_s else None

    def left_s(self, now_s: float) -> float | None:
        """Return how long the training will take from now on, by its last epochs; None where nobody can know."""
        one_s = self.epoch_s()
        if one_s is None or self.epoch is None or self.epochs is None or self.ended or self.epoch_since_s is None:
            return None
        of_this_s = max(one_s - (now_s - self.epoch_since_s), 0.0)
        return (self.epochs - self.epoch) * one_s + of_this_s


class YoloProcess:
    """One process of YOLO: the lines that our callbacks write in it."""

    def __init__(self, path: Path) -> None:
        self._tail = FileTail(path)
        self.begun_s = 0.0
        self.rank = 0
        self.training: LiveTraining | None = None

    def look(self) -> None:
        """Take in what has come; OSError where it cannot be read."""
        while self._tail.is_behind or not self.begun_s:
            lines = self._tail.lines()
            for event in parse_events(b"\n".join(lines))[0]:
                self._take(event["kind"], event)
            if not lines:
                return
        self._tail.is_behind = True  # to be looked at anew

    def _take(self, kind: str, event: Mapping[str, Any]) -> None:
        if kind == "run":
            self.begun_s, self.rank = event["wall_s"], _whole(event.get("rank")) or 0
            self.training = LiveTraining(task=_text(event.get("task")) or "", begun_s=self.begun_s)
        if self.training is None:
            return
        take = getattr(self, f"_take_{kind}", None) if kind in KINDS else None
        if take is not None:
            take(self.training, event)

    def _take_settings(self, training: LiveTraining, event: Mapping[str, Any]) -> None:
        """Take in what a line says: the first has all of these, later ones add other settings."""
        training.model = _text(event.get("model", training.model))
        training.epochs = _whole(event.get("epochs", training.epochs))
        training.batches = _whole(event.get("batches", training.batches))

    def _take_phase(self, training: LiveTraining, event: Mapping[str, Any]) -> None:
        name, at_s = _text(event.get("name")), event["wall_s"]
        if name == training.phase and _whole(event.get("epoch")) == training.epoch:
            return  # a detail of it changed
        if training.phase is not None and training.phase_since_s is not None:
            took_s = at_s - training.phase_since_s
            training.longest_s[training.phase] = max(training.longest_s.get(training.phase, 0.0), took_s)
        training.phase, training.phase_since_s = name, at_s
        epoch = _whole(event.get("epoch"))
        if epoch is not None and epoch != training.epoch and name == "train":
            if training.epoch_since_s is not None and training.epoch == epoch - 1:
                training.epoch_lengths_s.append(at_s - training.epoch_since_s)
            training.epoch, training.epoch_since_s, training.batch = epoch, at_s, 0

    def _take_progress(self, training: LiveTraining, event: Mapping[str, Any]) -> None:
        training.batch = _whole(event.get("batches"))

    _take_batches = _take_progress

    def _take_epoch(self, training: LiveTraining, event: Mapping[str, Any]) -> None:
        wait_s, start_s = finite(event.get("data_wait_s")), finite(event.get("start_wall_s"))
        training.batch = _whole(event.get("batches"))
        if wait_s is not None and start_s is not None and event["wall_s"] > start_s:
            training.data_wait_s += wait_s
            training.data_wait_share = min(max(wait_s / (event["wall_s"] - start_s), 0.0), 1.0)

    def _take_ended(self, training: LiveTraining, event: Mapping[str, Any]) -> None:
        training.ended, training.error = _text(event.get("how")), _text(event.get("error"))
        training.phase, training.ended_s = None, event["wall_s"]


KINDS = {"settings", "phase", "progress", "batches", "epoch", "ended"}


class Processes:
    """All processes of YOLO in a run folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / schema.INSIDE_DIR
        self._known: dict[Path, YoloProcess] = {}
        self._over: set[Path] = set()  # of a sweep: what they were is not asked again

    def look(self) -> None:
        """Take in what has come from all of them; OSError where it cannot be read."""
        for path in self._folder.glob("*.jsonl"):
            if path not in self._known and path not in self._over and self._has_room():
                self._known[path] = YoloProcess(path)
        for process in self._known.values():
            process.look()

    def _has_room(self) -> bool:
        """Make room for one more by forgetting the one of those that have ended that began first."""
        if len(self._known) < MOST_PROCESSES:
            return True
        over = [path for path, each in self._known.items() if each.training is None or each.training.ended]
        if not over:
            return False
        first = min(over, key=lambda path: self._known[path].begun_s)
        del self._known[first]
        self._over.add(first)
        return True

    @property
    def running(self) -> list[LiveTraining]:
        """Return the trainings that have not ended, each of its first rank."""
        found = [each.training for each in self._known.values() if each.rank <= 0]
        return [each for each in found if each is not None and each.task == "train" and each.ended is None]

    @property
    def newest(self) -> LiveTraining | None:
        """Return the training that began last, of its first rank; without any what else YOLO does."""
        first = [each for each in self._known.values() if each.training is not None and each.rank <= 0]
        trains = [each for each in first if each.training is not None and each.training.task == "train"]
        return max(trains or first, key=lambda each: each.begun_s).training if first else None


def _whole(value: object) -> int | None:
    number = finite(value)
    return int(number) if number is not None and abs(number) < 2**53 else None


def _text(value: object) -> str | None:
    return value[:LONGEST_TEXT] if isinstance(value, str) else None

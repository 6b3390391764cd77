"""Keeping a quantity that fails and recovers all the time from filling a disk with events."""

from collections.abc import Iterable
from dataclasses import dataclass

from gpu_report.record.gpu.nvml_quantities import Change

WRITTEN_AT_ONCE = 10  # so many changes of one quantity are reported as they come: each may be the one that matters ...
THEN_EVERY_S = 60.0  # ... and from then on where it stands, once a minute while it goes on changing
QUIET_AFTER_S = 600.0  # one that has not changed for so long has a clean slate


@dataclass
class _History:
    """How often a quantity has changed lately, when that was last and last told, and what is held back."""

    changes: int = 0
    changed_s: float = float("-inf")
    written_s: float = float("-inf")
    held: Change | None = None


class Flapping:
    """Decides which changes to tell now."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, str], _History] = {}

    def admit(self, changes: Iterable[Change], mono_s: float) -> list[Change]:
        """Return what is to be told at this moment: of these changes, and of those held back before."""
        due = [change for change in changes if self._admit(change, mono_s)]
        return due + [change for history in self._known.values() if (change := _due(history, mono_s))]

    def held(self) -> list[Change]:
        """Return what has been held back: how these quantities stand at the end."""
        return [history.held for history in self._known.values() if history.held is not None]

    def _admit(self, change: Change, mono_s: float) -> bool:
        history = self._known.setdefault((change.gpu, change.quantity), _History())
        if mono_s - history.changed_s > QUIET_AFTER_S:
            history.changes = 0
        history.changes += 1
        history.changed_s = mono_s
        if history.changes > WRITTEN_AT_ONCE:
            history.held = change
            return False
        history.written_s = mono_s
        return True


def _due(history: _History, mono_s: float) -> Change | None:
    if history.held is None or mono_s - history.written_s < THEN_EVERY_S:
        return None
    change, history.held, history.written_s = history.held, None, mono_s
    return change

"""Keeping our own mistakes away from the training: said once, counted, and survived."""

import contextlib
import sys
from collections.abc import Callable

from gpu_report.record.clocks import Clocks
from gpu_report.record.run_folder_writer import Say
from gpu_report.terminal import takes_text

SAY_LIMIT_S = 0.3  # a terminal under load takes a line within that; one that Ctrl-S holds takes none
MOST_KINDS_SAID = 20  # an error whose text changes each time must fill neither memory nor the terminal


class ExceptionGuard:
    """Calls what may fail through a fault of ours; nothing comes out but a line on stderr."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._said: set[str] = set()
        self.errors = 0

    def call(self, action: Callable[[Clocks], object], at: Clocks) -> None:
        """Run `action(at)`; an exception is counted, and each kind is said once."""
        try:
            action(at)
        except Exception as error:  # noqa: BLE001 - a bug in recording must never end a training
            self.errors += 1
            where = f"{type(error).__name__}: {error}"
            if where not in self._said and len(self._said) < MOST_KINDS_SAID:
                self._said.add(where)
                self._say(f"a part of the recording failed ({where}); please report this. It goes on.")


def quiet(say: Say) -> Say:
    """Return `say` that waits no longer than SAY_LIMIT_S for a stderr, and without the errors of one that is closed."""

    def say_if_possible(line: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            if sys.stderr is None or takes_text(sys.stderr, SAY_LIMIT_S):
                say(line)

    return say_if_possible

"""What this process is doing now: the run that is going on, its phase, and the lines that say so."""

from __future__ import annotations

import atexit
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from . import exceptions, facts, setting_locations
from .lines import LINES

if TYPE_CHECKING:
    from collections.abc import Sequence

Moment = Any  # (wall seconds, monotonic seconds)


class ReportedRun:
    """One training, validation, prediction or export, from its `run` line to its `ended` line."""

    def __init__(self, task: str, instance: Any) -> None:
        """Say that it begins."""
        self.task = task
        self.instance = id(instance)
        self.save_dir = facts.save_dir(instance)
        self.phase_now: tuple[str, str, int | None] | None = None
        self._slow_modes: list[str] | None = None  # at every look so far
        self._slow_modes_now: list[str] = []
        self._placed: set[str] = set()
        LINES.write("run", {"task": task, **facts.of_process(), **facts.of_job(), "save_dir": self.save_dir})

    def phase(self, name: str, detail: str = "", epoch: int | None = None, at: Moment = None) -> None:
        """Say that a phase begins, which ends the one before; nothing where it goes on already."""
        if self.phase_now != (name, detail, epoch):
            self.phase_now = (name, detail, epoch)
            LINES.write("phase", {"name": name, "detail": detail, "epoch": epoch}, at)

    def tell_slow_modes(self) -> None:
        """Say what is switched on that slows this process, and what of it was at every look, where that has changed.

        What is on at two looks or more is no glance of a profiler's: which line switched it on is looked for.
        """
        now_on, always, last = facts.slow_modes(), self._slow_modes, self._slow_modes_now
        self._slow_modes = now_on if always is None else [mode for mode in always if mode in now_on]
        self._slow_modes_now = now_on
        told = {"slow_modes": self._slow_modes} if self._slow_modes != (always or []) else {}
        if always is not None and now_on != last:
            told["slow_modes_now"] = now_on
        if told:
            LINES.write("settings", told)
        self.tell_places([mode for mode in now_on if mode in last or mode in self._slow_modes])

    def tell_places(self, names: Sequence[str]) -> None:
        """Have it said which lines of the user's code switched something on, once of each."""
        asked = [name for name in names if name not in self._placed]
        self._placed.update(asked)
        if asked:
            LINES.write_found("set_in", partial(setting_locations.found, asked))

    def ended(self, how: str, at: Moment = None, **fields: object) -> None:
        """Say that it is over, and how."""
        LINES.write("ended", {"how": how, **fields}, at)
        LINES.drain()


class Current:
    """The run that is going on in this process, if any."""

    def __init__(self) -> None:
        self.run: ReportedRun | None = None
        self.watched_pid = 0

    def begin(self, run: ReportedRun) -> None:
        """Take a new run; the interpreter's end will close it where nothing else does."""
        self.run = run
        if self.watched_pid != os.getpid():
            self.watched_pid = os.getpid()
            atexit.register(at_exit)

    def end(self, how: str, at: Moment = None, **fields: object) -> None:
        """Close the run."""
        run, self.run = self.run, None
        if run is not None:
            run.ended(how, at, **fields)

    def is_training(self) -> bool:
        """Say whether a training is going on, of which all else is then a part."""
        return self.run is not None and self.run.task == "train"


CURRENT = Current()


def at_exit() -> None:
    """Close what nobody closed: an exception ended it, which older versions of ultralytics do not tell."""
    try:
        run = CURRENT.run
        pause = getattr(run, "close", None)
        if run is None or CURRENT.watched_pid != os.getpid():  # that, or a fork of it
            return
        if pause is not None:
            pause()
        else:
            CURRENT.end("exception", **exceptions.described(getattr(sys, "last_value", None), run.save_dir))
    except Exception:  # noqa: BLE001, S110 - the process is ending; there is nobody left to tell
        pass

"""Starting the training, passing signals on to it, and learning how it ended."""

import errno
import os
import shutil
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gpu_report.record import clocks
from gpu_report.record.clocks import Clocks
from gpu_report.record.lifecycle.signals import STOPPING, ArrivedSignal

NOT_FOUND = 127  # the shell's exit codes for a command that cannot be started
NOT_STARTABLE = 126
SIGNAL_BASE = 128  # ... and for one that a signal ended
SENT_BY_KERNEL = 0x80  # siginfo's SI_KERNEL

# What a Python parent sets to "ignore" would stay so across exec; a command expects the defaults.
_RESTORED = tuple(s for s in (signal.SIGPIPE, signal.SIGXFSZ) if signal.getsignal(s) == signal.SIG_IGN)


@dataclass(frozen=True)
class Ended:
    """How and when a command ended: `code` as a shell would report it, `signal_name` when a signal did it.

    `asked` is the signal that last asked it to end, `asked_before_s` how long before it did; None without one. What a
    launcher such as torchrun makes of a signal is an exit code that says nothing of it.
    """

    code: int
    signal_name: str | None
    at: Clocks
    asked: str | None = None
    asked_before_s: float | None = None

    def as_fields(self) -> dict[str, object]:
        """Return what the run folder keeps of it."""
        how: dict[str, object] = {"exit_code": self.code} if self.signal_name is None else {"signal": self.signal_name}
        return how if self.asked is None else {**how, "asked": self.asked, "asked_before_s": self.asked_before_s}


class NotStarted(Exception):  # noqa: N818 - an answer, not an error
    """The command could not be started; `code` is the shell's exit code for that."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class TrainingCommand:
    """A running command, in our process group and on our terminal, with our standard streams."""

    def __init__(self, words: Sequence[str], unblocked: Iterable[int], environment: Mapping[str, str]) -> None:
        """Start it with the signal mask `unblocked`; NotStarted when it is not found or may not be executed."""
        if not words[0]:
            raise NotStarted("the command is empty", NOT_FOUND)
        try:
            self.pid = os.posix_spawnp(
                words[0], list(words), environment, setsigmask=list(unblocked), setsigdef=list(_RESTORED)
            )
        except OSError as error:
            raise _not_started(words[0], error) from error
        self.started = clocks.now()
        self.ended: Ended | None = None
        self._asked: tuple[ArrivedSignal, float] | None = None  # with the moment on the monotonic clock

    def poll(self) -> Ended | None:
        """Return how it ended, None while it runs."""
        if self.ended is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.ended = self._told(_ended(status)) if pid else None
        return self.ended

    def _told(self, ended: Ended) -> Ended:
        if self._asked is None:
            return ended
        arrived, mono_s = self._asked
        return replace(ended, asked=arrived.name, asked_before_s=round(ended.at.mono_s - mono_s, 3))

    def handle(self, arrived: ArrivedSignal) -> None:
        """Pass a signal on, unless it only says that a child has ended, or the command has received it already."""
        if self.poll() is not None or arrived.number == signal.SIGCHLD:
            return
        if arrived.number in STOPPING:
            self._asked = arrived, time.monotonic()
        if not _reached_all(arrived):
            os.kill(self.pid, arrived.number)


def _reached_all(arrived: ArrivedSignal) -> bool:
    """Tell whether the kernel has sent a signal to our whole process group: a key on the terminal, a shell that ended.

    A terminal that hangs up tells its session's leader alone (tty_signal_session_leader in Linux). With `ssh -t` and in
    a pane of tmux that is we, in the place of the command.
    """
    alone = arrived.number == signal.SIGHUP and os.getsid(0) == os.getpid()
    return arrived.code == SENT_BY_KERNEL and not alone


def environment_version(words: Sequence[str], package: str) -> str | None:
    """Return the version of a package where the command's own Python would find it, without importing anything."""
    program = shutil.which(words[0]) if words else None
    if program is None:
        return None
    for folder in Path(program).parent.parent.glob("lib/python3*/site-packages"):
        for metadata in folder.glob(f"{package}-*.dist-info"):
            return metadata.name.removeprefix(f"{package}-").removesuffix(".dist-info")
    return None


def _ended(status: int) -> Ended:
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return Ended(code, None, clocks.now())
    return Ended(SIGNAL_BASE - code, _signal_name(-code), clocks.now())


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


def _not_started(program: str, error: OSError) -> NotStarted:
    if error.errno in (errno.ENOENT, errno.ENOTDIR) and not _script_without_interpreter(program):
        return NotStarted(f"{program}: command not found", NOT_FOUND)
    return NotStarted(f"{program} cannot be started ({error.strerror})", NOT_STARTABLE)


def _script_without_interpreter(program: str) -> bool:
    """Say whether the file is there, so that "no such file" must mean the interpreter in its first line."""
    return shutil.which(program) is not None

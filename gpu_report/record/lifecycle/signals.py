"""Signals as something to wait for: no handler runs in the midst of anything, and none waits for a hung call."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass

STOPPING = (signal.SIGINT, signal.SIGTERM)
FORWARDED = (*STOPPING, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
WAITED_FOR = (*FORWARDED, signal.SIGCHLD)


@dataclass(frozen=True)
class ArrivedSignal:
    """A signal that arrived: its number, and `code`, siginfo's word on who sent it."""

    number: int
    code: int

    @property
    def name(self) -> str:
        """Return its name, SIGTERM."""
        return signal.Signals(self.number).name


@contextlib.contextmanager
def blocked() -> Iterator[set[int]]:
    """Block what we wait for, in this thread and those it starts; yields the mask as it was, for children."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where a parent had it ignored, no child's exit code could be read
    before = signal.pthread_sigmask(signal.SIG_BLOCK, WAITED_FOR)
    try:
        yield {int(number) for number in before}
    finally:
        _discard_pending()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def wait_until(mono_s: float) -> ArrivedSignal | None:
    """Sleep until a moment of the monotonic clock, or until a signal arrives, which is returned."""
    while True:
        left = mono_s - time.monotonic()
        info = signal.sigtimedwait(WAITED_FOR, max(0.0, left))
        if info is not None:
            return ArrivedSignal(info.si_signo, info.si_code)
        if mono_s <= time.monotonic():
            return None


def ignored(number: signal.Signals) -> bool:
    """Say whether whoever started us has this signal ignored, as `nohup` does with SIGHUP."""
    return signal.getsignal(number) == signal.SIG_IGN


def has_terminal() -> bool:
    """Say whether this process has a controlling terminal, whose end it is told by SIGHUP."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def wake(thread_id: int) -> None:
    """Make `wait_until` return in another thread: by the one signal that asks only to look at what has changed."""
    signal.pthread_kill(thread_id, signal.SIGCHLD)


def this_thread() -> int:
    """Return the calling thread's identity for `wake`."""
    return threading.get_ident()


def first_pending(numbers: Collection[int]) -> int | None:
    """Return one of these signals that has arrived and waits to be taken, None if there is none."""
    return min((int(number) for number in signal.sigpending() if number in numbers), default=None)


def pending(numbers: Collection[int]) -> bool:
    """Say whether one of these signals has arrived and waits to be taken."""
    return first_pending(numbers) is not None


def _discard_pending() -> None:
    """Drop what arrived after we had made up our mind to end: it must not become a traceback on the way out."""
    while signal.sigtimedwait(WAITED_FOR, 0) is not None:
        pass

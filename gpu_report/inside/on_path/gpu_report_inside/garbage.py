"""When Python's garbage collector runs in this process: how often, for how long, and of long ones in which line.

A function in `gc.callbacks` runs in whichever thread made one object too many, at any place. A line of Python there
would be the first to see a Ctrl-C that came meanwhile, and Python drops what such a function raises: the training would
go on. So what is called there is put together from functions of C. Nothing of it runs Python, lets go of the
interpreter's lock, or keeps a frame.
"""

from __future__ import annotations

import gc
import operator
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate, chain, count, repeat, starmap, takewhile, tee
from typing import TYPE_CHECKING, Any, NamedTuple

from .notes import DEEPEST, FramePlace

if TYPE_CHECKING:
    from types import CodeType

# A collection that lasted so long is kept with its line: the notes tell times in steps of it. Hundreds a second of the
# youngest generation take 0.01 to 1 ms each; a step of training that they slow has many, and is not told by one.
LONG_NS = 10_000_000
MOST_LONG = 64  # that wait for the next note, 0.1 s at most unless the lock is kept
NS = 1e-9


class Long(NamedTuple):
    """A long collection: when it began (s, monotonic), how long it took, in which thread, and where that stood.

    `places` are of its frames, innermost first.
    """

    mono_s: float
    seconds: float
    thread: int
    places: list[FramePlace]


class CollectionCounter:
    """Counts all collections of this process since `start`, and keeps the long ones until they are asked for."""

    def __init__(self) -> None:
        self._callback: Any = None
        self._forget()

    def _forget(self) -> None:
        self._began = deque([time.monotonic_ns()], maxlen=1)
        self._so_far: deque[tuple[int, int, None]] = deque([(0, 0, None)], maxlen=1)
        self._long: deque[tuple[int, int, int, tuple[tuple[CodeType, int], ...]]] = deque(maxlen=MOST_LONG)

    def start(self) -> None:
        """Count from now on; in a fork anew."""
        self.end()
        self._forget()
        if sys.implementation.name == "cpython":
            self._callback = self._of_c()
            gc.callbacks.append(self._callback)

    def end(self) -> None:
        """Count no more."""
        if self._callback is not None and self._callback in gc.callbacks:
            gc.callbacks.remove(self._callback)

    @property
    def so_far(self) -> tuple[int, float] | None:
        """Return how many there were, and how long they took (s); None of an interpreter in which none is counted."""
        if self._callback is None:
            return None
        number, nanoseconds, _ = self._so_far[-1]
        return number, nanoseconds * NS

    def long(self) -> list[Long]:
        """Return the long ones that came since this was last asked."""
        found = []
        while self._long:
            end_ns, began_ns, thread, places = self._long.popleft()
            found.append(Long(began_ns * NS, (end_ns - began_ns) * NS, thread, [FramePlace(*each) for each in places]))
        return found

    def _of_c(self) -> Any:
        """Return what is called with `start` or `stop`, and a dictionary, around each collection.

        It is `getattr(hook, phase, dictionary)`, where the hook has two properties of these names: to get one asks an
        endless iterator for its next item, which does what is to be done.
        """
        now, began = _again(time.monotonic_ns), starmap(self._began.__getitem__, repeat((0,)))
        took, of_all = tee(map(operator.sub, now, began))
        told = zip(now, began, _again(threading.get_ident), _places())  # noqa: B905 - `strict` is of 3.10
        times = map(operator.ge, took, repeat(LONG_NS))  # of each: 0 or 1, so often it is told
        tells = map(self._long.extend, map(starmap, repeat(told.__next__), map(repeat, repeat(()), times)))
        stop = map(self._so_far.append, zip(count(1), accumulate(of_all), tells))
        start = map(self._began.append, now)
        hook = type("Hook", (), {"start": property(partial(next, start)), "stop": property(partial(next, stop))})
        return partial(getattr, hook())


def _again(function: Callable[[], Any]) -> Iterator[Any]:
    """Return what a function returns each time that the next is asked for."""
    return starmap(function, repeat(()))


def _places() -> Iterator[tuple[tuple[CodeType, int], ...]]:
    """Return the code and the instruction of each frame of this thread, innermost first, each time that it is asked.

    Not by `sys._current_frames`: within that function Python 3.11 before 3.11.9 would wait here for ever (threads.py).
    """
    has_frames, goes_out = tee(_has_frames())
    innermost = map(starmap, repeat(sys._getframe), map(repeat, repeat((0,)), has_frames))
    outwards = map(repeat, repeat("f_back"), map(operator.mul, goes_out, repeat(DEEPEST)))
    frames = map(accumulate, map(chain, innermost, outwards), repeat(getattr))
    known = map(takewhile, repeat(operator.truth), frames)  # what lies outside of the last one is None
    of_each = operator.attrgetter("f_code", "f_lasti")
    return map(tuple, map(map, repeat(of_each), known))


def _has_frames() -> Iterator[bool]:
    """Return whether this thread is one of Python's, each time that it is asked: of C's own one may have no frame."""
    active = threading._active  # type: ignore[attr-defined]
    is_known = map(operator.contains, repeat(active), _again(threading.get_ident))
    kinds = map(type, map(active.get, _again(threading.get_ident)))
    is_own = map(operator.is_not, kinds, repeat(threading._DummyThread))
    return map(operator.and_, is_known, is_own)


COLLECTIONS = CollectionCounter()

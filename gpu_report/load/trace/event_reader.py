"""The events of a trace in batches, whatever its lines look like, without holding more than a block of it."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from gpu_report.load.trace.damage import salvage
from gpu_report.load.trace.decode import Decode
from gpu_report.load.trace.limits import LARGEST_EVENT, LARGEST_FOOTER, LARGEST_HEADER, MOST_BAD, MOST_BRACES

_EVENTS: Final = re.compile(rb'"traceEvents"\s*:\s*\[')
_LIST: Final = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[")  # Chrome takes a bare list of events, too
_GAP: Final = 64  # bytes between two events at most: a comma, a line break and some indentation


class EventReader:
    """Iterate over the decoded events of a trace.

    At their end `header` and `footer` are the JSON around them, `bad` says how many could not be read, and `ended`
    whether the array of events was closed. `found` is False where the file has no such array: it is no trace.
    """

    def __init__(self, blocks: Iterable[bytes], decode: Decode) -> None:
        """Take the bytes of a file, and a decoder for pieces of it."""
        self._blocks, self._decode = iter(blocks), decode
        self.header = self.footer = ""
        self.bad = 0
        self.found = self.ended = False

    def __iter__(self) -> Iterator[list[Any]]:
        """Yield the events of about a block each."""
        rest = self._skip_header()
        if not self.found:
            return
        for block in self._blocks:
            rest += block
            cut = _between_events(rest)
            if cut is None and len(rest) <= LARGEST_EVENT:
                continue
            end, begin = cut or (len(rest), len(rest))
            again, events = self._events(rest[:end], last=False)
            rest = b",".join(filter(None, (again, rest[begin:])))
            yield events
            if self.ended or self.bad > MOST_BAD:
                self.footer += (rest + b"".join(self._tail())).decode("utf-8", "replace") if self.ended else ""
                return
        yield self._events(rest, last=True)[1]

    def _skip_header(self) -> bytes:
        """Read up to the first event; return what was read behind that."""
        start = b""
        for block in self._blocks:
            start += block
            begin = _LIST.match(start) or _EVENTS.search(start)
            if begin is not None:
                self.found, self.header = True, start[: begin.start()].decode("utf-8", "replace")
                return start[begin.end() :]
            if len(start) > LARGEST_HEADER:
                break
        return b""

    def _events(self, piece: bytes, *, last: bool) -> tuple[bytes, list[Any]]:
        """Return what of a piece is to be read again, and its events."""
        try:
            return b"", self._decode(piece)
        except ValueError:
            found = salvage(piece, self._decode, last=last)
        self.bad += found.bad
        if found.footer is not None:
            self.ended, self.footer = True, found.footer
        return found.again, found.events

    def _tail(self) -> Iterator[bytes]:
        left = LARGEST_FOOTER
        for block in self._blocks:
            yield block[:left]
            left -= len(block)
            if left <= 0:
                return


def _between_events(data: bytes) -> tuple[int, int] | None:
    """Return where the last but one event ends and the last one begins, None where no such place is found.

    It is the last comma between two braces. Where that is inside an event, what comes before it is no JSON.
    """
    begin = len(data)
    for _ in range(MOST_BRACES):
        begin = data.rfind(b"{", 0, begin)
        if begin < 0:
            return None
        before = data[max(begin - _GAP, 0) : begin].rstrip()
        if before.endswith(b",") and (before := before[:-1].rstrip()).endswith(b"}"):
            return data.rindex(b"}", 0, begin) + 1, begin
    return None

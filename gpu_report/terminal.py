"""What may be written to a terminal: text that commands nothing, commands to copy, a line that says what is done."""

import contextlib
import os
import re
import select
import sys
import threading
from collections.abc import Callable
from textwrap import fill
from typing import Self, TextIO

PATIENCE_S = 1.0  # what takes no longer than this says nothing
REFRESH_S = 1.0
ERASE_LINE = "\r\x1b[K"

# Control characters can move a terminal's cursor or recolour it; bidirectional overrides can reorder what is read;
# a lone surrogate cannot be written at all.
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


# How CI services find commands in what a step prints: GitHub Actions at a line's beginning (::error::) and anywhere in
# it (##[error]), Azure Pipelines (##vso[...]) and TeamCity (##teamcity[...]) anywhere.
_CI_COMMAND = re.compile(r"(?m)^(?=[^\S\n]*::)|(?<=#)(?=#\w*\[)")
_NOTHING = "\u200b"  # a space of no width


# What our own sentences name to be typed as it stands; other code in them is an option, or what somebody else typed.
_TYPED = re.compile(
    r"(?:nvidia-smi|sudo|dmesg|lspci|yolo|gpu-report|nohup|python3? -c|pip install|docker run|kill (?:-9 )?\d+)(?: |$)"
    r"|YOLO\("
)

_AMOUNT = re.compile(r"(\d) (?=(?:%|°C|s|ms|min|h|GiB|MiB|W|Wh)(?:\W|$))")


def is_terminal(stream: TextIO | None) -> bool:
    """Say whether a stream is a terminal; one that was closed before the program began (`>&-`) is none at all."""
    return stream is not None and stream.isatty()


def takes_text(stream: TextIO, wait_s: float = 0.0) -> bool:
    """Say whether a line can be written at once: not while Ctrl-S holds a terminal, or a pipe is full.

    Waits for up to `wait_s`. True for what has no file descriptor; what is wrong with one is for the write to say.
    """
    try:
        ready = select.poll()
        ready.register(stream.fileno(), select.POLLOUT)
        return bool(ready.poll(wait_s * 1000))
    except (OSError, ValueError):
        return True


def is_typed(code: str) -> bool:
    """Tell whether code between backticks is a command to be typed, which is worth a button that copies it."""
    return _TYPED.match(code) is not None


def apart(text: str) -> list[tuple[str, bool]]:
    """Return the parts of a text, each with whether it is a command that stands on a line of its own, to be copied.

    Commands stand between backticks, or are all of the text. A single word stays in its sentence, for it cannot break;
    a call in Python may be longer than a line. So does a command that the sentence only speaks of.
    """
    parts = text.split("`")
    if len(parts) == 1 and is_typed(text) and _may_break(text):
        return [(text, True)]
    if len(parts) % 2 == 0:  # a backtick in somebody's path
        return [(text, False)]
    found: list[tuple[str, bool]] = [("", False)]
    for place, part in enumerate(parts):
        if place % 2 and is_typed(part) and _may_break(part) and not _is_named(part, parts[place + 1]):
            before = found.pop()[0].rstrip(" ,;")
            found += [(before if before.endswith((":", ".")) or not before else f"{before}:", False), (part, True)]
            found.append(("", False))
        else:
            said = found.pop()[0]
            rest = part if said or not place else part.lstrip(" .,;")  # after a command its full stop goes
            found.append((said + (f"`{part}`" if place % 2 else rest), False))
    return [(said.strip(), command) for said, command in found if said.strip()]


def _is_named(code: str, after: str) -> bool:
    """Tell whether a sentence speaks of a command without arguments, and goes on: name one that `record` writes."""
    return len(code.split()) <= 2 and after[:1] == " " and after[1:2].islower()


def _may_break(code: str) -> bool:
    return " " in code or "(" in code


def with_command_lines(text: str, width: int | None = None) -> str:
    """Return a text whose commands stand on lines of their own; what a terminal must not be sent is taken out.

    The rest is broken between words at `width`, where that is given: a path that is longer stays whole, to be copied.
    """

    def wrapped(said: str) -> str:
        if width is None:
            return said
        kept = _AMOUNT.sub("\\1\u00a0", said)  # a number does not part from its unit
        return fill(kept, width, break_long_words=False, break_on_hyphens=False).replace("\u00a0", " ")

    return "\n".join(f"    {plain(part)}" if command else wrapped(plain(part)) for part, command in apart(text))


def width_of(stream: TextIO | None) -> int | None:
    """Return how many columns a terminal has; None for what is no terminal: lines of a file are as long as they are."""
    if not is_terminal(stream) or stream is None:
        return None
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def plain(text: str) -> str:
    """Return text without control characters and what no terminal can be sent."""
    return UNPRINTABLE.sub("\ufffd", text)


def without_commands(text: str) -> str:
    """Return text in which no CI service finds a command: what a run is called could be one."""
    return _CI_COMMAND.sub(_NOTHING, text)


class ProgressLine:
    """While it is entered, a line on a terminal that says what is being done; elsewhere nothing is written.

    It is written by a thread of its own, and left out while a terminal takes nothing (Ctrl-S, a dead connection).
    """

    def __init__(self, words: Callable[[], str] | str, stream: TextIO | None = None) -> None:
        self._words = words
        self._stream = sys.stderr if stream is None else stream
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def step(self, words: str) -> None:
        """Say from now on that this is being done."""
        self._words = words

    def __enter__(self) -> Self:
        """Begin; nothing is written before PATIENCE_S."""
        if is_terminal(self._stream):
            self._thread = threading.Thread(target=self._show, name="progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End, and take the line away; a terminal that does not take that is not waited for."""
        self._done.set()
        if self._thread is not None:
            self._thread.join(timeout=REFRESH_S)

    def _show(self) -> None:
        if self._done.wait(PATIENCE_S):
            return
        with contextlib.suppress(OSError, ValueError):  # the terminal was closed
            while not self._done.is_set():
                words = self._words if isinstance(self._words, str) else self._words()
                self._write(f"{ERASE_LINE}{plain(words)}")
                self._done.wait(REFRESH_S)
            self._write(ERASE_LINE)

    def _write(self, text: str) -> None:
        if takes_text(self._stream):
            self._stream.write(text)
            self._stream.flush()

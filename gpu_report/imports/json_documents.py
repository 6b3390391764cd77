"""JSON documents that follow each other in a file, with or without line breaks, some of them cut or damaged."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

_NOT_SPACE: Final = re.compile(r"[^\s,\[\]]")  # a list of documents is read as its documents
_NEXT: Final = re.compile(r"^\s*\{", re.MULTILINE)


class Documents:
    """The objects in a text, in order; `damaged` counts places where there was none."""

    def __init__(self, text: str) -> None:
        self.damaged = 0
        self._text = text

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield each object at the top, or in a list at the top."""
        decode = json.JSONDecoder().raw_decode
        at = 0
        while (found := _NOT_SPACE.search(self._text, at)) is not None:
            try:
                value, at = decode(self._text, found.start())
            except (ValueError, RecursionError):
                value = None
                again = _NEXT.search(self._text, found.end())
                at = again.start() if again else len(self._text)
            if isinstance(value, dict):
                yield value
            else:
                self.damaged += 1


def number(value: object) -> float:
    """Return a JSON value as a number, NaN where it is none; text counts where it is a number's."""
    if isinstance(value, bool) or value is None:
        return float("nan")
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def damage(where: object, documents: Documents) -> tuple[str, ...]:
    """Return the sentence that says how much of a file was no JSON; none where all was."""
    if not documents.damaged:
        return ()
    return (f"{documents.damaged} places of {where} are no whole JSON objects and were left out.",)

"""JSON documents that follow each other in a file, with or without line breaks, some of them cut or damaged."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from gpu_report.wording import counted

_NOT_SPACE: Final = re.compile(r"[^\s,\[\]]")  # a list of documents is read as its documents
_NEXT: Final = re.compile(r"^(?P<indent>[^\S\n]*)\{", re.MULTILINE)


class Documents:
    """The objects in a text, in order; `damaged` counts those that are cut, and places where there was none.

    What stands deeper in a text than the beginning of a cut object is a part of it; a line of something else is one.
    """

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
            if isinstance(value, dict):
                yield value
            else:
                self.damaged += 1
                at = self._after(found.start())

    def _after(self, broken: int) -> int:
        """Return where the next object may begin after one that is cut, or after what is none."""
        indent = broken - self._text.rfind("\n", 0, broken) - 1 if self._text[broken] == "{" else len(self._text)
        later = (found for found in _NEXT.finditer(self._text, broken + 1) if len(found["indent"]) <= indent)
        return next((found.start("indent") for found in later), len(self._text))


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
    rest = "is no whole JSON and was left out" if documents.damaged == 1 else "are no whole JSON and were left out"
    return (f"{counted(documents.damaged, 'object')} of {where} {rest}.",)

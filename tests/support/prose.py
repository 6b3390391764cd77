"""The sentences of a Markdown document, as a reader meets them: without code, tables and the targets of links."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

MOST_WORDS = 25  # of a sentence in README and docs: a reader whose first language is another takes it in at once
BANNED_FILE = Path(__file__).resolve().parents[1] / "data" / "banned_phrases.txt"

_FENCE = re.compile(r"^ *(```|~~~)")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_TABLE_ROW = re.compile(r"^\s*\|")
# What begins a piece of text of its own: a heading, an entry of a list, a quotation.
_BEGINS = re.compile(r"^\s*(?:#{1,6} |[-*+] (?:\[[ x]\] )?|\d+\. |> ?)")
_IMAGE = re.compile(r"!\[([^\]]*)\]\([^)]*\)")
_LINK = re.compile(r"\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
_CODE = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”)*_]*\s+(?=[\"'“(*_]*[A-Z0-9`¤])")
# A full stop that ends no sentence.
_ABBREVIATIONS = re.compile(r"\b(e\.g|i\.e|etc|vs|cf|No|Mr|Dr)\.")
CODE = "¤"  # stands for a piece of code, which is one word


@dataclass(frozen=True)
class Sentence:
    """A sentence, the line of the document on which its paragraph begins, and how many words it has."""

    text: str
    line: int

    @property
    def words(self) -> int:
        """Return the number of words; a number with its sign or a piece of code is one, a dash none."""
        return sum(any(letter.isalnum() or letter == CODE for letter in word) for word in self.text.split())


def sentences(markdown: str) -> list[Sentence]:
    """Return the sentences of a document in their order; code blocks, tables and comments have none."""
    found = []
    for line, text in _paragraphs(markdown):
        found += [Sentence(part.strip(), line) for part in _SENTENCE_END.split(_plain(text)) if part.strip()]
    return found


def paragraphs_and_rows(markdown: str) -> list[tuple[int, str]]:
    """Return every text that people read with its line, without code: rows of tables, too."""
    rows = [(number, _plain(line)) for number, line in _outside_code(markdown) if _TABLE_ROW.match(line)]
    return sorted([*rows, *((line, _plain(text)) for line, text in _paragraphs(markdown))])


def inline_code(markdown: str) -> list[str]:
    """Return what stands between backticks in sentences and tables."""
    return [match[2] for _, line in _outside_code(markdown) for match in _CODE.finditer(line)]


@cache
def banned_phrases() -> list[re.Pattern[str]]:
    """Return a pattern for each banned phrase, whole words in any case and over the end of a line."""
    lines = BANNED_FILE.read_text(encoding="utf-8").splitlines()
    return [_pattern(line.strip()) for line in lines if line.strip() and not line.startswith("#")]


def banned_in(text: str) -> list[str]:
    """Return the banned phrases that a text holds, as they stand there."""
    return [match[0] for pattern in banned_phrases() for match in pattern.finditer(text)]


def code_blocks(markdown: str) -> list[tuple[str, int, str]]:
    """Return (language, line, text) of each fenced block; the language is empty where none is named."""
    found: list[tuple[str, int, str]] = []
    block: list[str] | None = None
    language, begins = "", 0
    for number, line in enumerate(markdown.splitlines(), start=1):
        if _FENCE.match(line):
            if block is None:
                block, language, begins = [], line.strip().strip("`~").strip(), number
            else:
                found.append((language, begins, "\n".join(block)))
                block = None
        elif block is not None:
            block.append(line)
    assert block is None, f"the code block of line {begins} has no end"
    return found


def _pattern(phrase: str) -> re.Pattern[str]:
    words = [re.sub(r"\\\((\w+)\\\)", r"(?:\1)?", re.escape(word)) for word in phrase.split()]
    return re.compile(r"\b" + r"\s+".join(words) + r"\b", re.IGNORECASE)


def _outside_code(markdown: str) -> Iterator[tuple[int, str]]:
    blanked = _COMMENT.sub(lambda match: "\n" * match[0].count("\n"), markdown)
    is_code = False
    for number, line in enumerate(blanked.splitlines(), start=1):
        if _FENCE.match(line):
            is_code = not is_code
            yield number, ""
        elif not is_code:
            yield number, line


def _paragraphs(markdown: str) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of each heading, entry of a list and paragraph."""
    lines: list[str] = []
    begins = 0
    for number, line in _outside_code(markdown):
        is_nothing = not line.strip() or _TABLE_ROW.match(line) is not None
        if lines and (is_nothing or _BEGINS.match(line) or lines[0].startswith("#")):
            yield begins, _BEGINS.sub("", " ".join(lines), count=1)
            lines = []
        if not is_nothing:
            begins = begins if lines else number
            lines.append(line.strip() if lines else line.rstrip())
    if lines:
        yield begins, _BEGINS.sub("", " ".join(lines), count=1)


def _plain(text: str) -> str:
    """Return text with pieces of code as one word each, and of links and pictures what is read of them."""
    text = _CODE.sub(CODE, text)
    text = _LINK.sub(r"\1", _IMAGE.sub(r"\1.", text))
    return _ABBREVIATIONS.sub(r"\1", text)

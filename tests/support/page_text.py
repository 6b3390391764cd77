"""A page as a person reads it: its blocks of text, without scripts, styles and pictures, and what is odd in a text."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser

_NOT_READ = frozenset({"script", "style", "svg", "template"})
_BLOCKS = frozenset(
    {"button", "dd", "details", "div", "dl", "dt", "figcaption", "figure", "footer", "h1", "h2", "h3", "header", "li"}
    | {"main", "nav", "ol", "p", "section", "summary", "table", "td", "th", "tr", "ul"}
)
# What others wrote stands there: a run's arguments and its command, lines of the kernel, names of kernels.
_OF_OTHERS = frozenset({"yolo", "appendix", "kernel-line", "profiler"})
_ODD = {
    "a number that is missing": re.compile(r"\bNone\b|(?<![\w-])nan(?![\w-])|\bundefined\b|\bn/a [a-z]"),
    "a name that was not filled in": re.compile(r"\{[a-z_]*\}"),
    "doubled brackets": re.compile(r"\(\(|(?<!\()\)\)"),
    "doubled marks": re.compile(r"(?<!\.)\.\.(?![./])|,,|;;|[,;:?!]\.|\.,"),
    "a space before a mark": re.compile(r"(?<=[\w)%]) [,;!?](?=\s|$)|(?<=[\w)%]) \.(?=\s|$)"),
    "empty brackets": re.compile(r"(?<!\w)\(\)"),
    "a negative nothing": re.compile(r"(?<![\w.,-])-0(?:\.0+)?(?=[\s\u00a0]|$)"),
    "a word twice": re.compile(r"\b([a-z]+) \1\b"),
}


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[str] = [""]
        self.open: list[tuple[str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        classes = set((dict(attrs).get("class") or "").split()) | {dict(attrs).get("id") or ""}
        if tag not in {"br", "img", "input", "link", "meta", "hr", "col", "wbr", "path", "rect", "line", "use"}:
            self.open.append((tag, tag in _NOT_READ or tag in {"pre", "code"} or bool(classes & _OF_OTHERS)))
        if tag in _BLOCKS:
            self.blocks.append("")

    def handle_endtag(self, tag: str) -> None:
        at = max((n for n, (name, _) in enumerate(self.open) if name == tag), default=None)
        self.open = self.open if at is None else self.open[:at]
        if tag in _BLOCKS:
            self.blocks.append("")

    def handle_data(self, data: str) -> None:
        if not any(skipped for _, skipped in self.open):
            self.blocks[-1] += data
        elif self.open[-1][0] == "code":
            self.blocks[-1] += "code"


def blocks_of(page: str) -> Iterator[str]:
    """Yield the texts of a page, each paragraph or cell one; a piece of code is the word `code`."""
    reader = _Reader()
    reader.feed(page)
    yield from (text for block in reader.blocks if (text := re.sub(r"[ \n\t]+", " ", block).strip()))


def odd_in(text: str, *, is_page: bool = True) -> list[str]:
    """Return what no sentence for people has; backticks are code in all but a page."""
    found = [what for what, pattern in _ODD.items() if pattern.search(text)]
    found += ["backticks"] if is_page and "`" in text else []
    return found + ([] if _is_balanced(text) else ["brackets without their other half"])


def _is_balanced(text: str) -> bool:
    depth = 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            return False
    return depth == 0

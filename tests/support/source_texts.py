"""Every sentence that stands in our source, rendered by a sample run or not: string literals with what they fill in."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_A_WORD_AND_ANOTHER = re.compile(r"[A-Za-z]{2,}[,:]? +[A-Za-z\x00]")
PLACEHOLDER = "\x00"  # stands for what an f-string fills in, which counts as one word
SHELL, REGEX, CODE = re.compile(r"\$\w|&&|\|"), re.compile(r"\\[sdwbS]|\(\?"), re.compile(r"<[a-z]+ |\n {4}")


@dataclass(frozen=True)
class SourceText:
    """A text of several words, and where it stands."""

    path: Path
    line: int
    text: str


def texts_of(path: Path) -> Iterator[SourceText]:
    """Yield the texts of a module that are for people, as far as that can be seen: no docstring, pattern or markup."""
    tree = ast.parse(path.read_text("utf-8"))
    skipped = set(_never_said(tree))
    for node in ast.walk(tree):
        text = None if id(node) in skipped else _text(node)
        if text and _A_WORD_AND_ANOTHER.search(text) and not any(p.search(text) for p in (SHELL, REGEX, CODE)):
            yield SourceText(path, node.lineno, text)  # type: ignore[attr-defined]


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(each) or PLACEHOLDER for each in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _never_said(tree: ast.AST) -> Iterator[int]:
    """Yield the ids of nodes that are docstrings, parts of an f-string, or what `Literal[...]` lists."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield id(node.value)
        if isinstance(node, ast.JoinedStr):
            yield from (id(each) for each in node.values)
        if isinstance(node, ast.Subscript):
            yield from (id(each) for each in ast.walk(node.slice))

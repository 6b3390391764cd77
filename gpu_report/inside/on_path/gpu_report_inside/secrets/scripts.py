"""Command lines within a text: a shell's script, a cron line, an exception that says which command failed."""

from __future__ import annotations

import re

from .commands import PROGRAMS, hide_by_place

_SAYS = r"\b(?:cmd|cmdline|command|args|argv|exe|script|exec\w*)[=:]\s?(?=[\"'])"  # cmd="curl -u me:..."
_WORD = re.compile(rf"\n|(?i:{_SAYS})|(?:'[^'\n]*'|\"[^\"\n]*\"|[^\s'\"]|['\"])+")
DEEPEST_QUOTES = 3  # of a command in a command: one kind of quotes cannot stand within itself
_AROUND = "'\"()[]{},;`"  # quotes, and what a sentence or a subshell puts around a word


def hide_in_scripts(text: str, depth: int = 0) -> str:
    """Return a text without what is a secret by its place in a command line that the text, or what it quotes, holds."""
    if PROGRAMS.isdisjoint(_core(word)[1].rsplit("/", 1)[-1] for word in re.split(r"[\s=]+", text)):
        return text
    safe, at = [], 0
    for start, word, hidden in _read(text):
        is_script = hidden is None and depth < DEEPEST_QUOTES and " " in word
        kept = hide_in_scripts(word, depth + 1) if is_script else word
        safe.append(text[at:start] + (kept if hidden is None else hidden))
        at = start + len(word)
    return "".join(safe) + text[at:]


def _core(word: str) -> tuple[int, str]:
    """Return how many characters of quotes and the like stand before a word, and the word without those around it."""
    core = word.lstrip(_AROUND)
    core = core[2:].lstrip(_AROUND) if core.startswith("$(") else core
    return len(word) - len(core), core.rstrip(_AROUND)


def _read(text: str) -> list[tuple[int, str, str | None]]:
    """Return where each word of a script begins, the word, and what stands for it if it is a secret."""
    parts: list[str] = []
    words: list[tuple[int, str, int]] = []  # the last is its place among the parts
    for match in _WORD.finditer(text):
        before, core = _core(match[0])
        if core.strip(" \n\\"):
            words.append((match.start() + before, core, len(parts)))
            parts.append(core)
        if (match[0] == "\n" and text[match.start() - 1] != "\\") or match[0].endswith(";"):
            parts.append(";")
    placed = hide_by_place(parts)
    return [(start, core, placed[at]) for start, core, at in words]

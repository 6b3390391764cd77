"""Text from outside within Markdown: no markup, no link, no mention of somebody, and no command to a CI service."""

import re

from gpu_report.render.formatting import first_sentence
from gpu_report.terminal import plain, without_commands

LONGEST_CELL = 300  # characters
LONGEST_SENTENCE = 2000


def words(text: str) -> str:
    """Return a sentence in which nothing from outside is Markdown, HTML, a link or a mention of somebody."""
    text = re.sub(r"\s+", " ", plain(_shortened(text, LONGEST_SENTENCE)))
    text = re.sub(r"([\\`*_\[\]#|<>~&])", r"\\\1", text)
    # GitHub links and mentions in the text that is left, whatever is escaped: a space of no width stands between.
    return without_commands(re.sub(r"(@|://|www\.|#(?=\d)|\bGH-(?=\d))", "\\1\u200b", text))


def prose(text: str) -> str:
    """Return a sentence of ours: what stands between backticks is code, and nothing else in it is Markdown."""
    parts = _shortened(text, LONGEST_SENTENCE).split("`")
    if len(parts) % 2 == 0 or any(not part.strip() or len(part) > LONGEST_CELL for part in parts[1::2]):
        return words(text)
    return "".join(code(part) if number % 2 else words(part) for number, part in enumerate(parts))


def verdict(text: str) -> str:
    """Return a verdict, as `prose`: its first sentence is bold, the rest is not, for a reader in a hurry."""
    first, rest = first_sentence(text)
    return f"**{prose(first)}** {prose(rest)}".strip()


def code(text: str) -> str:
    """Return text from outside as code in a table's cell, where no Markdown, link or mention is alive."""
    text = re.sub(r"\s+", " ", plain(_shortened(text, LONGEST_CELL))).replace("`", "'").replace("|", "\\|")
    return f"`{without_commands(text)}`" if text.strip() else ""


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}\u2026"

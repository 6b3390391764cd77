"""What the report says, as Markdown for TensorBoard's plugin `text`."""

import re
from typing import Final

from gpu_report.model import Analysis
from gpu_report.render.markdown_text import LONGEST_SENTENCE, code
from gpu_report.render.run.terminal import render_markdown
from gpu_report.terminal import plain

# Python-Markdown, which TensorBoard has, shows the backslash of these; HTML's own names say the same. What is named so
# is text, whatever follows: it begins no tag, no link and no code.
_ESCAPED: Final = re.compile(r"\\([\\`*_\[\]#|<>~&])")
# Only addresses of the web are links: TensorBoard takes others away. None of these characters ends the link.
_WEB: Final = re.compile(r"https?://[\w.\-:/?=&%+~#]+")
LONGEST_TEXT: Final = 200_000  # characters: a summary has 10,000


def summary_text(analysis: Analysis) -> str:
    """Return the summary: the verdict, what to change, where the GPU time went, and the findings."""
    return _ESCAPED.sub(lambda found: f"&#{ord(found[1])};", render_markdown(analysis)[:LONGEST_TEXT])


def findings_text(analysis: Analysis) -> str:
    """Return all findings that a person should look at, worst first, a line of a list each."""
    lines = [
        f"- **{each.id}** ({each.severity}): {_words(each.summary)}" for each in analysis.findings if not each.expected
    ]
    return "\n".join(lines)[:LONGEST_TEXT] or "No finding: nothing that needs your attention."


def report_text(analysis: Analysis, report: str | None) -> str:
    """Return where the report lies; without an answer the command that makes it."""
    if report is None:
        return f"To make the report, run:\n\n    gpu-report render report.html {plain(analysis.run.path)}"
    if _WEB.fullmatch(report):
        return f"[Open the report]({report})"
    return f"The report: {code(report)}"


def _words(text: str) -> str:
    """Return text from outside in which nothing is Markdown or HTML, on one line."""
    line = " ".join(plain(text[:LONGEST_SENTENCE]).split())
    return re.sub(r"([\\`*_\[\]#|<>~&!()])", lambda found: f"&#{ord(found[1])};", line)

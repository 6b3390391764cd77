"""What docs/ci/example/rendered.png shows: its summary.md as GitHub shows one, and the cases of its junit.xml.

`make screenshots ARGS=ci-example` takes the picture. It bears the digest of both files: a test knows when it is old.
"""

import hashlib
from html import escape
from pathlib import Path
from xml.etree import ElementTree as ET

from markdown_it import MarkdownIt

EXAMPLE = Path(__file__).resolve().parents[1] / "ci" / "example"
FILES = ("summary.md", "junit.xml")
MADE_FROM = "made-from"  # the picture's own text that holds the digest
STYLE = """
body { font: 14px/1.5 "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; color: #1f2328; margin: 24px; }
h2 { border-bottom: 1px solid #d1d9e0; padding-bottom: 6px; } .file { color: #59636e; font-size: 12px; }
table { border-collapse: collapse; margin-bottom: 16px; } th, td { border: 1px solid #d1d9e0; padding: 4px 12px; }
td, th { text-align: left; } tr:nth-child(even) td { background: #f6f8fa; } hr { border: 1px solid #d1d9e0; }
code { background: #eff1f3; padding: 2px 5px; border-radius: 6px; font-size: 12px; white-space: nowrap; }
.failed { color: #b42318; font-weight: 600; } .skipped { color: #8a5a00; } .passed { color: #0d766e; }
"""


def digest() -> str:
    """Return what tells the files of the example from any others."""
    return hashlib.sha256(b"".join((EXAMPLE / name).read_bytes() for name in FILES)).hexdigest()


def page() -> str:
    """Return both files as a page."""
    markdown = MarkdownIt("commonmark", {"html": True}).enable("table")
    summary = markdown.render((EXAMPLE / FILES[0]).read_text(encoding="utf-8"))
    cases = "".join(map(_row, ET.parse(EXAMPLE / FILES[1]).iter("testcase")))  # noqa: S314 - our own file
    return (
        f"<!doctype html><meta charset=utf-8><style>{STYLE}</style><main><p class=file>{FILES[0]}</p>{summary}"
        f"<hr><p class=file>{FILES[1]}, its test cases</p><table>{cases}</table></main>"
    )


def _row(case: ET.Element) -> str:
    """Return a test case as a row: what came of it, its name, what it says."""
    failure, skipped = case.find("failure"), case.find("skipped")
    outcome, told = ("passed", case.findtext("system-out", ""))
    if failure is not None:
        outcome, told = "failed", failure.get("message", "")
    elif skipped is not None:
        outcome, told = "skipped", skipped.get("message", "")
    name = escape(case.get("name", ""))
    return f"<tr><td class={outcome}>{outcome}</td><td><code>{name}</code></td><td>{escape(told)}</td></tr>"

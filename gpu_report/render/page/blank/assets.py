"""The page's parts: templates, style, script and the chart library, found wherever gpu-report is installed."""

import base64
import gzip
import hashlib
import re
from collections.abc import Sequence
from functools import reduce
from pathlib import Path

from gpu_report.errors import GpuReportError
from gpu_report.extras import AGAIN
from gpu_report.render.samples.base128 import to_text
from gpu_report.template_files import find_chart_library

# In the order in which they are read; each names what it needs of the ones before it.
SCRIPTS = (
    "codec",
    "window",
    "lines",
    "store",
    "words",
    "settings",
    "address",
    "moment",
    "stretches",
    "ticks",
    "events",
    "learning",
    "lanes",
    "traces",
    "marks",
    "figure",
    "paper",
    "signs",
    "sketch",
    "readout",
    "snapshot",
    "heat",
    "strip",
    "heads",
    "rows",
    "drag",
    "timeline",
    "icicle",
    "flame",
    "latency",
    "downloads",
    "filter",
    "keys",
    "page",
)

# plotly.js makes one empty <style> and fills it by insertRule; this hash of nothing allows it.
EMPTY_STYLE = ""

_IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)
# those with lines of their own
_COMMENT = re.compile(r"^ *(?://[^\n]*|/\*(?:(?!\*/).)*\*/)\n", re.MULTILINE | re.DOTALL)
_AFTER_CODE = re.compile(r"(?<=\S) // [^\n]*$", re.MULTILINE)  # no text in quotes has it (test_assets.py)
_INDENT = re.compile(r"^\s+", re.MULTILINE)  # and empty lines; no module has text of several lines


def read_style(templates: Path) -> str:
    """Return the page's style sheet without its comments and indents."""
    return _INDENT.sub("", _COMMENT.sub("", (templates / "report.css").read_text(encoding="utf-8")))


def read_script(templates: Path, names: Sequence[str] = SCRIPTS) -> str:
    """Return a page's modules as one: in order, without imports and exports of each other, comments and indents."""
    needless = (_COMMENT, _AFTER_CODE, _IMPORT, _EXPORT, _INDENT)
    modules = ((templates / "js" / f"{name}.js").read_text(encoding="utf-8") for name in names)
    return "\n".join(reduce(lambda text, pattern: pattern.sub("", text), needless, each) for each in modules)


def read_chart_library(templates: Path) -> bytes:
    """Return plotly.js: the part of it that draws lines where that is there, else all that plotly.py ships.

    Both bring their licence in their first lines.
    """
    library = find_chart_library(templates)
    if library is None:
        raise GpuReportError(f"plotly.js is missing. To have it, {AGAIN}")
    return library.read_bytes()


def squeeze(text: str) -> str:
    """Return text gzipped, as text (base128.py); the same text gives the same result."""
    return to_text(gzip.compress(text.encode(), compresslevel=9, mtime=0))


def content_security_policy(scripts: tuple[str | bytes, ...], styles: tuple[str, ...]) -> str:
    """Return a policy that allows these inline scripts and styles by hash, and nothing from any network."""
    allowed = {"script-src": " ".join(map(_source, scripts)), "style-src": " ".join(map(_source, styles))}
    rest = {"img-src": "data: blob:", "base-uri": "'none'", "form-action": "'none'"}
    return "; ".join(f"{name} {value}" for name, value in {"default-src": "'none'", **allowed, **rest}.items())


def _source(text: str | bytes) -> str:
    data = text.encode() if isinstance(text, str) else text
    return f"'sha256-{base64.b64encode(hashlib.sha256(data).digest()).decode('ascii')}'"

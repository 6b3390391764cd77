"""Reading a whole log as text."""

from pathlib import Path
from typing import Final

from gpu_report.errors import InputError
from gpu_report.ordinary_file import LARGEST_SMI_LOG, open_ordinary, refuse_special

HEAD_BYTES: Final = 65_536  # of a file: what tells formats apart stands at its beginning


def read_text(path: Path, tool: str) -> str:
    """Return a log's text with line feeds alone; InputError where it cannot be read."""
    refuse_special(path, LARGEST_SMI_LOG)
    try:
        text = _decoded(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): name a log that {tool} wrote") from error
    if not text.strip():
        raise InputError(f"{path} is empty: name a log that {tool} wrote")
    return text


def read_head(path: Path) -> str:
    """Return the first HEAD_BYTES of a log as text, empty of a folder; InputError where it cannot be read."""
    refuse_special(path)
    try:
        if path.is_dir():
            return ""
        with open_ordinary(path) as file:
            return _decoded(file.read(HEAD_BYTES))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): name a log that a tool wrote") from error


def _decoded(data: bytes) -> str:
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"  # PowerShell's `>` is UTF-16
    return data.decode(encoding, "replace").replace("\r\n", "\n").replace("\r", "\n")

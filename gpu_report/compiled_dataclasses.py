"""Methods of dataclasses, kept compiled as Python keeps modules: to compile them takes a tenth of a short run's report.

`dataclasses` writes each method as a text and executes that: 2,000 texts for the 340 classes of a report.
"""

import contextlib
import dataclasses
import marshal
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from types import CodeType
from typing import Any, Final

from gpu_report.compiled_folder import folder_of_compiled, keep

MOST_BYTES: Final = 8 << 20  # four times as much as it takes: texts of classes that changed remain


@contextlib.contextmanager
def compiled_dataclasses(made_by: Path = Path(__file__)) -> Iterator[None]:
    """Compile no method of a dataclass whose text was compiled before, while modules are imported."""
    folder = folder_of_compiled(made_by)
    if folder is None:
        yield
        return
    path = folder / f"dataclasses-{sha256(sys.version.encode()).hexdigest()[:12]}.marshal"
    known = _read(path)
    before = len(known)

    def execute(text: str, names: dict[str, Any] | None, found: dict[str, Any]) -> None:
        code = known.get(text)
        if code is None:
            code = known[text] = compile(text, "<string>", "exec", dont_inherit=True)
        exec(code, names, found)  # noqa: S102 - what dataclasses would execute

    dataclasses.exec = execute  # type: ignore[attr-defined] # in place of the built-in one, for that module alone
    try:
        yield
    finally:
        del dataclasses.exec  # type: ignore[attr-defined]
    if len(known) > before:
        keep(marshal.dumps(known), path)


def _read(path: Path) -> dict[str, CodeType]:
    """Return what was kept, nothing where that cannot be read or has grown too large."""
    try:
        data = path.read_bytes()
        known = marshal.loads(data) if len(data) <= MOST_BYTES else {}  # noqa: S302 - as Python reads its modules
    except (OSError, EOFError, ValueError, TypeError):
        return {}
    return known if isinstance(known, dict) else {}

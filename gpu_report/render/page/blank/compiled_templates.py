"""Compiled templates, kept where Python keeps its compiled modules: to compile them takes 0.4 s of each report."""

import contextlib
import pickle
import sys
from hashlib import sha256
from pathlib import Path

import jinja2
from jinja2 import FileSystemBytecodeCache
from jinja2.bccache import Bucket

from gpu_report import __version__
from gpu_report.compiled_folder import folder_of_compiled


class _BytecodeFiles(FileSystemBytecodeCache):
    """Files in a folder; a disk that is full or only to be read keeps nothing, and what cannot be read is made anew."""

    def load_bytecode(self, bucket: Bucket) -> None:
        try:
            super().load_bytecode(bucket)
        except (OSError, pickle.UnpicklingError, ValueError, EOFError):  # a file that was cut
            bucket.reset()

    def dump_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(OSError):
            super().dump_bytecode(bucket)


def compiled_templates(made_by: Path) -> FileSystemBytecodeCache | None:
    """Return where the templates that a module uses are kept, compiled; None where Python keeps nothing compiled.

    Each has the hash of its source within, so that a changed one is compiled anew. Another
    version of Jinja, of Python or of ours has files of its own.
    """
    folder = folder_of_compiled(made_by)
    if folder is None:
        return None
    versions = sha256(f"{__version__} {jinja2.__version__} {sys.version}".encode()).hexdigest()[:12]
    return _BytecodeFiles(str(folder), f"jinja-{versions}-%s.cache")

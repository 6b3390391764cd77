"""The chart library gzipped, kept where Python keeps its compiled modules: it is a tenth of a short run's report."""

import contextlib
import gzip
import zlib
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Final

from gpu_report.compiled_folder import folder_of_compiled, keep

SMALLEST: Final = 9  # gzip's level: it is in each page


def gzipped_library(library: bytes, made_by: Path) -> bytes:
    """Return the library gzipped, as it was kept for a module; the same library gives the same result."""
    folder = folder_of_compiled(made_by)
    if folder is None:
        return _gzipped(library)
    kept = folder / f"library-{sha256(zlib.ZLIB_RUNTIME_VERSION.encode() + library).hexdigest()[:12]}.gz"
    with contextlib.suppress(OSError):
        found = kept.read_bytes()
        if found.endswith(_trailer(library)):
            return found
    made = _gzipped(library)
    keep(made, kept)
    return made


@lru_cache(maxsize=1)  # the same for each report that a process makes
def _gzipped(data: bytes) -> bytes:
    return gzip.compress(data, compresslevel=SMALLEST, mtime=0)


def _trailer(data: bytes) -> bytes:
    """Return how the gzipped data end (RFC 1952): a file that was cut ends otherwise."""
    return zlib.crc32(data).to_bytes(4, "little") + len(data).to_bytes(4, "little")

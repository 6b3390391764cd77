"""A trace of PyTorch's profiler, packed into a run folder: whole or not at all."""

import gzip
import os
import shutil
from pathlib import Path

from gpu_report.ordinary_file import MIB, open_ordinary

LARGEST_TRACE = 4096 * MIB
LEVEL = 3  # of gzip: three times as fast as the usual one, for a tenth more bytes
MAGIC = b"\x1f\x8b"


def pack_trace(trace: Path, packed: Path) -> None:
    """Write a trace as a gzip file; one that is packed is copied. OSError, and ValueError for more than 4 GiB."""
    unfinished = packed.with_suffix(".part")
    try:
        with open_ordinary(trace) as source:
            if os.fstat(source.fileno()).st_size > LARGEST_TRACE:
                raise ValueError("the trace is larger than 4 GiB")
            is_packed = source.read(len(MAGIC)) == MAGIC
            source.seek(0)
            with unfinished.open("wb") if is_packed else gzip.open(unfinished, "wb", compresslevel=LEVEL) as into:
                shutil.copyfileobj(source, into, MIB)
        unfinished.replace(packed)
    finally:
        unfinished.unlink(missing_ok=True)

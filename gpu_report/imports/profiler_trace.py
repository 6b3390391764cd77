"""A trace of PyTorch's profiler that somebody made, put into the run folder of the same training."""

import gzip
import shutil
from collections.abc import Sequence
from pathlib import Path

from gpu_report import schema
from gpu_report.errors import InputError, UsageError
from gpu_report.ordinary_file import MIB, open_ordinary, refuse_special

LARGEST_TRACE = 4096 * MIB
GZIP_MAGIC = b"\x1f\x8b"


def import_traces(traces: Sequence[Path], run: Path) -> list[Path]:
    """Return where traces lie in a run folder now, packed; InputError for an unreadable one, UsageError for no run."""
    if not (run / schema.SAMPLES_CSV).is_file():
        raise UsageError(f"{run} is no run folder: name the one that `gpu-report record` made of the same training")
    for trace in traces:
        refuse_special(trace, LARGEST_TRACE)
    try:
        into = run / schema.PROFILE_DIR
        into.mkdir(exist_ok=True)
        return [_pack(trace, _free(into)) for trace in traces]
    except OSError as error:
        raise InputError(f"{error.filename or run}: {error.strerror or error}") from error


def _free(into: Path) -> Path:
    number = 1
    while (path := into / f"{schema.IMPORTED_TRACE}-{number}.json.gz").exists():
        number += 1
    return path


def _pack(trace: Path, packed: Path) -> Path:
    unfinished = packed.with_suffix(".part")
    try:
        with open_ordinary(trace) as source:
            is_packed = source.read(len(GZIP_MAGIC)) == GZIP_MAGIC
            source.seek(0)
            with unfinished.open("wb") if is_packed else gzip.open(unfinished, "wb", compresslevel=3) as into:
                shutil.copyfileobj(source, into, MIB)
        unfinished.replace(packed)
    finally:
        unfinished.unlink(missing_ok=True)
    return packed

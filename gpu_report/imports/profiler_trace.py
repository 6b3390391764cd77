"""A trace of PyTorch's profiler that somebody made, put into the run folder of the same training."""

from collections.abc import Sequence
from pathlib import Path

from gpu_report import schema
from gpu_report.errors import InputError, UsageError
from gpu_report.ordinary_file import refuse_special
from gpu_report.packed_trace import LARGEST_TRACE, pack_trace


def import_traces(traces: Sequence[Path], run: Path) -> list[Path]:
    """Return where traces lie in a run folder now, packed; InputError for an unreadable one, UsageError for no run."""
    if not (run / schema.SAMPLES_CSV).is_file():
        raise UsageError(f"{run} is no run folder: name the one that `gpu-report record` made of the same training")
    for trace in traces:
        refuse_special(trace, LARGEST_TRACE)
    try:
        into = run / schema.PROFILE_DIR
        into.mkdir(exist_ok=True)
        return [_put(trace, into) for trace in traces]
    except OSError as error:
        raise InputError(f"{error.filename or run}: {error.strerror or error}") from error


def _put(trace: Path, into: Path) -> Path:
    """Pack a trace under the next name that is free."""
    number = 1
    while (path := into / f"{schema.IMPORTED_TRACE}-{number}.json.gz").exists():
        number += 1
    pack_trace(trace, path)
    return path

"""A file of PyTorch's profiler becomes a `Trace`: event by event, so that a damaged one is read as far as it can be."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from gpu_report.errors import InputError
from gpu_report.load.problems import noted, too_many
from gpu_report.load.trace.blocks import Blocks
from gpu_report.load.trace.build import build_trace
from gpu_report.load.trace.decode import Decode
from gpu_report.load.trace.event_reader import EventReader
from gpu_report.load.trace.fastest_decode import FASTEST_DECODE
from gpu_report.load.trace.gc_paused import gc_paused
from gpu_report.load.trace.limits import MOST_BAD, MOST_ROWS
from gpu_report.load.trace.tables import Tables
from gpu_report.model import Trace


def load_trace(path: Path, decode: Decode = FASTEST_DECODE) -> Trace:
    """Read a trace, `.json` or `.json.gz`; InputError where it cannot be opened, or is no trace at all.

    Whatever is damaged, cut off or too much is left out, and said in the trace's `problems`. `decode` is msgspec's
    where that is installed.
    """
    blocks, tables = Blocks(path), Tables()
    reader = EventReader(blocks, decode)
    with gc_paused():
        for events in reader:
            tables.add(events)
            if tables.full:
                break
    if not reader.found:
        raise InputError(f"{path} is no trace of PyTorch's profiler: it has no traceEvents. Export it once more")
    trace, far = build_trace(tables, reader.header + reader.footer)
    problems = (*blocks.problems, *_problems(path.name, reader, tables, far))
    return replace(trace, problems=problems)


def _problems(file: str, reader: EventReader, tables: Tables, far: int) -> Iterator[str]:
    """Yield in words what of the events was left out."""
    if (bad := reader.bad + tables.bad + far) > 0:
        yield noted(file, bad, "event could not be read and is left out", "events could not be read and are left out")
    if reader.bad > MOST_BAD:
        yield f"{file}: too much is damaged, and only its beginning was read"
    elif tables.full:
        yield too_many(f"{file}: events", MOST_ROWS)
    elif not reader.ended:
        yield f"{file} ends in the middle of its events: those before are used"
    if tables.names.left_out:
        yield f"{file}: too many different names, and some count as one"

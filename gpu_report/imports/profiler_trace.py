"""A trace of PyTorch's profiler that somebody made, put into the run folder of the same training, or into its own."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from gpu_report import schema
from gpu_report.errors import InputError, UsageError
from gpu_report.imports import run_writer
from gpu_report.imports.parsing.readings import ImportedEvent
from gpu_report.model import Trace, TraceDevice
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


class _TraceExtent(NamedTuple):
    """When a trace begins and ends (s since 1970), and the GPUs that did anything in it, by index."""

    start_s: float
    end_s: float
    gpus: dict[int, TraceDevice | None]


def import_traces_alone(traces: Sequence[Path], load: Callable[[Path], Trace], output: Path) -> None:
    """Write traces, which `load` reads, as the run folder `output`, which has nothing else.

    Its samples are the moments at which the traces begin and end, with no reading: nobody sampled the GPUs. InputError
    for a trace that cannot be read or does not say when it was made, UsageError for an `output` that is taken.
    """
    run_writer.require_free(output)
    for trace in traces:
        refuse_special(trace, LARGEST_TRACE)
    seen = [_seen(load(trace)) for trace in traces]
    start_s, end_s = min(each.start_s for each in seen), max(each.end_s for each in seen)
    gpus = {index: device for each in seen for index, device in each.gpus.items()} or {0: None}
    facts = run_writer.facts_of_import(schema.SOURCE_OF_TRACES, (start_s, 0.0), (end_s, end_s - start_s))
    facts["interval_s"] = max(round(end_s - start_s, 3), 1.0)
    facts["gpus"] = [_gpu_facts(index, gpus[index]) for index in sorted(gpus)]
    ends = [
        ImportedEvent("recording_started", start_s, 0.0, {"segment": 1}),
        ImportedEvent("recording_ended", end_s, end_s - start_s, {"ended_by": "import"}),
    ]

    def fill(folder: Path) -> None:
        run_writer.write_samples(folder, _no_readings((start_s, end_s), sorted(gpus)))
        run_writer.write_events(folder, ends)
        run_writer.write_run_json(folder, facts)
        (folder / schema.PROFILE_DIR).mkdir()
        for trace in traces:
            _put(trace, folder / schema.PROFILE_DIR)

    run_writer.write_whole(output, fill)


def _seen(trace: Trace) -> _TraceExtent:
    if trace.start_wall_s is None:
        raise InputError("a trace does not say when it was made: import it into its run, with --run")
    devices = {device.index: device for device in trace.devices}
    worked = [index for index in np.unique(trace.kernels.device).tolist() if index >= 0]
    end_s = trace.start_wall_s + trace.duration_s
    return _TraceExtent(trace.start_wall_s, end_s, {index: devices.get(index) for index in worked})


def _gpu_facts(index: int, device: TraceDevice | None) -> dict[str, Any]:
    return {"index": index, "name": device and device.name, "memory_total_mib": device and device.memory_mib}


def _no_readings(moments_s: Sequence[float], gpus: Sequence[int]) -> pd.DataFrame:
    rows = [(at_s, at_s - moments_s[0], gpu) for at_s in moments_s for gpu in gpus]
    names = [column.name for column in schema.SAMPLES_COLUMNS]
    return pd.DataFrame(rows, columns=names[:3]).reindex(columns=names)

"""A trace of PyTorch's profiler that somebody made, put into the run folder of the same training."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gpu_report import schema
from gpu_report.errors import InputError, UsageError
from gpu_report.imports import run_writer
from gpu_report.imports.smi_merge import ImportedEvent
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


def import_traces_alone(traces: Sequence[Path], loaded: Sequence[Trace], output: Path) -> None:
    """Write traces as the run folder `output`, which has nothing else; InputError for one without a time.

    Its samples are the moments at which the traces begin and end, with no reading: nobody sampled the GPUs.
    """
    run_writer.require_free(output)
    if any(trace.start_wall_s is None for trace in loaded):
        raise InputError("a trace does not say when it was made: import it into its run, with --run")
    samples, facts = _samples(loaded), _facts(loaded)
    end = facts["end"]
    frame = [
        ImportedEvent("recording_started", facts["start"]["wall_s"], 0.0, {"segment": 1}),
        ImportedEvent("recording_ended", end["wall_s"], end["mono_s"], {"ended_by": "import"}),
    ]

    def fill(folder: Path) -> None:
        run_writer.write_samples(folder, samples)
        run_writer.write_events(folder, frame)
        run_writer.write_run_json(folder, facts)
        (folder / schema.PROFILE_DIR).mkdir()
        for trace in traces:
            _put(trace, folder / schema.PROFILE_DIR)

    run_writer.write_whole(output, fill)


def _span(traces: Sequence[Trace]) -> tuple[float, float]:
    starts_s = [trace.start_wall_s or 0.0 for trace in traces]
    return min(starts_s), max(start_s + each.duration_s for start_s, each in zip(starts_s, traces, strict=True))


def _samples(traces: Sequence[Trace]) -> pd.DataFrame:
    start_s, end_s = _span(traces)
    rows = [(at_s, at_s - start_s, gpu) for at_s in (start_s, end_s) for gpu in _worked(traces)]
    names = [column.name for column in schema.SAMPLES_COLUMNS]
    return pd.DataFrame(rows, columns=names[:3]).reindex(columns=names)


def _facts(traces: Sequence[Trace]) -> dict[str, Any]:
    """Return run.json; what a trace does not tell is null."""
    start_s, end_s = _span(traces)
    devices = {device.index: device for trace in traces for device in trace.devices}
    facts = run_writer.facts_of_import(schema.SOURCE_OF_TRACES, (start_s, 0.0), (end_s, end_s - start_s))
    gpus = [_gpu(index, devices.get(index)) for index in _worked(traces)]
    return {**facts, "interval_s": max(round(end_s - start_s, 3), 1.0), "gpus": gpus}


def _gpu(index: int, device: TraceDevice | None) -> dict[str, Any]:
    return {"index": index, "name": device and device.name, "memory_total_mib": device and device.memory_mib}


def _worked(traces: Sequence[Trace]) -> list[int]:
    """Return the GPUs that did anything, the first one where none did."""
    return sorted({int(each) for trace in traces for each in np.unique(trace.kernels.device) if each >= 0}) or [0]

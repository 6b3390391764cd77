"""A benchmark's run folder: bench.json, the calls of each variant's process, and the power of its GPU, on one clock.

Without a GPU there are no samples, and the clock is that of run.json.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gpu_report import schema
from gpu_report.errors import InputError
from gpu_report.load.run_clock import Boot, RunClock
from gpu_report.load.run_json import gpus, load_info
from gpu_report.load.samples import SamplesTable, load_ring, load_samples
from gpu_report.load.yolo.calls import load_calls
from gpu_report.model import BenchRun, BenchVariant, BoxAgreement, HostLoop, ModelCalls, Turn
from gpu_report.ordinary_file import refuse_way_out
from gpu_report.run_folder import finite, read_json, stamp

MOST_VARIANTS = 1000
LATEST_S = 1e9  # of a run: calls are cut off by turns, not by the recording's end


def load_bench(folder: Path) -> BenchRun:
    """Return what was recorded of a benchmark; InputError where there is none in `folder`."""
    for name in (schema.BENCH_JSON, schema.INSIDE_DIR, schema.SAMPLES_CSV, schema.RING_CSV, schema.RUN_JSON):
        refuse_way_out(folder / name, folder)
    fields = read_json(folder / schema.BENCH_JSON)
    info, _ = load_info(folder)
    samples = _samples(folder)
    clock = samples.clock if samples is not None else _clock(info, folder)
    calls, problems = load_calls(folder / schema.INSIDE_DIR, (), (), clock, LATEST_S)
    power = _power(folder, samples, fields.get("gpu_uuid"), info)
    entries = [entry for entry in _list(fields.get("variants")) if isinstance(entry, Mapping)][:MOST_VARIANTS]
    return BenchRun(
        path=str(folder),
        start_wall_s=clock.start_wall_s,
        device=_text(fields.get("device")),
        gpu=_text(fields.get("gpu")),
        versions={str(k): str(v) for k, v in _mapping(fields.get("versions")).items()},
        plan=_mapping(fields.get("plan")),
        variants=tuple(_variant(entry, calls, clock) for entry in entries),
        power_t_s=power[0],
        power_w=power[1],
        problems=problems,
        finished=fields.get("finished") is not False,
    )


def _samples(folder: Path) -> SamplesTable | None:
    try:
        return load_samples(folder / schema.SAMPLES_CSV)
    except InputError:
        return None


def _clock(info: Mapping[str, Any], folder: Path) -> RunClock:
    start = _mapping(info.get("start"))
    wall_s, mono_s = stamp(start.get("wall_s")), stamp(start.get("mono_s"))
    if wall_s is None or mono_s is None:
        raise InputError(f"{folder / schema.RUN_JSON} does not say when the recording began")
    return RunClock((Boot(wall_s, mono_s, 0.0),))


Readings = tuple[np.ndarray[Any, np.dtype[np.floating[Any]]], np.ndarray[Any, np.dtype[np.floating[Any]]]]


def _power(folder: Path, samples: SamplesTable | None, uuid: object, info: Mapping[str, Any]) -> Readings:
    """Return times and watts of a GPU: what the driver kept every 20 ms where it did, else one reading a tick."""
    nothing = np.empty(0), np.empty(0)
    if samples is None or uuid is None:
        return nothing
    index = next((gpu.index for gpu in gpus(info, samples.frame) if gpu.uuid == uuid), None)
    ring, _ = load_ring(folder / schema.RING_CSV, samples.clock)
    for table in (ring, samples.frame):
        of = table[table["gpu"] == index]
        watts = of["power_w"].to_numpy(dtype=float)
        known = np.isfinite(watts)
        if known.any():
            return of["t_s"].to_numpy(dtype=float)[known], watts[known]
    return nothing


def _variant(entry: Mapping[str, Any], calls: Sequence[ModelCalls], clock: RunClock) -> BenchVariant:
    failed = _mapping(entry.get("failed"))
    pid = _whole(entry.get("pid"))
    turns = (_turn(turn, clock) for turn in _list(entry.get("turns")))
    return BenchVariant(
        name=_text(entry.get("name")) or "variant",
        short=_text(entry.get("short")) or "model",
        format=_text(entry.get("format")) or "",
        half=entry.get("half") is True,
        batch=_whole(entry.get("batch")) or 1,
        given=entry.get("given") is True,
        pid=pid,
        size_mib=finite(entry.get("size_mib")),
        build_s=finite(entry.get("build_s")),
        reused=entry.get("reused") is True,
        load_s=finite(entry.get("load_s")),
        random_weights=entry.get("random_weights") is True,
        settings=_mapping(entry["settings"]) if isinstance(entry.get("settings"), Mapping) else None,
        memory_mib=finite(entry.get("memory_mib")),
        gpu_memory_mib=finite(entry.get("gpu_memory_mib")),
        map50_95=finite(entry.get("map50_95")),
        agreement=_agreement(entry.get("agreement")),
        failed_in=_text(failed.get("stage")),
        reason=_text(failed.get("reason")),
        warm_up=_turn(entry.get("warm_up"), clock),
        turns=tuple(turn for turn in turns if turn is not None),
        loops=tuple(loop for turn in _list(entry.get("turns")) if (loop := _loop(turn)) is not None),
        unreadable_images=_whole(entry.get("unreadable_images")) or 0,
        calls=tuple(each for each in calls if pid is not None and each.pid == pid),
    )


def _agreement(value: object) -> BoxAgreement | None:
    if not isinstance(value, Mapping):
        return None
    return BoxAgreement(
        reference=_text(value.get("reference")) or "",
        images=_whole(value.get("images")) or 0,
        boxes=_whole(value.get("boxes")) or 0,
        share=finite(value.get("share")),
        score_difference=finite(value.get("score_difference")),
    )


def _turn(value: object, clock: RunClock) -> Turn | None:
    """Return a turn in seconds of the run: its process has the recorder's monotonic clock."""
    fields = _mapping(value)
    start_s, end_s = stamp(fields.get("start_mono_s")), stamp(fields.get("end_mono_s"))
    if start_s is None or end_s is None or end_s <= start_s:
        return None
    boot = clock.boots[0]
    return boot.t_s + start_s - boot.mono_s, boot.t_s + end_s - boot.mono_s


def _loop(turn: object) -> HostLoop | None:
    fields = _mapping(turn)
    before, after = (_above_zero(fields.get(name)) for name in ("loop_ms", "loop_after_ms"))
    if before is None or after is None:
        return None
    return HostLoop((before + after) / 2, _waited_share(fields))


def _waited_share(fields: Mapping[str, Any]) -> float | None:
    waited_s, start_s, end_s = (finite(fields.get(name)) for name in ("waited_s", "start_mono_s", "end_mono_s"))
    if waited_s is None or start_s is None or end_s is None or end_s <= start_s or waited_s < 0:
        return None
    return min(waited_s / (end_s - start_s), 1.0)


def _above_zero(value: object) -> float | None:
    number = finite(value)
    return number if number is not None and number > 0 else None


def _list(value: object) -> Sequence[object]:
    return value if isinstance(value, list) else ()


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _whole(value: object) -> int | None:
    number = finite(value)
    return int(number) if number is not None and number == int(number) and number >= 0 else None

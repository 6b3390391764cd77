"""Put the files of a run folder together into one `Run` on one clock."""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd

from gpu_report import schema
from gpu_report.errors import InputError
from gpu_report.inside.on_path.gpu_report_inside.profiler.requests import is_recorded
from gpu_report.load.csv_file import Floats
from gpu_report.load.dumps import load_dumps
from gpu_report.load.installed import with_installed
from gpu_report.load.job import load_job
from gpu_report.load.kernel import MOST_EVENTS, RawLine, kernel_events
from gpu_report.load.limits import SHORT, Limits, limits_of
from gpu_report.load.nccl import load_nccl
from gpu_report.load.other_programs import load_other_programs
from gpu_report.load.problems import lines_left_out, too_large, too_many
from gpu_report.load.run_clock import ABSURD_DISTANCE_S, RunClock
from gpu_report.load.run_json import gpus, load_info, recording, whole_index
from gpu_report.load.samples import (
    BackgroundReads,
    SamplesTable,
    load_host,
    load_processes,
    load_ring,
    load_samples,
    no_samples,
)
from gpu_report.load.stacks import load_stacks
from gpu_report.load.traces import load_traces
from gpu_report.load.waits import load_waits
from gpu_report.load.yolo.callbacks import Outside, load_inside, with_versions
from gpu_report.load.yolo.calls import load_calls
from gpu_report.load.yolo.results_csv import load_epochs
from gpu_report.load.yolo.run_folders import numbered_places
from gpu_report.local_interval import local_intervals_s
from gpu_report.model import Gpu, KernelEvent, KernelLog, RecordedEvent, Recording, Run
from gpu_report.ordinary_file import LARGEST_JSON, refuse_special, refuse_way_out
from gpu_report.release_memory import give_back_memory
from gpu_report.run_folder import finite, has_callbacks, parse_events, read_lines, stamp
from gpu_report.wording import first_few, length

Events = Sequence[Mapping[str, Any]]
T = TypeVar("T")

# Intervals: no samples for so long, in the middle or at the end, are reported. In the 62 runs of sample_runs and
# tests/data/same_setup two ticks are 1.44 intervals apart at most, and the last is 0.26 before the end: a busy host may
# miss a tick or two, which coverage counts, but not so many.
MISSED_INTERVALS = 5
MANY_ROWS = 100_000  # three hours of eight GPUs: what reading fewer took is not worth giving back
MOST_NOTES, LONGEST_NOTE = 10, 500  # of an import in run.json: sentences, and characters of each
LONGEST_HEADER = 4096  # bytes of samples.csv: the recorder's own has 500
LARGEST_XID = 1_000_000  # what the kernel log's patterns take, too

STATUSES: Mapping[str, Literal["read", "restricted"]] = {"read": "read", "restricted": "restricted"}

# Kinds that other parts of `Run` hold already.
ELSEWHERE = {"kernel", "kernel_log", "xid", "xid_events", "epoch", "checkpoint", "yolo_run", "tensorboard"}


MOST_BYTES = {schema.RUN_JSON: LARGEST_JSON}


def load_run(path: Path) -> Run:
    """Read a run folder or a bare samples CSV.

    Without a GPU a run folder needs what YOLO's callbacks reported. InputError where there is neither that nor one
    valid row of samples.
    """
    if not path.exists():
        raise InputError(f"{path} does not exist: name a run folder or a samples CSV")
    folder, samples_path = (path, path / schema.SAMPLES_CSV) if path.is_dir() else (None, path)
    for file in _files(folder) if folder else (samples_path,):
        refuse_special(file, MOST_BYTES.get(file.name))
    if folder:
        for file in (*_files(folder), *_links_of_callbacks(folder)):
            refuse_way_out(file, folder)
    ahead = BackgroundReads(folder) if folder else None
    info, info_problems = load_info(folder) if folder else ({}, ())
    try:
        samples = _without_gpu(path, info) or load_samples(samples_path)
    except InputError as error:
        if ahead:
            ahead.cancel()
        raise _explained(error, _events(folder, SHORT)[0]) from error
    limits = limits_of(samples.ticks_s)
    events, event_problems = _events(folder, limits, samples)
    run = _assemble(_Source(path, samples, info, events, limits, ahead))
    if len(samples.frame) > MANY_ROWS:
        give_back_memory()
    problems = (*samples.problems, *info_problems, *run.problems, *event_problems)
    return dataclasses.replace(run, problems=first_few(problems))


def _without_gpu(path: Path, info: Mapping[str, Any]) -> SamplesTable | None:
    """Return the clock of a recording without a GPU in which YOLO's callbacks reported something, None of any other.

    Where run.json does not list the GPUs, an event says that none could be read.
    """
    if info.get("gpus", []) != [] or not has_callbacks(path):
        return None
    head, is_longer = read_lines(path / schema.SAMPLES_CSV, LONGEST_HEADER)
    if is_longer or head.count(b"\n") > 1:
        return None
    events = _events(path, SHORT)[0]
    if "gpus" not in info and all(event["kind"] != "nvml_unavailable" for event in events):
        return None
    return no_samples(path, [*((event["wall_s"], event["mono_s"]) for event in events), *_ends(info)])


def _ends(info: Mapping[str, Any]) -> list[tuple[float, float | None]]:
    """Return when the recording began and ended (wall_s, mono_s), as far as run.json has it."""
    ends = [end for name in ("start", "end") if isinstance(end := info.get(name), Mapping)]
    stamps = [(stamp(end.get("wall_s")), stamp(end.get("mono_s"))) for end in ends]
    return [(wall_s, mono_s) for wall_s, mono_s in stamps if wall_s is not None]


def _events(folder: Path | None, limits: Limits, samples: SamplesTable | None = None) -> tuple[Events, list[str]]:
    """Return the events of a run folder in order, as many as a recording of this length has, and what is left out."""
    if folder is None:
        return [], []
    try:
        data, is_cut = read_lines(folder / schema.EVENTS_JSONL, limits.event_bytes)
    except OSError:
        return [], []
    read, bad = parse_events(data)
    events = read if samples is None else _near(read, samples)
    bad += len(read) - len(events)
    counts: Counter[str] = Counter()
    kept: list[Mapping[str, Any]] = []
    for event in events:
        kind = event["kind"] if event["kind"] in schema.EVENT_KINDS else "other"
        counts[kind] += 1
        if counts[kind] <= limits.of_kind(kind):
            kept.append(event)
    most = [(kind, count, limits.of_kind(kind)) for kind, count in counts.items()]
    problems = [
        too_many(f"{schema.EVENTS_JSONL} has {count:,} events of the kind {kind}", limit)
        for kind, count, limit in most
        if count > limit
    ]
    problems += [too_large(schema.EVENTS_JSONL, len(data))] if is_cut else []
    return kept, [*problems, *([lines_left_out(schema.EVENTS_JSONL, bad)] if bad else [])]


def _near(events: Events, samples: SamplesTable) -> Events:
    """Return the events of the recording, or of what led to it: not those of years away."""
    until_s = float(samples.ticks["t_s"].to_numpy()[-1]) + ABSURD_DISTANCE_S
    return [event for event in events if -ABSURD_DISTANCE_S < _time(event, samples.clock) < until_s]


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files of a run folder that are read; of those of callbacks what is no file is left out anyway."""
    yield from (folder / name for name in schema.RUN_FILES)
    for place in (folder / schema.YOLO_DIR, *(path for _, path in numbered_places(folder / schema.YOLO_DIR))):
        yield from (place / name for name in (schema.YOLO_ARGS, schema.YOLO_RESULTS))


def _links_of_callbacks(folder: Path) -> Iterator[Path]:
    """Yield inside/, stacks/, profile/ and the links in them: only these lead elsewhere of what the training writes."""
    for within in (folder / schema.INSIDE_DIR, folder / schema.STACKS_DIR, folder / schema.PROFILE_DIR):
        yield within
        yield from (path for path in within.glob("*") if path.is_symlink())


class _LoadProblems(list[str]):
    """What was wrong with the files of a run folder, in the order in which they are read."""

    def of(self, loaded: tuple[T, Sequence[str]]) -> T:
        """Return what was loaded, and keep what was wrong with it."""
        value, problems = loaded
        self.extend(problems)
        return value


@dataclasses.dataclass(frozen=True, eq=False)
class _Source:
    """A run folder, or a bare samples CSV, and what was read of it first; `limits` say how much more is read."""

    path: Path
    read: SamplesTable
    info: Mapping[str, Any]
    events: Events
    limits: Limits
    ahead: BackgroundReads | None

    @property
    def folder(self) -> Path:
        """Return where the other files are; of a bare CSV there are none."""
        return self.path if self.path.is_dir() else self.path.parent / "no-run-folder"


def _assemble(source: _Source) -> Run:
    """Load what stands beside the samples; its `problems` are those of the files read here."""
    if len(source.read.frame) > MANY_ROWS:
        give_back_memory()  # the readings of the driver take as much again
    told = _LoadProblems()
    run = _with_processes(source, _readings(source, told), told)
    problems = (
        *_notes(source.info),
        *_holes(source.read, run.recording, _begun_again_s(run.events)),
        *_ends_early(source.read, run.duration_s, run.recording.interval_s),
        *told,
        *_many_faults(run.kernel),
    )
    return dataclasses.replace(run, problems=problems)


def _readings(source: _Source, told: _LoadProblems) -> Run:
    """Return the run as its readings, its events and the rows of results.csv have it."""
    read, info, events, clock, folder = source.read, source.info, source.events, source.read.clock, source.folder
    ring = told.of(load_ring(folder / schema.RING_CSV, clock, source.ahead))
    host = told.of(load_host(folder / schema.HOST_CSV, clock, source.ahead))
    processes = told.of(load_processes(folder / schema.PROCESSES_CSV, clock, source.limits))
    devices, recorded = gpus(info, read.frame), recording(info, read.looks, goes_on=is_recorded(str(folder)))
    yolo_runs, rows, of_epochs = load_epochs(folder / schema.YOLO_DIR, info, events, clock, read.frame, source.limits)
    told += of_epochs
    return Run(
        path=str(source.path),
        start_wall_s=clock.start_wall_s,
        duration_s=_duration([read.ticks, host, ring], info, clock, recorded.interval_s or 0.0),
        recording=recorded,
        gpus=devices,
        samples=read.frame,
        ring=ring,
        host=host,
        processes=processes,
        yolo_runs=yolo_runs,
        epoch_rows=rows,
        kernel=_kernel_log(events, clock, devices, frozenset(processes["pid"].tolist())),
        events=tuple(_recorded(event, clock) for event in events if event["kind"] not in ELSEWHERE),
    )


def _with_processes(source: _Source, run: Run, told: _LoadProblems) -> Run:
    """Return the run with what its processes reported, where they stood and waited, and what traces and NCCL say."""
    folder, clock, limits, duration_s = source.folder, source.read.clock, source.limits, run.duration_s
    outside, inside_of = _outside(run.processes, source.events, clock), folder / schema.INSIDE_DIR
    inside = told.of(load_inside(inside_of, clock, duration_s, run.yolo_runs, outside, limits))
    calls = told.of(load_calls(inside_of, inside, run.gpus, clock, duration_s))
    stacks = with_installed(told.of(load_stacks(folder / schema.STACKS_DIR, clock, duration_s, limits)))
    dumps = told.of(load_dumps(folder / schema.STACKS_DIR, clock, duration_s, limits))
    waits = told.of(load_waits(folder / schema.WAITS_CSV, clock, duration_s, limits))
    programs = told.of(load_other_programs(folder / schema.OTHERS_CSV, clock, duration_s, limits))
    traces, imported, of_traces = load_traces(folder / schema.PROFILE_DIR, inside, clock, duration_s)
    told += of_traces
    return dataclasses.replace(
        run,
        recording=with_versions(run.recording, inside),
        inside=inside,
        stacks=stacks,
        dumps=dumps,
        waits=waits,
        other_programs=programs,
        traces=traces,
        imported_windows=imported,
        calls=calls,
        job=load_job(source.info, inside),
        nccl=told.of(load_nccl(folder, clock, duration_s)),
    )


def _notes(info: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what an import had to say of the recording, as sentences without their full stop."""
    said = info.get("notes")
    texts = [text for text in said if isinstance(text, str)] if isinstance(said, list) else []
    return tuple(text[:LONGEST_NOTE].removesuffix(".") for text in texts[:MOST_NOTES] if text)


def _begun_again_s(events: Sequence[RecordedEvent]) -> list[float]:
    """Return when recorders began that found a recording in the folder."""
    begun = [event for event in events if event.kind == "recording_started"]
    return [event.t_s for event in begun if event.fields.get("segment") != 1]


def _holes(samples: SamplesTable, recorded: Recording, begun_again_s: Sequence[float]) -> tuple[str, ...]:
    """Return how long no tick was written between the first and the last: rows that were cut out leave nothing else.

    Before one of `begun_again_s` no recorder ran: the folder was used again.
    """
    ticks_s = samples.ticks_s
    if samples.ticks_name is None:
        return ()
    steps_s, interval_s = np.diff(ticks_s), np.asarray(recorded.interval_s or 1.0)
    if not recorded.is_ours:
        interval_s = local_intervals_s(ticks_s, float(interval_s))
    holes_s = np.where(steps_s > MISSED_INTERVALS * interval_s, steps_s - interval_s, 0.0)
    is_pause = np.isin(np.arange(1, len(ticks_s)), np.searchsorted(ticks_s, begun_again_s))
    pauses, lost = (_longest(np.where(rows, holes_s, 0.0), ticks_s) for rows in (is_pause, ~is_pause))
    times = "twice" if len(begun_again_s) == 1 else f"{len(begun_again_s) + 1:,} times"
    between = f"this folder was recorded into {times}: no recorder ran {pauses}"
    missing = f"{samples.ticks_name} has no rows {lost}: what happened then is missing, not zero"
    return tuple(said for said, holes in ((between, pauses), (missing, lost)) if holes)


def _longest(holes_s: Floats, ticks_s: Floats) -> str:
    """Return in words how long the holes after some ticks are, empty where there is none."""
    if not holes_s.any():
        return ""
    longest, count = int(holes_s.argmax()), int((holes_s > 0).sum())
    where = f"for {length(holes_s[longest])} after {length(ticks_s[longest])}"
    return f"for {length(holes_s.sum())} in {count:,} gaps, the longest {where}" if count > 1 else where


def _ends_early(samples: SamplesTable, duration_s: float, interval_s: float | None) -> tuple[str, ...]:
    """Return that the samples end before the recording did: nothing else tells a file that was cut between two rows."""
    missing_s = duration_s - float(samples.ticks["t_s"].max())
    if samples.ticks_name is None or missing_s <= MISSED_INTERVALS * (interval_s or 1.0):
        return ()
    return (
        f"{samples.ticks_name} ends {length(missing_s)} before the recording did: what follows is missing, not zero",
    )


def _outside(processes: pd.DataFrame, events: Events, clock: RunClock) -> Outside:
    """Return what the recorder saw of the ends of processes."""
    ended = [_time(event, clock) for event in events if event["kind"] == "command_ended"]
    return Outside(_gone(processes), frozenset(processes["pid"].tolist()), ended)


def _gone(processes: pd.DataFrame) -> dict[int, list[float]]:
    """Return when each process left a GPU."""
    gone: dict[int, list[float]] = {}
    columns = (processes[name].tolist() for name in ("pid", "t_s", "change"))
    for pid, t_s in ((pid, t_s) for pid, t_s, change in zip(*columns, strict=True) if change == "gone"):
        gone.setdefault(pid, []).append(t_s)
    return gone


def _explained(error: InputError, events: Events) -> InputError:
    """Return the error, with the recorder's own reason why there are no samples where it left one."""
    reasons = [_text(event, "reason") for event in events if event["kind"] == "nvml_unavailable"]
    if not reasons and any(event["kind"] == "nvml_stalled" and event.get("gpu") is None for event in events):
        reasons = ["the NVIDIA driver did not answer"]  # and it was killed before it gave up
    return InputError(f"{error} (the recorder said: {reasons[-1]})") if reasons else error


def _duration(tables: Sequence[pd.DataFrame], info: Mapping[str, Any], clock: RunClock, interval_s: float) -> float:
    """Return the end marker's time; without one, the last sample and the interval it stands for.

    Where another of the tables goes on for longer than ticks come late, the recording did, too: the ticks, which are
    the first of the tables, were cut.
    """
    ticks, *others = tables
    last = float(ticks["t_s"].max())
    end = info.get("end")
    wall_s = finite(end.get("wall_s")) if isinstance(end, Mapping) else None
    if isinstance(end, Mapping) and wall_s is not None:
        stopped_s = clock.t(wall_s, finite(end.get("mono_s")))
        if stopped_s < last + ABSURD_DISTANCE_S:
            return max(stopped_s, last)
    later = [t_s for table in others if len(table) and (t_s := float(table["t_s"].max())) < last + ABSURD_DISTANCE_S]
    is_cut = max(later, default=last) > last + MISSED_INTERVALS * (interval_s or 1.0)
    return (max(later) if is_cut else last) + interval_s


def _recorded(event: Mapping[str, Any], clock: RunClock) -> RecordedEvent:
    fields = {k: v for k, v in event.items() if k not in {"wall_s", "mono_s", "kind", "gpu"}}
    return RecordedEvent(_time(event, clock), event["kind"], whole_index(event.get("gpu")), fields)


def _time(event: Mapping[str, Any], clock: RunClock) -> float:
    return clock.t(event["wall_s"], event.get("mono_s"))


def _kernel_log(events: Events, clock: RunClock, devices: Sequence[Gpu], pids: frozenset[int]) -> KernelLog:
    """Return the kernel log as recorded; without a status event nothing is known of it."""
    status = next((e for e in reversed(events) if e["kind"] == "kernel_log"), {})
    listening = any(e["kind"] == "xid_events" and e.get("status") == "listening" for e in events)
    lines = [_line(event, clock) for event in events if event["kind"] == "kernel"]
    xids = [_xid(event, clock) for event in events if event["kind"] == "xid" and _has_code(event)]
    was_read = _text(status, "status") == "read"
    found = kernel_events(lines, devices, pids, xids, log_was_read=was_read)
    return KernelLog(
        status=STATUSES.get(_text(status, "status"), "unavailable"),
        source=_text(status, "source") or None,
        reason=_text(status, "reason") or ("" if status else "this recording does not say whether it was read"),
        advice=_text(status, "advice"),
        events=no_alarm_before_start(found),
        xid_events="listening" if listening else "unavailable",
    )


def _many_faults(kernel: KernelLog) -> tuple[str, ...]:
    many = len(kernel.events) >= MOST_EVENTS
    return (
        (f"the kernel log has {MOST_EVENTS:,} different events or more: the worst of them are shown",) if many else ()
    )


def no_alarm_before_start(events: Sequence[KernelEvent]) -> tuple[KernelEvent, ...]:
    """Return the events, those that had ended before the recording began as severity info: told, but no alarms."""
    return tuple(dataclasses.replace(event, severity="info") if _end(event) < 0 else event for event in events)


def _end(event: KernelEvent) -> float:
    return event.t_s if event.last_t_s is None else event.last_t_s


def _has_code(event: Mapping[str, Any]) -> bool:
    code = event.get("code")
    return isinstance(code, int) and not isinstance(code, bool) and 0 <= code < LARGEST_XID


def _xid(event: Mapping[str, Any], clock: RunClock) -> tuple[float, int | None, int]:
    return _time(event, clock), whole_index(event.get("gpu")), int(event["code"])


def _text(event: Mapping[str, Any], name: str) -> str:
    """Return a field that should be text; anything else says nothing."""
    value = event.get(name)
    return value if isinstance(value, str) else ""


def _line(event: Mapping[str, Any], clock: RunClock) -> RawLine:
    level = event.get("level")
    return RawLine(
        t_s=_time(event, clock),
        text=_text(event, "text"),
        level=level if isinstance(level, int) else None,
        source=_text(event, "source"),
    )

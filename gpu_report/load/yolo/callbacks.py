"""What our callbacks wrote in the processes of YOLO (`inside/*.jsonl`), put on the run's clock.

A phase ends where the next one begins, the last one where its run ends. A process that was killed says nothing of its
end: that is when it left the GPU, else when the command, or the recording, ended, or the next run began.
"""

import dataclasses
import os
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gpu_report import schema
from gpu_report.load.limits import SHORT, Limits
from gpu_report.load.problems import lines_left_out, too_many
from gpu_report.load.process_files import process_files, read_head
from gpu_report.load.run_clock import RunClock
from gpu_report.load.yolo.callback_lines import LEFT_OUT, LONGEST_TEXT, CallbackLine, lines_of, text, whole
from gpu_report.load.yolo.exceptions import one_line, raised
from gpu_report.load.yolo.memory_holders import memory_holders
from gpu_report.load.yolo.profiler_windows import profiler_windows
from gpu_report.load.yolo.setting_locations import setting_locations
from gpu_report.model import (
    InsideEpoch,
    InsideRun,
    Phase,
    Raised,
    RebuiltPredictor,
    Recording,
    Validation,
    YoloRun,
)
from gpu_report.run_folder import finite

Lines = Sequence[CallbackLine]

SOURCE: Final = "callbacks"  # where these phases are known from
TASKS: Final = {"train", "val", "predict", "export"}
ENDINGS: Final = {"finished", "early stop", "exception"}
VERSIONS: Final = ("torch", "cuda", "ultralytics")
VALIDATES: Final = {"validation", "final evaluation"}  # phases that a validation may lie in
COUNTING: Final = {"epoch", "batches"}  # kinds that say of an epoch what was done in it ...
COUNTS: Final = {"calls", "ended"}
PACED: Final = {"progress", "batches"}  # ... and how far it is
STAMPS: Final = {"wall_s", "mono_s", "t_s", "kind"}
NO_SETTINGS: Final = STAMPS | {"task", "pid", "rank"}

# A training that lives tells of its batches every 3 s and, the longer it lasts, ever more seldom (inside: batches.py).
# One that hangs tells nothing either: silence is the end only of a process that nobody saw from outside.
SILENCE_S: Final = 20.0  # ... and a batch takes less than this
SILENCE_SHARE: Final = 1 / 1800
LARGEST_SETTING: Final = 1e15
MOST_FILES: Final = 4096  # processes of YOLO under one recording
LONGEST_LIST: Final = 16
MOST_PLACES: Final = 64  # three for each of fifteen settings
MOST_REBUILDS: Final = 20  # ways, of one process: our callbacks write no more
MOST_MODELS: Final = 200  # of one process: our callbacks tell no more apart


@dataclass(frozen=True)
class Outside:
    """What was seen from outside of the ends of processes, in seconds of the run.

    `gone` is when a pid left a GPU, `seen` the pids that were ever on one, `command_ended` when a command had ended.
    """

    gone: Mapping[int, Sequence[float]] = field(default_factory=dict)
    seen: frozenset[int] = frozenset()
    command_ended: Sequence[float] = ()


@dataclass(frozen=True)
class BegunRun:
    """A run as its process reported it, and where it writes."""

    save_dir: str | None
    run: InsideRun


def load_inside(  # noqa: PLR0913, PLR0917 - what is known of the recording, and how much may be
    folder: Path,
    clock: RunClock,
    end_t_s: float,
    yolo_runs: Sequence[YoloRun],
    outside: Outside,
    limits: Limits = SHORT,
) -> tuple[tuple[InsideRun, ...], tuple[str, ...]]:
    """Return every run that a process reported, by its beginning, and what could not be read.

    `folder` is the run folder's inside/, `end_t_s` the end of the recording.
    """
    problems: list[str] = []
    parts: list[Lines] = []
    left = limits.inside_bytes
    for path in process_files(folder, MOST_FILES):
        data, cut = read_head(path, left)
        left -= len(data)
        lines, bad = lines_of(data, clock, end_t_s)
        if cut:
            problems.append(f"{schema.INSIDE_DIR}/{path.name}: {cut}")
        if bad:
            problems.append(lines_left_out(f"{schema.INSIDE_DIR}/{path.name}", bad))
        problems += _faults(path, lines)
        parts += _parts(lines)
    parts, many = _few(sorted(parts, key=lambda part: part[0].t_s), limits.yolo_runs)
    begins = [part[0].t_s for part in parts if not whole(part[0].content.get("rank"))]
    found = [_found(part, begins, end_t_s, outside) for part in parts]
    runs, more = _of_few_epochs(_matched(found, yolo_runs), limits.epochs)
    return runs, (*problems, *many, *more)


def _few(parts: list[Lines], most: int) -> tuple[list[Lines], list[str]]:
    """Return as many trainings as there can be, with all other runs, and what is left out."""
    trains = [at for at, part in enumerate(parts) if part[0].content["task"] == "train"]
    if len(trains) <= most:
        return parts, []
    excess = set(trains[most:])
    few = [part for at, part in enumerate(parts) if at not in excess]
    return few, [too_many(f"{schema.INSIDE_DIR}/ has {len(trains):,} trainings", most)]


def _of_few_epochs(runs: Sequence[InsideRun], most: int) -> tuple[tuple[InsideRun, ...], list[str]]:
    """Return the runs with as many epochs as there can be, and what is left out."""
    count = sum(len(run.epochs) for run in runs)
    if count <= most:
        return tuple(runs), []
    left, few = most, []
    for run in runs:
        few.append(dataclasses.replace(run, epochs=run.epochs[:left]))
        left -= len(few[-1].epochs)
    return tuple(few), [too_many(f"{schema.INSIDE_DIR}/ has {count:,} epochs", most)]


def with_versions(recording: Recording, runs: Iterable[InsideRun]) -> Recording:
    """Return the recording with the versions that a training reported, where run.json does not know them."""
    settings = next((run.settings for run in runs if run.task == "train"), None) or next((r.settings for r in runs), {})
    unknown: dict[str, Any] = {
        name: settings[name]
        for name in VERSIONS
        if getattr(recording, name) is None and isinstance(settings.get(name), str)
    }
    return dataclasses.replace(recording, **unknown)


def _faults(path: Path, lines: Lines) -> list[str]:
    """Say what our own callbacks could not do."""
    faults = [line.content for line in lines if line.kind == "error"]
    first = next((f"{text(fault.get('where'))}: {text(fault.get('reason'))}" for fault in faults), "")
    what = f"{schema.INSIDE_DIR}/{path.name}: our callbacks failed ({first}); what they report is incomplete"
    return [what] if faults else []


def _parts(lines: Lines) -> list[Lines]:
    """Split the lines of a process at each beginning of a run; what precedes the first one belongs to none."""
    begins = [at for at, line in enumerate(lines) if line.kind == "run" and _begins(line)]
    return [lines[begin:end] for begin, end in zip(begins, [*begins[1:], len(lines)], strict=False)]


def _begins(line: CallbackLine) -> bool:
    task = line.content.get("task")
    return isinstance(task, str) and task in TASKS


def _found(part: Lines, begins: Sequence[float], end_t_s: float, outside: Outside) -> BegunRun:
    """Return a run; where nobody said that it ended, it has when a next one begins (`begins`: rank 0 only, sorted)."""
    last = part[-1].t_s
    after = bisect_right(begins, last)
    run = _run(part, min([*begins[after : after + 1], max(end_t_s, last)]), outside)
    return BegunRun(text(part[0].content.get("save_dir")), run)


def _run(lines: Lines, silent_until_s: float, outside: Outside) -> InsideRun:
    said = lines[0].content
    settings = {k: _plain(v) for line in lines if line.kind in {"run", "settings"} for k, v in line.content.items()}
    ended = next((line for line in lines if line.kind == "ended"), None)
    how = None if ended is None else ended.content.get("how")
    end_t_s = _death(lines, silent_until_s, outside) if ended is None else ended.t_s
    return InsideRun(
        run=None,
        rank=whole(said.get("rank")) or 0,
        pid=whole(said.get("pid")) or 0,
        task=said["task"],
        settings={name: value for name, value in settings.items() if name not in NO_SETTINGS},
        phases=_phases(lines, end_t_s),
        epochs=_epochs(lines),
        ended=how if isinstance(how, str) and how in ENDINGS else None,
        error=None if ended is None else text(ended.content.get("error")),
        progress=tuple(line.content.progress for line in lines if line.kind in PACED and line.content.progress),
        raised=Raised() if ended is None else raised(ended.content),
        profiled=profiler_windows(lines),
        models=_models(lines),
        calls=_counts(lines),
        objects=_by_model(lines, "objects"),
        rebuilt=_by_model(lines, "rebuilt"),
        rebuilds=_rebuilds(lines),
        image_px=_by_model(lines, "image_px"),
        largest_px=_by_model(lines, "largest_px"),
        repeated=_by_model(lines, "repeated"),
        repeated_images=_by_model(lines, "repeated_images"),
        memory_holders=memory_holders(lines),
        memory_retries=_memory_retries(lines),
        slow_modes_now=_slow_modes_now(lines),
        setting_locations=setting_locations([line.content for line in lines if line.kind == "set_in"][:MOST_PLACES]),
    )


def _models(lines: Lines) -> dict[int, dict[str, object]]:
    """Return the facts of each model that was called, by its number."""
    found: dict[int, dict[str, object]] = {}
    for line in lines:
        number = whole(line.content.get("number")) if line.kind == "model" else None
        if number is not None and len(found) < MOST_MODELS:
            facts = {name: _plain(value) for name, value in line.content.items()}
            found[number] = {name: value for name, value in facts.items() if name not in STAMPS | {"number"}}
    return found


def _rebuilds(lines: Lines) -> tuple[RebuiltPredictor, ...]:
    """Return in which ways predictors of YOLO objects were set up anew."""
    said = [line.content for line in lines if line.kind == "rebuilt"][:MOST_REBUILDS]
    known = ((whole(each.get("number")), whole(each.get("before")), each) for each in said)
    return tuple(
        RebuiltPredictor(number, before, _names(each.get("changed")), *_place(each))
        for number, before, each in known
        if number is not None and before is not None
    )


def _names(value: object) -> tuple[str, ...]:
    listed = value[:LONGEST_LIST] if isinstance(value, list) else []
    return tuple(name for each in listed if (name := one_line(each)))


def _place(content: Mapping[str, object]) -> tuple[str, int, str]:
    """Return file, line and function of a line of code, empty where it is not known."""
    file, line, function = one_line(content.get("file")), whole(content.get("line")), one_line(content.get("function"))
    return (file, line, function or "") if file and line else ("", 0, "")


def _memory_retries(lines: Lines) -> tuple[tuple[float, int], ...]:
    """Return how often PyTorch's cache had been emptied, each time that somebody said so."""
    said = ((line.t_s, whole(line.content.get("memory_retries"))) for line in lines if line.kind == "settings")
    return tuple((t_s, count) for t_s, count in said if count is not None)


def _slow_modes_now(lines: Lines) -> tuple[tuple[float, frozenset[str]], ...]:
    """Return what was on that slows the process, from each moment on at which that changed."""
    said = (line for line in lines if line.kind == "settings")
    told = ((line.t_s, line.content.get("slow_modes_now", line.content.get("slow_modes"))) for line in said)
    lists = ((t_s, modes[:LONGEST_LIST]) for t_s, modes in told if isinstance(modes, list))
    return tuple((t_s, frozenset(mode for mode in modes if isinstance(mode, str))) for t_s, modes in lists)


def _counts(lines: Lines) -> dict[str, int]:
    """Return how many calls there were, by the last line that says so."""
    last = _last_counts(lines)
    counted = {name: whole(last.get(name)) for name in ("calls", "failed", "dropped")}
    return {name: count for name, count in counted.items() if count is not None}


def _by_model(lines: Lines, what: str) -> dict[int, int]:
    """Return what the last counts say of each model of the process, by its number."""
    said = _last_counts(lines).get(what)
    pairs = list(said.items())[:MOST_MODELS] if isinstance(said, Mapping) else []
    counted = {int(name): whole(count) for name, count in pairs if name.isascii() and name.isdigit() and len(name) < 6}
    return {number: count for number, count in counted.items() if count is not None}


def _last_counts(lines: Lines) -> Mapping[str, object]:
    return next((line.content for line in reversed(lines) if line.kind in COUNTS), {})


def _death(lines: Lines, silent_until_s: float, outside: Outside) -> float:
    """Return when a run was over that nobody ended: when its process left the GPU, else when the command ended.

    A process that was never seen to go lived to `silent_until_s`, however silent: it may have hung. Of one that nobody
    saw, silence is the end, if it trained: batches are silent for seconds only, for a minute after a day.
    """
    last = lines[-1].t_s
    pid = whole(lines[0].content.get("pid")) or 0
    for moments in (outside.gone.get(pid, ()), outside.command_ended):
        after = [t_s for t_s in moments if t_s >= last]
        if after:
            return max(last, min(*after, silent_until_s))
    phase = next((line.content.name for line in reversed(lines) if line.kind == "phase"), "")
    if pid in outside.seen or phase != "train":
        return silent_until_s
    silence_s = SILENCE_S + SILENCE_SHARE * (last - lines[0].t_s)
    return min(last + silence_s, silent_until_s)


def _phases(lines: Lines, end_t_s: float) -> tuple[Phase, ...]:
    """Return the phases that begun; one that is followed by lines left out ends there."""
    begun = [line for line in lines if (line.kind == "phase" and line.content.name) or line.kind == LEFT_OUT]
    ends = [*(line.t_s for line in begun[1:]), end_t_s]
    validated = _validated(lines, [line.t_s for line in begun])
    return tuple(
        Phase(
            line.content.name,
            line.content.epoch,
            line.t_s,
            max(end, line.t_s),
            SOURCE,
            line.content.detail,
            validated=validated.get(at) if line.content.name in VALIDATES else None,
        )
        for at, (line, end) in enumerate(zip(begun, ends, strict=False))
        if line.kind == "phase"
    )


def _validated(lines: Lines, begins: Sequence[float]) -> Mapping[int, Validation]:
    """Return the last validation that lies in each phase, by the phase's place; `begins` is when each began, sorted."""
    found = [line.content for line in lines if line.kind == "validation" and line.content]
    middles = ((each, (each.start_t_s + each.end_t_s) / 2) for each in found)  # its edges are those of phases
    return {bisect_right(begins, middle_s) - 1: each for each, middle_s in middles}


def _epochs(lines: Lines) -> tuple[InsideEpoch, ...]:
    """Return the epochs in order; one that never ended as far as it was reported."""
    found: dict[tuple[int, int], InsideEpoch] = {}
    for line in lines:
        epoch = line.content.epoch if line.kind in COUNTING else None
        if epoch is not None and (line.kind == "epoch" or not _has_ended(found, epoch)):
            found[epoch.epoch, epoch.attempt] = epoch
    return tuple(sorted(found.values(), key=lambda epoch: epoch.start_t_s))


def _has_ended(found: Mapping[tuple[int, int], InsideEpoch], epoch: InsideEpoch) -> bool:
    known = found.get((epoch.epoch, epoch.attempt))
    return known is not None and known.end_t_s is not None


def _matched(found: Sequence[BegunRun], yolo_runs: Sequence[YoloRun]) -> tuple[InsideRun, ...]:
    """Give each run the number of the YoloRun in its folder; where none is known there, trainings go by order."""
    numbers: dict[str, list[int]] = {}
    for known in yolo_runs:
        if known.path is not None:
            numbers.setdefault(_real(known.path), []).append(known.number)
    homeless = [known.number for known in yolo_runs if known.path is None]
    begun: dict[str, int] = {}
    matched: list[InsideRun] = []
    for each in found:
        folder = _real(each.save_dir or "")
        fresh = each.run.task == "train" and each.run.rank == 0 and not each.run.settings.get("resumed")
        begun[folder] = begun.get(folder, 0) + fresh
        if folder not in numbers and fresh and homeless:
            numbers[folder] = [homeless.pop(0)]
        there = numbers.get(folder, [])
        number = there[min(max(begun[folder], 1), len(there)) - 1] if there else None
        matched.append(dataclasses.replace(each.run, run=number))
    return tuple(matched)


def _real(path: str) -> str:
    """Return a path without symbolic links, as it is where it can be none."""
    try:
        return os.path.realpath(path) if path else ""
    except (OSError, ValueError):  # a NUL, a lone surrogate
        return path


def _plain(value: object) -> object:
    """Return a scalar or a short list of scalars; anything else is not known."""
    if isinstance(value, str):
        return value[:LONGEST_TEXT]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, list):
        return [_plain(item) for item in value[:LONGEST_LIST] if not isinstance(item, list)]
    number = finite(value)
    return None if number is None or abs(number) > LARGEST_SETTING else value

"""Watching YOLO runs from outside: an event for each epoch as its row appears, and copies of the run's two files."""

import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path

from gpu_report import run_folder, schema
from gpu_report.ordinary_file import open_ordinary
from gpu_report.record import clocks
from gpu_report.record.clocks import Clocks
from gpu_report.record.options import RecordOptions
from gpu_report.record.proc_files import descendants, started_s
from gpu_report.record.yolo.callback_folder import InsideWatch
from gpu_report.record.yolo.find_run_dir import find_newest, search_roots
from gpu_report.record.yolo.inject import silent_processes
from gpu_report.record.yolo.results_csv import MAX_BYTES, ResultRow, ResultsTail, wall_times
from gpu_report.record.yolo.tensorboard_epochs import epochs_since
from gpu_report.record.yolo.weights import WeightsWatch
from gpu_report.without_secrets import safe_arguments

SEARCH_EVERY_S = 2.0  # until a run is found ...
SEARCH_AGAIN_EVERY_S = 15.0  # ... and after that, for the next one
# Of one core, at most: a slow walk is made more seldom, which costs nothing, since rows are stamped by file times.
SEARCH_COST_SHARE = 0.001
MOST_LOGGED = 4  # runs whose TensorBoard events are read as the recording ends: of each that may take seconds
COPY_EVERY_S = 30.0  # results.csv is copied whole; its rows are in events.jsonl at once
CLOCK_SLACK_S = 2.0  # file times are the kernel's coarse clock, and a few file systems keep whole seconds only
# A command that we start writes nothing for seconds (it imports torch): what is older is of an earlier training.
COMMAND_SLACK_S = 0.05

Emit = Callable[[str, Clocks, Mapping[str, object]], object]


@dataclass(frozen=True)
class Followed:
    """The processes whose working folders may hold a run."""

    on_gpus: Sequence[int] = ()
    of_command: Sequence[int] = ()

    @property
    def all(self) -> list[int]:
        """Return those on GPUs, and then the command with those that it started."""
        return [*self.on_gpus, *self.of_command]


@dataclass
class WatchedRun:
    """A YOLO run: its number within the recording, where it lies, and how far it has been read."""

    number: int
    path: Path
    tail: ResultsTail
    weights: WeightsWatch
    train_start_s: float | None = None
    args_mtime_s: float | None = None
    copied_at_s: float | None = None  # monotonic, of a copy with rows
    copied: dict[str, tuple[int, int]] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """Return it as run.json's `yolo` holds it."""
        return {
            "number": self.number,
            "path": str(self.path),
            "results_mtime_s": self.tail.mtime_s,
            "train_start_s": self.train_start_s,
            "args_mtime_s": self.args_mtime_s,
            "weights_mtime_s": self.weights.last_s,
        }


class YoloWatch:
    """Looks for YOLO runs and follows the newest one, and those before it whose rows go on."""

    def __init__(
        self, folder: Path, start: Clocks, options: RecordOptions, earlier: Iterable[Mapping[str, object]]
    ) -> None:
        """Copy into `folder`/yolo; `earlier` are the runs that this run folder knew before (run.json's `yolo`)."""
        self._folder = folder
        self._since_wall_s = start.wall_s - (COMMAND_SLACK_S if options.command else CLOCK_SLACK_S)
        self._given = None if options.yolo is None else options.yolo.absolute()
        self._command = options.command
        self._inside = InsideWatch(folder)
        self._due_s = 0.0
        self._logged = 0  # runs whose TensorBoard events were read
        self._final = False
        self._seen = start
        self.earlier = [dict(run) for run in earlier]
        self.runs: list[WatchedRun] = []

    def tick(self, at: Clocks, pids: Callable[[], Followed], emit: Emit) -> bool:
        """Look for a run when that is due, and give out new epochs; True when `as_json` has changed."""
        known = len(self.runs)
        self._take_hints(at, emit)
        if at.mono_s >= self._due_s:
            self._search(at, pids, emit)
        changed = bool(self.runs) and self._follow_all(at, emit)
        if self._final:
            for run in {run.path: run for run in self.runs}.values():
                self._copy(run, at)
                self._give_out_logged(run, at, emit)
        self._seen = at
        return changed or len(self.runs) != known

    def take_traces(self) -> list[Path]:
        """Return the traces that the profiler has left since the last call."""
        windows, self._inside.profiled = self._inside.profiled, []
        return [Path(said["file"]) for said in windows if isinstance(said.get("file"), str)]

    def search_now(self) -> None:
        """Make the next tick search and copy, however recently the last one did: the recording ends."""
        self._due_s = 0.0
        self._final = True

    @property
    def path(self) -> Path | None:
        """Return the folder of the run that is followed, None until one is found."""
        return self.runs[-1].path if self.runs else None

    def as_json(self) -> list[dict[str, object]]:
        """Return run.json's `yolo`."""
        new = [run.as_json() for run in sorted(self.runs, key=lambda run: run.number)]
        numbers = {run["number"] for run in new}
        return [run for run in self.earlier if run.get("number") not in numbers] + new

    def _search(self, at: Clocks, pids: Callable[[], Followed], emit: Emit) -> None:
        found = self._find(at, pids)
        took_s = time.monotonic() - at.mono_s
        every_s = SEARCH_AGAIN_EVERY_S if self.runs else SEARCH_EVERY_S
        self._due_s = at.mono_s + max(every_s, took_s / SEARCH_COST_SHARE)
        if found is not None:
            self._begin(found, at, emit)

    def _take_hints(self, at: Clocks, emit: Emit) -> None:
        """Begin the trainings that our callbacks report of; the ones before are over, and are read to their ends."""
        for path in self._inside.new_trainings():
            if self._given is None and not self._knows(path):
                if self.runs:
                    self._follow(self.runs[-1], at, emit)
                self._begin(path, at, emit)

    def _find(self, at: Clocks, pids: Callable[[], Followed]) -> Path | None:
        if self._given is not None:
            return self._given if not self.runs and self._given.is_dir() else None
        known = [run.path for run in self.runs]
        if self._command and self._inside.has_told:  # what lies there of others is not asked for
            return self._find_of(silent_processes(pids().on_gpus), at, known)
        roots = search_roots(self._command, pids().all)
        found = find_newest(roots, self._since_wall_s, known, begun_since=bool(self._command))
        return found if found is not None and not self._knows(found) else None

    def _find_of(self, silent: Sequence[int], at: Clocks, known: Sequence[Path]) -> Path | None:
        """Return the folder of a training within the command that cannot tell of it: `sudo`, a cleared environment.

        It began after that process did, and is of its user: others may train in the same working folder.
        """
        begun_s = [at.wall_s - (at.boot_s - seconds) for pid in silent if (seconds := started_s(pid)) is not None]
        if not begun_s:
            return None
        since_s = max(self._since_wall_s, min(begun_s) - CLOCK_SLACK_S)
        roots = search_roots(self._command, silent)
        found = find_newest(roots, since_s, known, begun_since=True, of_users=users_of(silent))
        return found if found is not None and not self._knows(found) else None

    def _follow_all(self, at: Clocks, emit: Emit) -> bool:
        """Follow the newest run, and each earlier one that has gone on (a resumed one): it is the newest then.

        Its number and its folder stay; where its file was begun anew (`exist_ok=True`), `_follow` makes it another run.
        """
        latest = {run.path: run for run in self.runs}
        gone_on = [run for run in latest.values() if run is not self.runs[-1] and run.tail.differs()]
        changed = self._follow(self.runs[-1], at, emit)
        for run in gone_on:
            self.runs.remove(run)
            self.runs.append(run)
            changed |= self._follow(run, at, emit)
        return changed

    def _knows(self, path: Path) -> bool:
        """Say whether a folder is watched already, maybe under another name."""
        real = os.path.realpath(path)
        return any(os.path.realpath(run.path) == real for run in self.runs)

    def _begin(self, path: Path, at: Clocks, emit: Emit) -> WatchedRun:
        number = self._number_for(path)
        if number == 2:
            _move_first(self._folder / schema.YOLO_DIR)
        weights = WeightsWatch(path, self._since_wall_s)
        run = WatchedRun(number, path, ResultsTail(path / schema.YOLO_RESULTS), weights)
        self.runs.append(run)
        emit("yolo_run", at, {"path": str(path), "number": number})
        return run

    def _number_for(self, path: Path) -> int:
        """Return the number that this path had before a recorder came back to its folder, else the next free one."""
        taken = {run.get("number"): run.get("path") for run in self.earlier}
        if not self.runs:
            again = [number for number, known in taken.items() if known == str(path) and isinstance(number, int)]
            if again:
                return again[-1]
        numbers = [number for number in taken if isinstance(number, int)] + [run.number for run in self.runs]
        return max(numbers, default=0) + 1

    def _follow(self, run: WatchedRun, at: Clocks, emit: Emit) -> bool:
        changed = run.tail.changed()
        if changed:
            first = run.tail.rows_read == 0
            rows, restarted = run.tail.read()
            if restarted:  # the same folder, begun anew: another run
                tail, run.tail = run.tail, replace(run.tail)
                run = self._begin(run.path, at, emit)
                run.tail = tail
            self._give_out(run, rows, self._written_s(run, at, first=first or restarted), at, emit)
        self._copy(run, at)
        for name, wall_s in run.weights.changes():
            emit("checkpoint", clocks.at_wall(min(wall_s, at.wall_s), at), {"run": run.number, "file": name})
        return changed

    def _written_s(self, run: WatchedRun, at: Clocks, *, first: bool) -> float:
        """Return when the last row was written: the file's mtime, unless a file server's clock makes that absurd."""
        mtime_s = at.wall_s if run.tail.mtime_s is None else run.tail.mtime_s
        if mtime_s > at.wall_s or (not first and mtime_s < self._seen.wall_s - CLOCK_SLACK_S):
            return at.wall_s
        return mtime_s

    def _give_out(self, run: WatchedRun, rows: Sequence[ResultRow], written_s: float, at: Clocks, emit: Emit) -> None:
        if rows and rows[-1].time_s is not None:
            run.train_start_s = written_s - rows[-1].time_s
        for row, wall_s in zip(rows, wall_times(rows, written_s), strict=True):
            if wall_s is not None and wall_s >= self._since_wall_s:
                emit("epoch", clocks.at_wall(wall_s, at), _epoch_fields(run.number, row))

    def _give_out_logged(self, run: WatchedRun, at: Clocks, emit: Emit) -> None:
        """Give out when epochs ended by YOLO's events for TensorBoard, where no callbacks of ours reported it."""
        if self._inside.has_told or self._logged >= MOST_LOGGED:
            return
        self._logged += 1
        for wall_s, fields in epochs_since(run.path, self._since_wall_s):
            if wall_s <= at.wall_s:
                emit("tensorboard", clocks.at_wall(wall_s, at), {"run": run.number, **fields})

    def _copy(self, run: WatchedRun, at: Clocks) -> None:
        """Copy the run's files when they changed, with their times; a full disk costs the copy only."""
        target = self._folder / schema.YOLO_DIR
        if run.number > 1 or len(self.as_json()) > 1:
            target /= str(run.number)
        for name in (schema.YOLO_ARGS, schema.YOLO_RESULTS):
            if name == schema.YOLO_RESULTS and not self._copy_due(run, at):
                continue
            try:
                status = (run.path / name).stat()
                signature = (status.st_mtime_ns, status.st_size)
                if run.copied.get(name) != signature and status.st_size <= MAX_BYTES:
                    copy_file(run.path / name, target / name, status)
                    run.copied[name] = signature
                    if name == schema.YOLO_RESULTS and run.tail.rows_read:
                        run.copied_at_s = at.mono_s
                if name == schema.YOLO_ARGS:
                    run.args_mtime_s = status.st_mtime
            except OSError:
                continue

    def _copy_due(self, run: WatchedRun, at: Clocks) -> bool:
        return self._final or run.copied_at_s is None or at.mono_s - run.copied_at_s >= COPY_EVERY_S


def pids_to_follow(command_pid: int | None, gpu_pids: Set[int], others: Set[int]) -> Followed:
    """Return the processes whose working folders may hold a run: those on a GPU, and the command's descendants.

    Beside a command, `others` on a GPU are somebody else's, and so is what they write.
    """
    if command_pid is None:
        return Followed([*gpu_pids])
    return Followed([*(gpu_pids - others)], descendants(command_pid))


def users_of(pids: Iterable[int]) -> set[int]:
    """Return the users that processes run as."""
    users: set[int] = set()
    for pid in pids:
        try:
            users.add(Path(f"/proc/{pid}").stat().st_uid)
        except OSError:
            continue  # gone
    return users


def copy_file(source: Path, target: Path, status: os.stat_result) -> None:
    """Copy a small text file atomically and keep its times, by which a reader places its rows; args without secrets."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with open_ordinary(source) as file:
        text = file.read(MAX_BYTES).decode("utf-8", "replace")
    run_folder.write_text(target, safe_arguments(text) if source.name == schema.YOLO_ARGS else text)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def _move_first(folder: Path) -> None:
    """Make room for a second run: the first one's files go to yolo/1/."""
    for name in (schema.YOLO_ARGS, schema.YOLO_RESULTS):
        if (folder / name).exists():
            (folder / "1").mkdir(exist_ok=True)
            shutil.move(folder / name, folder / "1" / name)


def _epoch_fields(number: int, row: ResultRow) -> dict[str, object]:
    return {"run": number, "epoch": row.epoch, "time_s": row.time_s, "metrics": row.metrics}

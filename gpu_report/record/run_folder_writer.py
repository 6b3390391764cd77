"""The run folder while it is written: rows and events from any thread, and run.json."""

import contextlib
import shlex
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu_report import run_folder, schema
from gpu_report.errors import InputError, UsageError
from gpu_report.record.clocks import Clocks
from gpu_report.without_secrets import event_line

SYNC_EVERY_S = 30.0  # an fsync costs 4 to 8 ms and protects from power loss only, so not at every row
REPORT_LOST_EVERY_S = 60.0  # while a disk stays full

# How the files that are appended to begin.
BEGINNINGS = {
    **dict.fromkeys(
        (
            schema.SAMPLES_CSV,
            schema.HOST_CSV,
            schema.PROCESSES_CSV,
            schema.RING_CSV,
            schema.WAITS_CSV,
            schema.OTHERS_CSV,
        ),
        ",".join(column.name for column in schema.TIME_COLUMNS).encode(),
    ),
    schema.EVENTS_JSONL: b'{"wall_s": ',
}

Say = Callable[[str], None]


class Journal:
    """The open files of one run folder. Nothing here raises once it is open: what is lost is counted and reported."""

    def __init__(self, folder: Path, say: Say) -> None:
        """Open and claim `folder`: OSError when it cannot be written.

        UsageError when another recorder holds it, or it has files of the user's that would be written into.
        """
        folder.mkdir(parents=True, exist_ok=True)
        _refuse_files_of_others(folder)
        self.folder = folder.absolute()
        self._say = say
        with contextlib.ExitStack() as opened:  # one that cannot be opened must leave none open, and let the folder go

            def table(name: str, columns: Sequence[schema.Column], *, claim: bool = False) -> run_folder.Appender:
                return opened.enter_context(
                    contextlib.closing(run_folder.csv_appender(self.folder, name, columns, claim=claim))
                )

            self._samples = table(schema.SAMPLES_CSV, schema.SAMPLES_COLUMNS, claim=True)
            self._host = table(schema.HOST_CSV, schema.HOST_COLUMNS)
            self._processes = table(schema.PROCESSES_CSV, schema.PROCESSES_COLUMNS)
            self._ring = table(schema.RING_CSV, schema.RING_COLUMNS)
            self._waits = table(schema.WAITS_CSV, schema.WAITS_COLUMNS)
            self._others = table(schema.OTHERS_CSV, schema.OTHERS_COLUMNS)
            self._events = run_folder.Appender(self.folder / schema.EVENTS_JSONL)
            opened.pop_all()
        tables = (self._samples, self._host, self._processes, self._ring, self._waits, self._others)
        self._files = (*tables, self._events)
        self._losses = {file.path.name: _Loss() for file in self._files}
        self._complained = False
        self._lock = threading.Lock()
        self._closed = False
        self._syncing: threading.Thread | None = None
        self._synced_s = 0.0
        self._info: dict[str, object] = {}
        self.errors = 0

    @property
    def lossy(self) -> bool:
        """Say whether something could not be written."""
        return self._complained

    def sample(self, at: Clocks, gpu: int, values: Mapping[str, run_folder.Value]) -> None:
        """Append one GPU's readings of one tick."""
        self._samples.write(run_folder.format_row(schema.SAMPLES_COLUMNS, {**_stamp(at), "gpu": gpu, **values}))

    def ring(self, gpu: int, readings: Sequence[tuple[Clocks, str, float]]) -> None:
        """Append what the driver kept between ticks, as (moment, column, value), all with one write."""
        rows = [{**_stamp(at), "gpu": gpu, column: value} for at, column, value in readings]
        if rows:
            self._ring.write(b"".join(run_folder.format_row(schema.RING_COLUMNS, row) for row in rows), rows=len(rows))

    def host(self, at: Clocks, values: Mapping[str, run_folder.Value]) -> None:
        """Append the host's readings of one tick."""
        self._host.write(run_folder.format_row(schema.HOST_COLUMNS, {**_stamp(at), **values}))

    def process(self, at: Clocks, values: Mapping[str, run_folder.Value]) -> None:
        """Append a process that appeared, changed or went."""
        self._processes.write(run_folder.format_row(schema.PROCESSES_COLUMNS, {**_stamp(at), **values}))

    def wait(self, since: Clocks, values: Mapping[str, run_folder.Value]) -> None:
        """Append what a process of the training waited for, from `since` on."""
        self._waits.write(run_folder.format_row(schema.WAITS_COLUMNS, {**_stamp(since), **values}))

    def other_program(self, at: Clocks, values: Mapping[str, run_folder.Value]) -> None:
        """Append what a program of others used, up to `at`."""
        self._others.write(run_folder.format_row(schema.OTHERS_COLUMNS, {**_stamp(at), **values}))

    def event(self, kind: str, at: Clocks, fields: Mapping[str, object]) -> bool:
        """Append an event; False when it was lost. Safe from any thread, and after the end."""
        line = event_line(kind, at.wall_s, at.mono_s, fields)
        with self._lock:
            self.errors += kind == "nvml_error"
            return not self._closed and self._events.write(line)

    def settle(self, at: Clocks, *, last: bool = False) -> None:
        """Report lost rows once they end, and now and then while they last; sync now and then."""
        for file in self._files:
            self._report_lost(file, at, last=last)
        if at.mono_s - self._synced_s > SYNC_EVERY_S and not (self._syncing and self._syncing.is_alive()):
            self._synced_s = at.mono_s
            # on a disk that a training keeps busy a sync may take seconds, and ticks must not wait for it
            self._syncing = threading.Thread(target=self.sync, name="sync", daemon=True)
            self._syncing.start()

    def sync(self) -> None:
        """Ask the disk to keep what was written."""
        for file in self._files:
            file.sync()

    def describe(self, fields: Mapping[str, object], *, anew: bool = False) -> None:
        """Set fields of run.json (`anew`: all of them) and write it; a disk that is full is complained of once."""
        self._info = {**({} if anew else self._info), **fields}
        try:
            run_folder.write_json(self.folder / schema.RUN_JSON, self._info)
        except OSError as error:
            self._complain(schema.RUN_JSON, error.strerror or str(error))

    def remove(self) -> None:
        """Delete what was written, and the folder when nothing else is in it."""
        for path in (*(file.path for file in self._files), self.folder / schema.RUN_JSON):
            path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    def close(self) -> None:
        """Sync and close every file, and let the folder go."""
        if self._syncing is not None:
            self._syncing.join()
        self.sync()
        with self._lock:
            self._closed = True
            for file in self._files:
                file.close()

    def _report_lost(self, file: run_folder.Appender, at: Clocks, *, last: bool) -> None:
        loss = self._losses[file.path.name]
        growing, loss.seen = file.lost > loss.seen, file.lost
        if file.lost == loss.reported:
            return
        self._complain(file.path.name, file.lost_reason)
        if growing and not last and at.mono_s - loss.reported_s < REPORT_LOST_EVERY_S:
            return
        rows = file.lost - loss.reported
        if self.event("rows_lost", at, {"file": file.path.name, "rows": rows, "reason": file.lost_reason}):
            loss.reported, loss.reported_s = loss.reported + rows, at.mono_s
        else:
            self._events.lost -= 1  # this report is no event of the run, and will be tried again

    def _complain(self, name: str, reason: str) -> None:
        if not self._complained:
            self._complained = True
            how = f"`df -h {shlex.quote(str(self.folder))}` shows whether its disk is full. Recording continues"
            self._say(f"{self.folder / name} could not be written ({reason}): rows are being lost. {how}")


@dataclass
class _Loss:
    """How many rows of a file had been lost at the last look and at the last report, and when that was."""

    seen: int = 0
    reported: int = 0
    reported_s: float = float("-inf")


def earlier_start(folder: Path) -> tuple[int, dict[str, object]]:
    """Return how many segments a folder already holds, and what its run.json says (empty when it is new)."""
    events, _ = run_folder.read_events(folder / schema.EVENTS_JSONL)
    segments = sum(event["kind"] == "recording_started" for event in events)
    try:
        return segments, run_folder.read_json(folder / schema.RUN_JSON)
    except InputError:
        return segments, {}


def _refuse_files_of_others(folder: Path) -> None:
    """Refuse a folder in which something of a run folder's name was not made by a recorder; UsageError."""
    names = [name for name, begin in BEGINNINGS.items() if not _begins_so(folder / name, begin)]
    with contextlib.suppress(InputError):
        names += [] if "format" in run_folder.read_json(folder / schema.RUN_JSON) else [schema.RUN_JSON]
    is_new = not any((folder / name).exists() for name in (schema.SAMPLES_CSV, schema.RUN_JSON))
    names += [schema.YOLO_DIR] if is_new and (folder / schema.YOLO_DIR).exists() else []
    if names:
        what = f"it has a {names[0]} that is not of a recording"
        raise UsageError(f"cannot record into {folder}: {what}; name another folder with --output")


def _begins_so(path: Path, begin: bytes) -> bool:
    """Tell whether a file begins as ours does; an empty one may become so, and a full disk leaves part of it."""
    if not path.is_file():
        return True
    with path.open("rb") as file:
        return begin.startswith(file.read(len(begin)))


def open_journal(folder: Path, say: Say) -> Journal:
    """Open a run folder for writing; UsageError with the way out when that cannot be."""
    try:
        return Journal(folder, say)
    except OSError as error:
        raise run_folder.cannot_record(folder, error) from error


def _stamp(at: Clocks) -> dict[str, float]:
    return {"wall_s": at.wall_s, "mono_s": at.mono_s}

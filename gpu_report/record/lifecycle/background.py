"""A recorder that outlives the shell it was started from, and ending it."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from gpu_report import run_folder, schema
from gpu_report.errors import ERROR_AS_JSON, GpuReportError, InputError, error_in
from gpu_report.inside.on_path.gpu_report_inside.profiler.requests import is_recorded
from gpu_report.record.options import RecordOptions

START_LIMIT_S = 45.0  # longer than a recorder itself waits for NVML to open
STOP_LIMIT_S = 20.0  # a recorder in a hung driver or disk call gives up within 15 s
POLL_S = 0.05


class NotBegunError(GpuReportError):
    """A recorder that was started ended before it recorded: what it said, and its exit code."""

    def __init__(self, said: str, code: int) -> None:
        super().__init__(said)
        if code > 0:
            self.exit_code = code


def start(options: RecordOptions, *, with_parent: int | None = None) -> Path:
    """Start the same recording in a session of its own; return its run folder once it records, else NotBegunError.

    With the pid of a parent it ends when that does.
    """
    folder = options.output or run_folder.claim_new_run(Path(run_folder.RUNS_DIR), time.time())
    process = subprocess.Popen(
        [sys.executable, "-m", "gpu_report", "record", *_as_words(options, with_parent), "--output", str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, ERROR_AS_JSON: "1"},
        start_new_session=True,
    )
    deadline = time.monotonic() + START_LIMIT_S
    while process.poll() is None and time.monotonic() < deadline:
        if recorder_pid(folder) == process.pid:
            return folder
        time.sleep(POLL_S)
    process.kill()
    _, errors = process.communicate()
    with contextlib.suppress(OSError):
        folder.rmdir()  # it is empty unless somebody recorded into it
    raise NotBegunError(
        error_in(errors.decode("utf-8", "replace")) or "the recorder did not begin in time", process.returncode
    )


def stop(folder: Path) -> None:
    """End the recorder of a run folder and wait until it has closed it; InputError when none is running.

    Nor is one ended that began a command, for it passes the signal on: nobody who stops a recording means the training.
    """
    pid = recorder_pid(folder)
    if pid is None:
        raise InputError(f"no recorder is running in {folder}")
    if _began_command(folder):
        raise InputError(
            f"{folder} is the recording of a command, which would be stopped, too. To stop both: `kill {pid}`"
        )
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_LIMIT_S
    while recorder_pid(folder) is not None:
        if time.monotonic() > deadline:
            raise GpuReportError(
                f"the recorder of {folder} (pid {pid}) does not end. To end it, which loses one tick: `kill -9 {pid}`"
            )
        time.sleep(POLL_S)


def running(base: Path, *, to_stop: bool = False) -> Path:
    """Return the newest run folder under `base` that a recorder is writing; InputError when there is none.

    With `to_stop` it is one that began no command, where there is such a one.
    """
    live = [path for path in base.glob("*") if recorder_pid(path) is not None]
    if not live:
        raise InputError(f"no recorder is running under {base}/: name its run folder")
    return max(live, key=lambda path: (not (to_stop and _began_command(path)), path.stat().st_mtime))


def recorder_pid(folder: Path) -> int | None:
    """Return the process that records into a folder, None when nobody does: whoever does holds its lock."""
    if not is_recorded(str(folder)):
        return None
    try:
        pid = run_folder.read_json(folder / schema.RUN_JSON).get("pid")
    except InputError:
        return None  # not written yet
    return pid if isinstance(pid, int) else None


def _began_command(folder: Path) -> bool:
    """Tell whether what is recorded into a folder is a command that its recorder began."""
    return bool(run_folder.read_json(folder / schema.RUN_JSON).get("command"))


def _as_words(options: RecordOptions, with_parent: int | None) -> Sequence[str]:
    """Return the command line that means these options, but for --output."""
    valued = {
        "--duration": options.duration_s,
        "--interval": options.interval_s,
        "--gpus": ",".join(options.gpus) or None,
        "--yolo": options.yolo,
        "--kernel-log": options.kernel_log,
        "--with-parent": with_parent,
    }
    words = [word for name, value in valued.items() if value is not None for word in (name, str(value))]
    flags = {"--detail": options.detail, "--no-stacks": not options.stacks}
    return [*words, *(name for name, is_given in flags.items() if is_given)]

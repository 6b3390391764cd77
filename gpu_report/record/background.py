"""A recorder that outlives the shell it was started from, and ending it."""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from gpu_report import run_folder, schema
from gpu_report.errors import GpuReportError, InputError

START_LIMIT_S = 45.0  # longer than a recorder itself waits for NVML to open
STOP_LIMIT_S = 20.0  # a recorder in a hung driver call gives up within 5 s
POLL_S = 0.05


def start(arguments: Sequence[str], folder: Path) -> int:
    """Start `gpu-report record ARGUMENTS` into `folder`, in a session of its own; return 0 once it runs, else its code.

    What it would have printed goes to this process's stderr until it records, and nowhere after that.
    """
    command = [sys.executable, "-m", "gpu_report", "record", *arguments, "--output", str(folder)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd=Path.cwd(),
    )
    deadline = time.monotonic() + START_LIMIT_S
    while process.poll() is None and time.monotonic() < deadline:
        if recorder_pid(folder) == process.pid:
            return 0
        time.sleep(POLL_S)
    process.kill()
    _, errors = process.communicate()
    sys.stderr.write(errors.decode("utf-8", "replace"))  # a notebook's has no buffer
    return process.returncode if process.returncode > 0 else GpuReportError.exit_code


def stop(folder: Path) -> None:
    """End the recorder of a run folder and wait until it has closed it; InputError when none is running."""
    pid = recorder_pid(folder)
    if pid is None:
        raise InputError(f"no recorder is running in {folder}")
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_LIMIT_S
    while recorder_pid(folder) is not None:
        if time.monotonic() > deadline:
            raise GpuReportError(f"the recorder of {folder} (pid {pid}) does not end; `kill -9 {pid}` loses one tick")
        time.sleep(POLL_S)


def running(base: Path) -> Path:
    """Return the newest run folder under `base` that a recorder is writing; InputError when there is none."""
    live = [path for path in base.glob("*") if recorder_pid(path) is not None]
    if not live:
        raise InputError(f"no recorder is running under {base}/: name its run folder")
    return max(live, key=lambda path: path.stat().st_mtime)


def recorder_pid(folder: Path) -> int | None:
    """Return the process that records into a folder, None when nobody does: whoever does holds its lock."""
    try:
        with (folder / schema.SAMPLES_CSV).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return None
    except BlockingIOError:
        pass
    except OSError:
        return None
    try:
        pid = run_folder.read_json(folder / schema.RUN_JSON).get("pid")
    except InputError:
        return None  # not written yet
    return pid if isinstance(pid, int) else None

"""A program in py-spy's place that does what a test says."""

import json
from pathlib import Path

FAILS = 'echo "Error: Failed to find python version from target process" >&2\necho "Stack backtrace:" >&2\nexit 1'
REFUSED = "echo 'Permission Denied: Try running again with elevated permissions' >&2; exit 1"
HANGS = "exec sleep 600"
NO_JSON = "echo 'Thread 0x7F (idle)'"
FLOODS = "exec cat /dev/zero"


def stand_in(folder: Path, does: str) -> Path:
    """Write `py-spy` into a folder: a line for each call into `calls`, then what a shell is told to do."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "py-spy"
    program.write_text(f'#!/bin/sh\necho "$$ $@" >> {folder}/calls\n{does}\n')
    program.chmod(0o755)
    return program


def calls(folder: Path) -> list[list[str]]:
    """Return the words of each call, its process id first."""
    written = folder / "calls"
    return [line.split() for line in written.read_text().splitlines()] if written.exists() else []


def answers(folder: Path, threads: object) -> str:
    """Return what has a stand-in answer with JSON, in which PID stands for the process asked about."""
    (folder / "answer.json").write_text(json.dumps(threads))
    return f'sed "s/\\"PID\\"/$5/" {folder}/answer.json'


def thread(*frames: tuple[str, int, str], name: str | None = "MainThread", os_thread_id: object = "PID") -> object:
    """Return a thread as py-spy tells of it, innermost frame first."""
    told = [{"filename": file, "line": line, "name": function, "locals": None} for file, line, function in frames]
    return {"thread_name": name, "os_thread_id": os_thread_id, "active": False, "frames": told}


def is_running(pid: str) -> bool:
    """Say whether a process is there, and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False

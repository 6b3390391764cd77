"""Small files of /proc: their text, the container that they tell of, and a process's descendants."""

import os
from pathlib import Path

STARTED = 19  # of a process's `stat`, from its state on


def read_text(path: Path) -> str:
    """Return a small file's text, empty when it cannot be read. Without a buffer it costs 4 us less, at each tick."""
    try:
        with path.open("rb", buffering=0) as file:
            return file.readall().decode("utf-8", "replace")
    except OSError:
        return ""


def stat_fields(pid: int, proc: Path = Path("/proc")) -> list[str]:
    """Return the fields of a process's `stat` from its state on (proc_pid_stat(5)), empty when it is gone."""
    text = read_text(proc / str(pid) / "stat")
    return text.rpartition(")")[2].split()  # the name before may hold anything, parentheses too


def started_s(pid: int, proc: Path = Path("/proc")) -> float | None:
    """Return when a process began, in seconds since boot; None when it is gone."""
    fields = stat_fields(pid, proc)
    return int(fields[STARTED]) / os.sysconf("SC_CLK_TCK") if len(fields) > STARTED else None


def container(root: Path = Path("/")) -> str | None:
    """Return what kind of container this process runs in, or None when there is no sign of one."""
    signs = {".dockerenv": "docker", "run/.containerenv": "podman"}
    for path, name in signs.items():
        if (root / path).exists():
            return name
    groups = read_text(root / "proc/1/cgroup")
    for word, name in {"kubepods": "kubernetes", "docker": "docker", "libpod": "podman", "lxc": "lxc"}.items():
        if word in groups:
            return name
    return None


def descendants(pid: int, limit: int = 200) -> list[int]:
    """Return the process and those it started, as far as /proc tells."""
    known, todo = [pid], [pid]
    while todo and len(known) < limit:
        parent = todo.pop()
        try:
            text = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii")
        except (OSError, ValueError):
            continue
        children = [int(word) for word in text.split()]
        known += children
        todo += children
    return known

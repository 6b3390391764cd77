"""The environment of a recorded command: with it, our callbacks come into a YOLO training that knows nothing of us."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from gpu_report.inside import ON_PATH, PROFILE_VARIABLE, RUN_FOLDER_VARIABLE, STACKS_VARIABLE

PYTHONPATH = "PYTHONPATH"


def environment(
    run_folder: Path | None, base: Mapping[str, str] = os.environ, *, stacks: bool = True, profile: str | None = None
) -> dict[str, str]:
    """Return `base` with our folder first on PYTHONPATH and the run folder's name; without a run folder just `base`.

    Without `stacks` no process notes where it stands. `profile` is the plan for PyTorch's profiler, in JSON. What
    PYTHONPATH held stays behind ours. A folder whose path holds a colon cannot stand on it: then nothing is done.
    """
    env = dict(base)
    if run_folder is None or os.pathsep in str(ON_PATH):
        return env
    kept = [entry for entry in (env.get(PYTHONPATH) or "").split(os.pathsep) if entry != str(ON_PATH)]
    env[PYTHONPATH] = os.pathsep.join([str(ON_PATH), *kept]) if kept != [""] else str(ON_PATH)
    env[RUN_FOLDER_VARIABLE] = str(run_folder)
    if profile is not None:
        env[PROFILE_VARIABLE] = profile
    if not stacks:
        env[STACKS_VARIABLE] = "0"
    return env


def silent_processes(pids: Iterable[int], proc: Path = Path("/proc")) -> list[int]:
    """Return the processes that our callbacks cannot be in: their environment lacks our variable.

    Or it may not be read: it is another user's, as behind `sudo`, which clears the environment.
    """
    return [pid for pid in pids if not _has_variable(proc / str(pid) / "environ")]


def _has_variable(environ: Path) -> bool:
    try:
        return RUN_FOLDER_VARIABLE.encode() in {each.partition(b"=")[0] for each in environ.read_bytes().split(b"\0")}
    except PermissionError:
        return False
    except OSError:
        return True  # gone

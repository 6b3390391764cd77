"""What py-spy says of a process, as the frames of its main thread."""

import json
from typing import Any

from gpu_report.inside.on_path.gpu_report_inside.secrets.hide import hide_in_text
from gpu_report.record.py_spy.program import DumpFailed

DEEPEST = 160  # frames, the innermost: a reader takes no more
LONGEST_NAME = 1000  # characters of a file or a function: a path on Linux may have 4,096, and has 200
MAIN_THREAD = "MainThread"  # threading's name for it

Frames = tuple[tuple[str, int, str], ...]  # file, line (0: not known), function; innermost first


def main_thread_frames(answer: bytes, pid: int) -> Frames:
    """Return where the main thread of a process is; DumpFailed where an answer does not say it."""
    try:
        threads = json.loads(answer)
    except (ValueError, RecursionError):
        raise DumpFailed("the answer of py-spy is no JSON") from None
    known = [each for each in threads if isinstance(each, dict)] if isinstance(threads, list) else []
    frames = _frames(_main_of(known, pid).get("frames"))
    if not frames:
        raise DumpFailed("py-spy saw no Python code in the main thread")
    return frames


def _main_of(threads: list[dict[str, Any]], pid: int) -> dict[str, Any]:
    """Return the main thread: by the kernel's number, in a container that has its own numbers by its name."""
    of_kernel = (each for each in threads if each.get("os_thread_id") == pid)
    named = (each for each in threads if each.get("thread_name") == MAIN_THREAD)
    return next(of_kernel, None) or next(named, {})


def _frames(said: object) -> Frames:
    given = said[:DEEPEST] if isinstance(said, list) else []
    return tuple(frame for each in given if (frame := _frame(each)) is not None)


def _frame(said: object) -> tuple[str, int, str] | None:
    match said:
        case {"filename": str(file), "name": str(name), "line": line}:
            number = line if type(line) is int and line > 0 else 0
            return hide_in_text(file[:LONGEST_NAME]), number, _function(name[:LONGEST_NAME])
    return None


def _function(name: str) -> str:
    """Return a function as our hook names it: py-spy has the class around it, too, from Python 3.11 on."""
    return name.rpartition(".")[2]

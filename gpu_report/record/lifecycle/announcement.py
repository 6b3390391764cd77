"""What a recording says of itself: what it records, how often and into which folder; at the end how to see it."""

import shlex
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from gpu_report.record.gpu.devices import Opened
from gpu_report.record.gpu.nvml_thread import OpenFailed
from gpu_report.record.lifecycle.command import Ended
from gpu_report.record.options import RecordOptions

COMMAND_SHOWN = 80  # characters
UNNAMED = "GPU of unknown model"


def beginning(
    answer: Opened | OpenFailed | None, options: RecordOptions, folder: Path, *, continues: bool = False
) -> str:
    """Return what is recorded and where; `answer` is NVML's, None while it has not come.

    `continues` says that the folder has an earlier recording, which this one is added to, as a resumed training's.
    """
    how_long = f" for {options.duration_s:g} s" if options.duration_s is not None else ""
    stop = "" if options.command or how_long else "; Ctrl-C stops it"
    more = ". It is added to the recording there: one report shows both" if continues else ""
    return f"recording {_gpus(answer)}, every {options.interval_s:g} s{how_long}, into {_short(folder)}{more}{stop}"


def other_command(earlier: object, command: Sequence[str]) -> str:
    """Return that a folder holds another command's recording, and how to keep them apart; empty where it does not.

    A training is resumed by another command than it was started by: it is recorded all the same.
    """
    before = [each for each in earlier if isinstance(each, str)] if isinstance(earlier, list) else []
    if not before or not command or before == list(command):
        return ""
    said = shlex.join(before)
    short = said if len(said) <= COMMAND_SHOWN else f"{said[:COMMAND_SHOWN].rstrip()} ..."
    return f"note: that was of another command, {short}. If this is not the same training, name a new --output folder"


def ending(
    folder: Path, *, lossy: bool, is_read: bool = True, own_report: bool = False, ended: Ended | None = None
) -> str:
    """Return where it was recorded, and the command that renders it, but for one with a report of its own.

    `is_read` says whether any GPU was, or YOLO's callbacks reported anything: of neither there is no report.
    Then how the command `ended` is said, which no report will.
    """
    missing = ", but some of it could not be written" if lossy else ""
    if own_report:
        return f"recorded into {_short(folder)}{missing}"
    if not is_read:
        why = "No GPU was read and YOLO was not seen, so there is no report: `gpu-report doctor`"
        return f"recorded into {_short(folder)}{missing}. {_how_it_ended(ended)}{why}"
    render = shlex.join(["gpu-report", "render", "report.html", _short(folder)])
    return f"recorded into {_short(folder)}{missing}. Next: `{render}`"


def _how_it_ended(ended: Ended | None) -> str:
    """Return how a command failed, as a sentence; empty where it did not, or there was none."""
    if ended is None or (ended.code == 0 and ended.signal_name is None):
        return ""
    how = f"{ended.signal_name} ended it" if ended.signal_name else f"exit code {ended.code}"
    return f"The command failed ({how}). "


def left_behind(pids: Sequence[int]) -> str:
    """Return that processes outlive the command that started them, and how to end them."""
    which = f"process {pids[0]}" if len(pids) == 1 else f"{len(pids)} processes"
    still = "runs" if len(pids) == 1 else "run"
    return f"note: {which} of this command still {still}. To stop: `kill {' '.join(map(str, pids))}`"


def _short(folder: Path) -> str:
    """Return a folder as it is typed from here, where it lies under the working directory: never like an option."""
    try:
        typed = str(folder.relative_to(Path.cwd()))
        return f"./{typed}" if typed.startswith("-") else typed
    except (ValueError, OSError):  # it lies elsewhere; the working directory was removed
        return str(folder)


def _gpus(answer: Opened | OpenFailed | None) -> str:
    if answer is None:
        return "this machine (its GPU driver has not answered yet)"
    if isinstance(answer, OpenFailed) or not answer.devices:
        return "this machine without a GPU"
    names = Counter(str(device.description["name"] or UNNAMED) for device in answer.devices)
    models = ", ".join(name if count == 1 or len(names) == 1 else f"{count} x {name}" for name, count in names.items())
    return f"{len(answer.devices)} GPU{'s' if len(answer.devices) > 1 else ''} ({models})"

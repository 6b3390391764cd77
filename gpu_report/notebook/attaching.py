"""`gpu_report.attach(model)`: the callbacks of a recorded command, for a training that is started from a notebook."""

import os
import sys
import weakref
from pathlib import Path
from typing import Any

from gpu_report import run_folder
from gpu_report.errors import GpuReportError, InputError, UsageError
from gpu_report.inside import RUN_FOLDER_VARIABLE
from gpu_report.inside.on_path.gpu_report_inside import stacks
from gpu_report.inside.on_path.gpu_report_inside.callbacks import CALLBACKS, MODULE
from gpu_report.inside.on_path.gpu_report_inside.startup import unwrap, wrap
from gpu_report.notebook import children
from gpu_report.notebook.live_output import LiveOutput
from gpu_report.record import RecordOptions
from gpu_report.record.lifecycle import background

TRAIN = "train"  # the model's method

# The recording that this process was started under, before `attach` set the variable itself.
_started_under = os.environ.get(RUN_FOLDER_VARIABLE)
# The recorder that `attach` started in this very process; a rank of DDP that unpickles `end_recorder` has none.
_started: list[Path] = []
# The run folders that `attach` returned, in order: the last is the one that a notebook means.
attached: list[Path] = []


def attach(model: Any, run: str | os.PathLike[str] | None = None, *, live: bool = False) -> Path:
    """Add our callbacks to a YOLO model, and return the run folder that they write into.

    That is `run`, else the one that this process was started under, else that of the newest recorder running under
    ./gpu-runs. Where there is none, a recorder is started there, which ends with the model's training or this process.
    With `live`, `model.train` shows in its cell how the training goes. UsageError when `model` is none or `run` is no
    folder; GpuReportError when no recorder could be started.
    """
    if not hasattr(model, "callbacks") or not hasattr(model, "add_callback"):
        raise UsageError(f"attach takes a YOLO model, such as YOLO('yolo26n.pt'), not {type(model).__name__}")
    folder = _folder(run)
    os.environ[RUN_FOLDER_VARIABLE] = str(folder)
    if not is_attached(model):
        for event, function in CALLBACKS.items():
            model.add_callback(event, function)
        model.add_callback("teardown", end_recorder)
    _around_training(model, folder, LiveOutput(folder) if live else None)
    stacks.start()
    attached.append(folder)
    return folder


def is_attached(model: Any) -> bool:
    """Say whether the model has our callbacks, from an earlier call or by injection."""
    functions = (function for functions in model.callbacks.values() for function in functions)
    return any(str(getattr(function, "__module__", "")).endswith(MODULE) for function in functions)


def end_recorder(_trainer: object) -> None:
    """End the recorder that was started for this training; a callback, so it raises nothing."""
    while _started:
        folder = _started.pop()
        os.environ.pop(RUN_FOLDER_VARIABLE, None)
        try:
            background.stop(folder)
        except (GpuReportError, OSError) as error:
            print(f"gpu-report: {error}", file=sys.stderr)  # noqa: T201 - there is no command line here


def _around_training(model: Any, folder: Path, live: LiveOutput | None) -> None:
    """Have the next training of the model begin and end what belongs to it.

    Its callbacks do not suffice: with several GPUs none is called in this process.
    """
    the_model = weakref.ref(model)  # what stands on it must not keep it alive

    def begins() -> None:
        if not _started_under and os.environ.get(RUN_FOLDER_VARIABLE) == str(folder):
            children.reach(folder)
        if live is not None:
            live.begin()

    def is_over() -> None:
        unwrap(the_model(), TRAIN)
        if not _started_under:
            children.leave()
        end_recorder(None)
        if live is not None:
            live.end()

    unwrap(model, TRAIN)  # of an earlier call
    wrap(model, TRAIN, begins, is_over)


def _folder(run: str | os.PathLike[str] | None) -> Path:
    if run is not None:
        if not Path(run).is_dir():
            raise UsageError(f"{run} is no run folder: start `gpu-report record --output {run}` first, or leave it out")
        return Path(run).absolute()
    if _started_under:
        return Path(_started_under)
    earlier = os.environ.get(RUN_FOLDER_VARIABLE)  # what an earlier `attach` chose: its recorder may have ended since
    if earlier and background.recorder_pid(Path(earlier)) is not None:
        return Path(earlier)
    base = Path(run_folder.RUNS_DIR)
    try:
        return background.running(base).absolute()
    except InputError:
        return _start_recorder()


def _start_recorder() -> Path:
    folder = background.start(RecordOptions(), with_parent=os.getpid()).absolute()
    _started.append(folder)
    print(f"gpu-report: recording into {folder} until this training ends")  # noqa: T201 - there is no command line here
    return folder

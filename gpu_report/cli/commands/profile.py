"""`profile`: a running training is asked for a window of PyTorch's profiler."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpu_report import run_folder, schema
from gpu_report.cli.common import NamedPath
from gpu_report.cli.help_text import examples
from gpu_report.errors import InputError

if TYPE_CHECKING:
    from gpu_report.record.yolo.callback_folder import InsideWatch

WAIT_S = 120.0  # for the trace: its steps, the export, and packing
LOOK_EVERY_S = 0.5
REASON = "asked"


@click.command(epilog=examples("gpu-report profile", "gpu-report profile --steps 4 gpu-runs/20261121-103501"))
@click.option(
    "--steps",
    type=click.IntRange(1, schema.MOST_PROFILE_STEPS),
    default=schema.PROFILE_STEPS,
    help=f"How many steps. Default: {schema.PROFILE_STEPS}.",
)
@click.option("--full", is_flag=True, help="Also record shapes and the names of layers.")
@click.argument("run", type=NamedPath(), required=False)
def profile(run: Path | None, steps: int, full: bool) -> None:  # noqa: FBT001 - click passes flags so
    """Run PyTorch's profiler in a training that is being recorded.

    RUN is its run folder. Default: the newest one under ./gpu-runs that is being recorded. The trace is packed into
    its `profile` folder, and the next report has it.
    """
    from gpu_report.record.lifecycle import background
    from gpu_report.record.profile_plan import ask
    from gpu_report.record.yolo.callback_folder import InsideWatch

    folder = run if run is not None else background.running(Path(run_folder.RUNS_DIR))
    if background.recorder_pid(folder) is None:
        raise InputError(f"nobody is recording into {folder}: name the run folder of a training that goes on")
    reported = InsideWatch(folder)  # before it is asked
    ask(folder, steps, full=full, reason=REASON)
    click.echo(_new_trace(folder, reported))


def _new_trace(folder: Path, reported: InsideWatch) -> Path:
    """Wait for the trace; InputError where none comes."""
    from gpu_report.wording import PROFILER_FAILED

    until_s = time.monotonic() + WAIT_S
    while time.monotonic() < until_s:
        reported.new_trainings()
        for window in reported.profiled:
            trace = folder / schema.PROFILE_DIR / f"{window.get('name')}.json.gz"
            if window.get("reason") == REASON and (failed := window.get("failed")):
                raise InputError(f"there is no trace: {PROFILER_FAILED.get(str(failed), failed)}")
            if window.get("reason") == REASON and trace.exists():
                return trace
        time.sleep(LOOK_EVERY_S)
    raise InputError(
        f"no trace came within {WAIT_S:.0f} s: the training validates, has too few batches left, or has no callbacks"
    )

"""`profile`: a running training is asked for a window of PyTorch's profiler."""

from __future__ import annotations

import time
from pathlib import Path

import click

from gpu_report import run_folder, schema
from gpu_report.cli.help_text import examples
from gpu_report.errors import InputError
from gpu_report.record.profile_plan import MOST_STEPS, STEPS, ask

WAIT_S = 120.0  # for the trace: its steps, the export, and packing
LOOK_EVERY_S = 0.5


@click.command(epilog=examples("gpu-report profile", "gpu-report profile --steps 4 gpu-runs/20261121-103501"))
@click.option("--steps", type=click.IntRange(1, MOST_STEPS), default=STEPS, help=f"How many steps. Default: {STEPS}.")
@click.option("--full", is_flag=True, help="Also record shapes and the names of layers.")
@click.argument("run", type=click.Path(path_type=Path), required=False)
def profile(run: Path | None, steps: int, full: bool) -> None:  # noqa: FBT001 - click passes flags so
    """Run PyTorch's profiler in a training that is being recorded.

    RUN is its run folder. Default: the newest one under ./gpu-runs that is being recorded. The trace is packed into
    its `profile` folder, and the next report has it.
    """
    from gpu_report.record.lifecycle import background

    folder = run if run is not None else background.running(Path(run_folder.RUNS_DIR))
    if background.recorder_pid(folder) is None:
        raise InputError(f"nobody is recording into {folder}: name the run folder of a training that goes on")
    before = _traces(folder)
    ask(folder, steps, full=full, reason="asked")
    click.echo(_new_trace(folder, before))


def _traces(folder: Path) -> set[Path]:
    return set((folder / schema.PROFILE_DIR).glob("*.json.gz"))


def _new_trace(folder: Path, before: set[Path]) -> Path:
    """Wait for the trace; InputError where none comes."""
    until_s = time.monotonic() + WAIT_S
    while time.monotonic() < until_s:
        new = _traces(folder) - before
        if new:
            return new.pop()
        time.sleep(LOOK_EVERY_S)
    raise InputError(
        f"no trace came within {WAIT_S:.0f} s: the training validates, has too few batches left, or has no callbacks"
    )

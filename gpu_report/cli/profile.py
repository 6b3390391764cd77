"""`profile`: a running training is asked for a window of PyTorch's profiler."""

from __future__ import annotations

import json
import time
from pathlib import Path

import click

from gpu_report import run_folder, schema
from gpu_report.cli.help_text import examples
from gpu_report.errors import InputError

WAIT_S = 120.0  # for the trace: its steps, the export, and packing
LOOK_EVERY_S = 0.5
REASON = "asked"
MARK = b'"kind": "profile"'


@click.command(epilog=examples("gpu-report profile", "gpu-report profile --steps 4 gpu-runs/20261121-103501"))
@click.option(
    "--steps",
    type=click.IntRange(1, schema.MOST_PROFILE_STEPS),
    default=schema.PROFILE_STEPS,
    help=f"How many steps. Default: {schema.PROFILE_STEPS}.",
)
@click.option("--full", is_flag=True, help="Also record shapes and the names of layers.")
@click.argument("run", type=click.Path(path_type=Path), required=False)
def profile(run: Path | None, steps: int, full: bool) -> None:  # noqa: FBT001 - click passes flags so
    """Run PyTorch's profiler in a training that is being recorded.

    RUN is its run folder. Default: the newest one under ./gpu-runs that is being recorded. The trace is packed into
    its `profile` folder, and the next report has it.
    """
    from gpu_report.record.lifecycle import background
    from gpu_report.record.profile_plan import ask

    folder = run if run is not None else background.running(Path(run_folder.RUNS_DIR))
    if background.recorder_pid(folder) is None:
        raise InputError(f"nobody is recording into {folder}: name the run folder of a training that goes on")
    before = set(_windows(folder))
    ask(folder, steps, full=full, reason=REASON)
    click.echo(_new_trace(folder, before))


def _windows(folder: Path) -> dict[str, str]:
    """Return the windows that were asked for and are over: by their names, why they failed, or nothing."""
    found: dict[str, str] = {}
    for path in (folder / schema.INSIDE_DIR).glob("*.jsonl"):
        for line in path.read_bytes().splitlines():
            if MARK in line:
                found.update(_window(line))
    return found


def _window(line: bytes) -> dict[str, str]:
    try:
        said = json.loads(line)
        return {str(said["name"]): str(said.get("failed", ""))} if said["reason"] == REASON else {}
    except (ValueError, KeyError, TypeError):
        return {}  # half written, or garbled


def _new_trace(folder: Path, before: set[str]) -> Path:
    """Wait for the trace; InputError where none comes."""
    from gpu_report.wording import PROFILER_FAILED

    until_s = time.monotonic() + WAIT_S
    while time.monotonic() < until_s:
        for name, failed in _windows(folder).items():
            trace = folder / schema.PROFILE_DIR / f"{name}.json.gz"
            if name not in before and failed:
                raise InputError(f"there is no trace: {PROFILER_FAILED.get(failed, failed)}")
            if name not in before and trace.exists():
                return trace
        time.sleep(LOOK_EVERY_S)
    raise InputError(
        f"no trace came within {WAIT_S:.0f} s: the training validates, has too few batches left, or has no callbacks"
    )

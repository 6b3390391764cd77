"""`record`: a training, or what this machine does, into a run folder."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import click

from gpu_report.cli.common import FiniteRange, NamedPath, say
from gpu_report.cli.help_text import examples
from gpu_report.cli.live_page import LINGER_S, action_options, live_page
from gpu_report.cli.option_groups import as_one
from gpu_report.errors import UsageError

if TYPE_CHECKING:
    from gpu_report.record import RecordOptions


LIVE_HELP = (
    "Also serve a live page on 127.0.0.1, port 9000 or the next free one. "
    f"It ends {LINGER_S / 60:.0f} minutes after the recording."
)


def _recording(
    *, gpus: str, no_inject: bool, no_stacks: bool, profile: str | None, profile_at: str | None, **others: Any
) -> RecordOptions:
    """Return what is asked for, as `record` takes it; UsageError where it cannot be."""
    from gpu_report.record import RecordOptions
    from gpu_report.record.profile_plan import plan_of

    plan = plan_of(profile, profile_at)
    return RecordOptions(gpus=_chosen(gpus), inject=not no_inject, stacks=not no_stacks, profile=plan, **others)


options_of_recording = as_one(
    "options",
    _recording,
    (
        click.option(
            "--duration",
            "duration_s",
            type=FiniteRange(0, min_open=True),
            default=None,
            metavar="SECONDS",
            help="How long to record. Default: until the command ends, or Ctrl-C.",
        ),
        click.option(
            "--interval",
            "interval_s",
            type=FiniteRange(0.02, 3600),
            default=1.0,
            metavar="SECONDS",
            help="Time between two samples, 0.02 to 3600. Default: 1.",
        ),
        click.option(
            "--gpus", default="", metavar="LIST", help="Indices or UUIDs, separated by commas. Default: all GPUs."
        ),
        click.option(
            "--output",
            metavar="FOLDER",
            type=NamedPath(),
            default=None,
            help="The run folder. Default: gpu-runs/<UTC time>.",
        ),
        click.option(
            "--yolo",
            type=NamedPath(),
            default=None,
            metavar="FOLDER",
            help="Where YOLO writes its results.csv. Default: found automatically.",
        ),
        click.option(
            "--kernel-log",
            type=NamedPath(),
            default=None,
            metavar="FILE",
            help="A file with kernel messages, where the kernel log itself cannot be read.",
        ),
        click.option("--detail", is_flag=True, help="Also record power every 20 ms, if the driver has it."),
        click.option("--no-inject", is_flag=True, help="Do not add callbacks to YOLO. Phases are then estimated."),
        click.option("--no-stacks", is_flag=True, help="Do not record which line of code runs."),
        click.option(
            "--profile",
            is_flag=False,
            flag_value="8",
            default=None,
            metavar="STEPS",
            help="Run PyTorch's profiler for 8 steps of epoch 2. --profile=4 does so for 4 steps; "
            "--profile=full adds shapes and layer names.",
        ),
        click.option(
            "--profile-at",
            default=None,
            metavar="WHEN",
            help="When to profile: epoch:N, a time such as 30m, or drop (also when a GPU falls idle).",
        ),
    ),
)


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog=examples(
        "gpu-report record -- yolo detect train data=data.yaml model=yolo26n.pt",
        "gpu-report record -- python train.py",
        "gpu-report record --duration 3600        # no command: watch for an hour",
        "gpu-report record --background           # until `gpu-report stop`",
    ),
)
@options_of_recording
@click.option("--live", is_flag=True, help=LIVE_HELP)
@action_options
@click.option("--background", is_flag=True, help="Return at once and keep recording, even after logout.")
@click.option("--with-parent", type=int, default=None, hidden=True, help="End when this parent process does.")
@click.argument("command", metavar="[-- COMMAND ...]", nargs=-1, type=click.UNPROCESSED)
def record(  # noqa: PLR0913, PLR0917 - one parameter an option of the command line
    options: RecordOptions,
    live: bool,  # noqa: FBT001 - click passes flags so
    conditions: tuple[str, ...],
    commands: tuple[str, ...],
    background: bool,  # noqa: FBT001 - click passes flags so
    with_parent: int | None,
    command: tuple[str, ...],
) -> NoReturn:
    """Record a training, or a program that calls a model, into a run folder.

    COMMAND is started and recorded until it ends. Its exit code becomes that of `record`. Without a COMMAND, the GPUs
    of this machine are recorded until Ctrl-C.
    """
    from gpu_report.record import record_run

    if with_parent is not None:
        from gpu_report.notebook.parent_process import die_with

        die_with(with_parent)
    options = replace(options, command=command, is_attached=with_parent is not None)
    if options.profile is not None and not (options.inject and command):
        raise UsageError(
            "--profile needs a command after --, and its callbacks: `gpu-report profile` asks a running one"
        )
    _refuse_live(live=live, background=background, looks_on=bool(conditions or commands))
    if not command and "--" in sys.argv:
        raise UsageError("there is no command after --: leave -- out to record without a command")
    if background:
        sys.exit(_record_in_background(options))
    sys.exit(record_run(options, say=say, begun=live_page(conditions, commands) if live else None))


def _refuse_live(*, live: bool, background: bool, looks_on: bool) -> None:
    """Raise UsageError where what needs the live page is asked without it, or the page of what returns at once."""
    if looks_on and not live:
        raise UsageError("--on and --run need --live: what looks on runs the command")
    if live and background:
        raise UsageError("--live needs no --background: `gpu-report serve` shows a recording that runs already")


def _chosen(gpus: str) -> tuple[str, ...]:
    """Return the indices and UUIDs that are named; none stands for all. UsageError where commas are all there is."""
    chosen = tuple(filter(None, (part.strip() for part in gpus.split(","))))
    if gpus and not chosen:
        raise UsageError(f"--gpus {gpus} names no GPU")
    return chosen


def _record_in_background(options: RecordOptions) -> int:
    """Start the same recording detached, and print its folder."""
    from gpu_report.record.lifecycle import background

    if options.command:
        raise UsageError(
            "--background takes no command; to start one that outlives the shell: `nohup gpu-report record -- ...`"
        )
    click.echo(background.start(options))
    return 0

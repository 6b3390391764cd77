"""Which gates a command has: those of the command line, else of the project's file, else the defaults, by level."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpu_report.cli.common import NamedPath, say
from gpu_report.cli.gate_config import GateConfig, read_config
from gpu_report.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpu_report.cli.common import Command
    from gpu_report.model import Analysis, Gate


# Each command shows gates that it takes: a run alone has nothing that it could have changed from.
EXAMPLES = {
    True: "'epoch_time:+5%', 'util.mean:-10pp', 'xid.fatal:0'",
    False: "'util:60%', 'epoch_time:90s', 'xid.fatal:0'",
}


def options_of_gates(*, baseline: bool) -> Callable[[Command], Command]:
    """Return what adds the options that set gates, of a command with or without a baseline."""
    return partial(_with_options, EXAMPLES[baseline])


def _with_options(gates: str, command: Command) -> Command:
    for option in (
        click.option(
            "--config",
            type=NamedPath(dir_okay=False, exists=True),
            default=None,
            metavar="FILE",
            help="Read gates from here. Default: gpu-report.toml, or setup.cfg.",
        ),
        click.option("--warn-on", multiple=True, metavar="GATE", help="The same, but it only warns."),
        click.option(
            "--fail-on",
            multiple=True,
            metavar="GATE",
            help=f"A gate: {gates}. Repeatable.",
        ),
    ):
        command = option(command)
    return command


def gates_asked_for(
    fail_on: Sequence[str], warn_on: Sequence[str], config: Path | None, *, baseline: bool
) -> Callable[[Analysis], tuple[Gate, ...]]:
    """Return what gates a run has of both levels: those of the command line, else of the file, else the defaults.

    What is asked for is looked at before any run is read; which defaults there are depends on the run. For a run alone
    (`baseline` False) a gate on a change is wrong use on the command line (UsageError); one of the file, which serves
    `compare` as well, is left out, and that is said.
    """
    from gpu_report.analyse.compare.gate_syntax import chosen_gates, parse_gates

    named = parse_gates(fail_on, warn_on)
    if not baseline:
        _refuse_changes(named)
    kept = GateConfig() if fail_on and warn_on else read_config(config)
    of_file = parse_gates(() if fail_on else kept.fail_on, () if warn_on else kept.warn_on)
    usable = of_file if baseline else _alone(of_file, kept.path)
    fails = fail_on or [gate.text for gate in usable if gate.level == "fail"]
    warns = warn_on or [gate.text for gate in usable if gate.level == "warn"]
    return lambda run: chosen_gates(fails, warns, baseline=baseline, of_calls=run.is_inference)


def _refuse_changes(gates: Sequence[Gate]) -> None:
    """Refuse gates that no run alone can decide."""
    for gate in gates:
        if gate.needs_baseline:
            raise UsageError(f"gate {gate.text!r} needs a baseline, and `check` has none: use `gpu-report compare`")


def _alone(gates: Sequence[Gate], path: Path | None) -> tuple[Gate, ...]:
    """Return the gates of a file that a run alone can decide; the others are named."""
    left_out = [gate.text for gate in gates if gate.needs_baseline]
    if left_out:
        say(f"note: {path}: {', '.join(left_out)} left out, because `check` has no baseline")
    return tuple(gate for gate in gates if not gate.needs_baseline)

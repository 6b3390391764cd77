"""What ended a command that says nothing of it: its signal or exit code, and what happened beside it."""

import signal
from dataclasses import dataclass

from gpu_report.analyse.causes.confidence import CERTAIN, STRONG
from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.training_end.fatal_xid import fatal_xid
from gpu_report.analyse.rules.training_end.oom_kill import (
    KILLED,
    OomKill,
    host_memory,
    memory_was_full,
    oom_kill,
    was_ruled_out,
)
from gpu_report.analyse.rules.training_end.oom_owner import MemoryOwner, memory_advice, memory_evidence, memory_owner
from gpu_report.model import Advice, Cause, Evidence, NearbyKernelEvent, RecordedEvent, Severity
from gpu_report.wording import lower_first

SHELL_BASE = 128  # a shell exits with 128 + n when signal n ended its command
MEANINGS = {
    "SIGINT": "Ctrl-C was pressed",
    "SIGTERM": "somebody asked it to end",
    "SIGHUP": "its terminal was closed: `record --background`, nohup or tmux outlive that",
    "SIGSEGV": "it crashed: a library accessed memory that is not its own (segmentation fault)",
    "SIGBUS": "it crashed: mapped memory was not there (bus error), such as with a full /dev/shm",
    "SIGABRT": "it aborted: a library found a fault, and its output says which",
    "SIGFPE": "it crashed on an arithmetic error, such as an integer division by zero",
    "SIGILL": "it crashed on an instruction that this CPU does not have",
}
WHO_KILLED = "Find who killed it: kill -9, a scheduler at its limit, a container that was stopped"
WHO_ASKED = "Find who stopped it: kill, a scheduler at its time limit, a container that was stopped"
BY_HAND = "SIGINT"  # whoever pressed Ctrl-C knows it
STOPPED = "Stopped by Ctrl-C"
TIME_LIMIT = "`sacct -j JOB -o State` shows which; ask for more time (`--time`), or submit it again to resume"
ASK_MORE_TIME = "Ask for more time (`--time`), or submit it again to resume"
ASKED_TO_END = "SIGTERM"
FROM_OUTSIDE = frozenset({BY_HAND, ASKED_TO_END, "SIGHUP"})
BY_SLURM = "its Slurm job was cancelled, preempted or over its time limit"


@dataclass(frozen=True)
class CommandExit:
    """How a command ended: in a sentence without its full stop, why as far as is known, and with what beside it."""

    summary: str
    cause: Cause
    severity: Severity = "critical"
    evidence: tuple[Evidence, ...] = ()
    kernel: tuple[NearbyKernelEvent, ...] = ()
    advice: tuple[Advice, ...] = ()


def command_exit(context: Context, event: RecordedEvent, pids: frozenset[int]) -> CommandExit:
    """Return how a command ended; `pids` are those of its training, as far as they are known."""
    name, code = _signal(event), event.fields.get("exit_code")
    how = (
        f"{name} ended the command"
        if event.fields.get("signal") or _asked(event)
        else f"The command ended with exit code {code}"
    )
    oom = oom_kill(context, event.t_s, name, pids)
    if oom is not None:
        return _by_the_oom_killer(context, event, oom, how, memory_owner(context, oom, pids, ended_it=name == KILLED))
    xid = None if name in FROM_OUTSIDE else fatal_xid(context, pids, event.t_s)
    if xid is not None:
        what = "training" if context.trainings else "program"
        why = f"{lower_first(how)} right after the driver reported {lower_first(xid.what)}"
        cause = Cause("run-ended", STRONG, why)
        return CommandExit(f"{xid.what} ended the {what}", cause, kernel=xid.kernel, advice=xid.advice)
    if name == KILLED:
        return _without_a_sign(context, event, how)
    if name == BY_HAND:
        return CommandExit(STOPPED, Cause("run-ended", CERTAIN, MEANINGS[name]), "info")
    if name == ASKED_TO_END and context.run.recording.slurm_job_id:
        how = f"{how}: {BY_SLURM}"
        return CommandExit(
            how,
            Cause("run-ended", CERTAIN, lower_first(how)),
            "critical",
            advice=(Advice(TIME_LIMIT, short=ASK_MORE_TIME),),
        )
    why = lower_first(how) + (f": {MEANINGS[name]}" if name in MEANINGS else "")
    advice = (Advice(WHO_ASKED, short=WHO_ASKED),) if name == ASKED_TO_END else ()
    return CommandExit(how, Cause("run-ended", CERTAIN, why), advice=advice)


def is_by_hand(event: RecordedEvent) -> bool:
    """Tell whether Ctrl-C ended a command."""
    return _signal(event) == BY_HAND


def is_from_outside(event: RecordedEvent) -> bool:
    """Tell whether something else ended a command, whatever that did just then."""
    return _signal(event) in FROM_OUTSIDE


def is_crash(event: RecordedEvent) -> bool:
    """Tell whether a fault of the program's own, in C code, ended a command."""
    return _signal(event) in MEANINGS.keys() - FROM_OUTSIDE


def _by_the_oom_killer(
    context: Context, event: RecordedEvent, oom: OomKill, how: str, owner: MemoryOwner
) -> CommandExit:
    return CommandExit(
        summary=f"The kernel's OOM killer ended the training: {oom.ran_out}",
        cause=Cause("run-ended", oom.confidence, f"{lower_first(how)}: {oom.why}{owner.words}", "memory-pressure"),
        evidence=memory_evidence(context, oom, event.t_s),
        kernel=oom.kernel,
        advice=memory_advice(context, event.t_s, oom, owner),
    )


def _without_a_sign(context: Context, event: RecordedEvent, how: str) -> CommandExit:
    """Return a kill that nothing recorded accounts for: what it can have been, and what it was not."""
    memory, log = host_memory(context, event.t_s), context.run.kernel
    if was_ruled_out(context):
        why = "not the kernel's OOM killer: somebody or something sent the signal (kill -9, a scheduler, a container)"
        cause = Cause("run-ended", CERTAIN, f"{lower_first(how)}, and it was {why}")
        text = f"{how}: a user or a program sent it, not the kernel's OOM killer"
        return CommandExit(text, cause, "critical", memory, (), (Advice(WHO_KILLED, short=WHO_KILLED),))
    advice = (Advice(log.advice),) if log.advice else ()
    full = memory_was_full(context, event.t_s)
    why = "unknown who sent it: the kernel log, which names what the OOM killer ended, was not read"
    if full:
        why = "host memory was full, so that the kernel's OOM killer is likely; its log was not read"
    cause = Cause("run-ended", CERTAIN, f"{lower_first(how)}: {why}", "memory-pressure" if full else None)
    return CommandExit(how, cause, "critical", memory, (), advice)


def _signal(event: RecordedEvent) -> str | None:
    """Return the signal that ended a command, one that a shell says ended what it ran, or one that asked it to end."""
    name, code = event.fields.get("signal"), event.fields.get("exit_code")
    if isinstance(name, str) and name:
        return name
    if not isinstance(code, int) or isinstance(code, bool) or code <= SHELL_BASE:
        return _asked(event)
    try:
        return signal.Signals(code - SHELL_BASE).name
    except ValueError:
        return _asked(event)


def _asked(event: RecordedEvent) -> str | None:
    """Return the signal that asked a command to end shortly before it failed: torchrun makes exit code 1 of it."""
    name, before_s = event.fields.get("asked"), event.fields.get("asked_before_s")
    recent = isinstance(before_s, (int, float)) and before_s <= th.ENDS_WHEN_ASKED_S
    return name if isinstance(name, str) and name and recent else None

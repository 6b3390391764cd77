"""Rule: how the training ended, where that was no good end."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpu_report.analyse.causes.confidence import CERTAIN
from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.training_end.exception_words import (
    exception_advice,
    exception_cause,
    exception_summary,
)
from gpu_report.analyse.rules.training_end.exit_signal import (
    STOPPED,
    command_exit,
    is_by_hand,
    is_crash,
    is_from_outside,
)
from gpu_report.analyse.rules.training_end.fatal_xid import FatalXid, fatal_xid
from gpu_report.analyse.rules.training_end.final_gpu_memory import held_at_the_end, memory_just_before
from gpu_report.analyse.rules.training_end.full_gpu_memory import full_gpu_at_exit, full_just_before
from gpu_report.analyse.rules.training_end.hang import Hang, find_endless_wait, find_hang
from gpu_report.analyse.rules.training_end.last_stacks import with_last_stacks
from gpu_report.analyse.rules.training_end.log_after_training import log_after_training
from gpu_report.analyse.rules.training_end.memory_allowance import memory_allowance
from gpu_report.analyse.rules.training_end.oom_kill import KILLED, OomKill, host_memory, memory_was_full, oom_kill
from gpu_report.analyse.rules.training_end.oom_owner import (
    MemoryOwner,
    kept_advice,
    memory_advice,
    memory_evidence,
    memory_owner,
    risen_mib,
)
from gpu_report.analyse.rules.training_end.place_raised import with_place_raised
from gpu_report.analyse.signals.gpu.gpu_losses import losses
from gpu_report.analyse.timeline.exception_kinds import exception_kind
from gpu_report.analyse.timeline.ranks import RankGroup, end_of
from gpu_report.analyse.timeline.thresholds import ENDED_TOGETHER_S
from gpu_report.analyse.timeline.trainings import whole
from gpu_report.gpu_words import gpu_words
from gpu_report.model import Cause, Finding, InsideRun, RecordedEvent, Severity
from gpu_report.wording import length

COMMAND_ENDED = "command-ended"  # rule and cause of a command that failed when its work was done
AFTER_TRAINING, WENT_ON = ", after its training had finished", "; its training continued without it, and finished"
IN_EXIT = " as it exited, after its last call"
RECORDED = "gpu-report record"  # run.json's `source`; an imported log has no end marker either
WORKER_DIED = "RuntimeError"


def bad_endings(context: Context) -> list[Finding]:
    """Report what came to no good end: trainings that crashed, hung or went without a word, else a failing command.

    A command that fails because its training crashed is not reported beside it, and one training once only.
    """
    reported = context.rank_groups
    ended = context.run.command_ends
    bad = [event for event in ended if event.fields.get("signal") or event.fields.get("exit_code")]
    found = [
        _reported_crash(context, training, culprit)
        for training in reported
        if (culprit := training.crashed) is not None
    ]
    if not found:
        found = [_command(context, event, reported) for event in bad]
    found += [last for training in reported if (last := _unended(context, training, found)) is not None]
    return found or _broken_off(context) or full_gpu_at_exit(context) or log_after_training(context)


def _reported_crash(context: Context, training: RankGroup, culprit: InsideRun) -> Finding:
    """Return the finding of a training that an exception ended, in the process that it ended first."""
    if training.is_interrupted:
        return _interrupted(context, training, culprit)
    found = _crash(context, culprit)
    where = f" on rank {culprit.rank} ({_process_of(context, culprit)})" if len(training.ranks) > 1 else ""
    before = find_hang(context, training, found.end_t_s)
    first = "" if before is None else f"{before.how} {before.where} for {length(before.seconds)}, then "
    found = replace(
        found,
        summary=f"The training {first}{exception_summary(culprit)}{found.summary}{where}",
        names_epoch=before is not None and before.names_epoch,
        epoch=training.epoch,
        phase=training.phase.name,
        evidence=(*found.evidence, *(before.evidence if before else ())),
    )
    if before is not None:  # what it hung in, not what a timeout raised
        found = with_last_stacks(context, found, training.pids, before.start_t_s)
    elif xid := _failed_gpu(context, training, culprit, found.end_t_s):
        found = replace(
            found, summary=f"{xid.what} ended the training{where}", kernel_events=xid.kernel, advice=xid.advice
        )
    elif culprit.raised:
        found = with_place_raised(found, culprit.raised.frames, culprit.rank if len(training.ranks) > 1 else None)
    # a loader's worker that is killed becomes a RuntimeError of the trainer
    oom = oom_kill(context, found.end_t_s, KILLED if culprit.error == WORKER_DIED else None, training.pids)
    if oom is None or exception_kind(culprit) == "gpu memory":
        return found
    return _with_oom(context, found, oom, memory_owner(context, oom, training.pids, ended_it=False))


def _failed_gpu(context: Context, training: RankGroup, culprit: InsideRun, end_s: float) -> FatalXid | None:
    """Return the fault of a GPU for which a call of CUDA raised; None where the program itself was at fault."""
    xid = fatal_xid(context, training.pids, end_s) if exception_kind(culprit) == "cuda" else None
    return None if xid is None or xid.is_of_program else xid


def _with_oom(context: Context, found: Finding, oom: OomKill, owner: MemoryOwner) -> Finding:
    """Return a finding with a kill for want of memory just before it."""
    return replace(
        found,
        summary=f"{found.summary}; the kernel had just killed a process to free host memory",
        evidence=(*found.evidence, *memory_evidence(context, oom, found.end_t_s)),
        cause=Cause("run-ended", oom.confidence, oom.why, "memory-pressure"),
        kernel_events=oom.kernel,
        advice=memory_advice(context, found.end_t_s, oom, owner),
    )


def _crash(context: Context, run: InsideRun) -> Finding:
    """Return the finding of a training that an exception ended, of whose summary only the end is made."""
    end_s = run.phases[-1].end_t_s if run.phases else context.run.duration_s
    ended = _finding(context, end_s, "", exception_cause(run))
    advice = exception_advice(run, _args(context, end_s), gpu_failed=_gpu_failed(context, end_s))
    if exception_kind(run) == "gpu memory":
        return _without_gpu_memory(context, run, replace(ended, advice=advice))
    rise_mib = risen_mib(context, end_s) if run.raised.loader_worker == KILLED else None
    advice = advice if rise_mib is None else (kept_advice(rise_mib),)
    return replace(ended, advice=advice)


def _without_gpu_memory(context: Context, run: InsideRun, ended: Finding) -> Finding:
    """Return the finding of a training that ran out of GPU memory with whose it was, and what the process may have."""
    held, allowed = held_at_the_end(context, ended.end_t_s), memory_allowance(context, run, ended.end_t_s)
    if allowed is None:
        return replace(ended, evidence=(*ended.evidence, *held))
    return replace(
        ended,
        summary=allowed.words,
        evidence=(*ended.evidence, *held, *allowed.evidence),
        advice=(*ended.advice, *allowed.advice),
    )


def _gpu_failed(context: Context, end_s: float) -> bool:
    """Tell whether the kernel said just before a crash that a GPU needs a reset or worse, or the driver lost one."""
    told = [each.t_s for each in context.run.kernel.events if each.gpu is not None and each.severity == "critical"]
    lost = [loss.span[0] for loss in losses(context.run)]
    return any(end_s - th.GPU_FAILED_BEFORE_S <= t_s <= end_s + th.BEFORE_THE_END_S for t_s in (*told, *lost))


def _args(context: Context, t_s: float) -> Mapping[str, object]:
    training = context.training_at(t_s)
    return training.args if training else {}


def _interrupted(context: Context, training: RankGroup, culprit: InsideRun) -> Finding:
    """Return the note of a training that somebody stopped, who knows it; a warning where it had hung before."""
    end_s = end_of(culprit)
    before = find_hang(context, training, end_s) or find_endless_wait(context, training, end_s)
    found = _finding(context, end_s, _stopped(training, before), "Ctrl-C was pressed")
    if before is not None and not before.doing:
        found = with_last_stacks(context, found, training.pids, before.start_t_s)
    return replace(
        found,
        severity="warning" if before else "info",
        names_epoch=True,
        epoch=training.epoch,
        phase=training.phase.name,
        evidence=(*found.evidence, *(before.evidence if before else ())),
    )


def _command(context: Context, event: RecordedEvent, reported: Sequence[RankGroup]) -> Finding:
    """Return the finding of a command that failed, with the training that it ended, where one was going on."""
    going = [t for t in reported if not t.is_good and t.end_t_s >= event.t_s - ENDED_TOGETHER_S]
    how = command_exit(context, event, _pids(context, going))
    before = find_hang(context, going[-1], event.t_s) if going else None
    full = "" if reported else full_just_before(context, event)
    by_hand = bool(going) and is_by_hand(event)
    summary = _stopped(going[-1], before) if by_hand else f"{how.summary}{full}{_after(before)}"
    found = replace(
        _finding(context, event.t_s, summary, how.cause.explanation),
        names_epoch=by_hand or (before is not None and before.names_epoch),
        severity="warning" if by_hand and before else how.severity,
        evidence=(*memory_just_before(context, event.t_s), *how.evidence, *(before.evidence if before else ())),
        cause=how.cause,
        kernel_events=how.kernel,
        advice=how.advice,
    )
    if going:
        if before is not None or not is_from_outside(event):
            found = with_last_stacks(context, found, _pids(context, going), before.start_t_s if before else None)
        return replace(found, epoch=going[-1].epoch, phase=going[-1].phase.name)
    if reported and all(training.is_good for training in reported):
        went_on = any(t.end_t_s > event.t_s + ENDED_TOGETHER_S for t in reported)
        after = AFTER_TRAINING if len(reported) == 1 else f", after {len(reported)} trainings had finished"
        return _of_no_work(found, WENT_ON if went_on else after)
    if not reported and _crashed_in_exit(context, event):
        return _of_no_work(found, IN_EXIT)
    was_killed = not reported and event.fields.get("signal") and not is_from_outside(event)
    return with_last_stacks(context, found, frozenset()) if was_killed else found


def _of_no_work(found: Finding, beside: str) -> Finding:
    """Return the finding of a command that failed, of which nothing ended: it was over, or its ranks went on."""
    cause = found.cause and replace(found.cause, name=COMMAND_ENDED)
    severity: Severity = "info" if found.severity == "info" else "warning"
    return replace(found, rule=COMMAND_ENDED, severity=severity, summary=f"{found.summary}{beside}", cause=cause)


def _crashed_in_exit(context: Context, event: RecordedEvent) -> bool:
    """Tell whether a crash of a library ended a program that called models when Python was exiting already.

    Only then do its processes report their end. What an exception ends exits with a code of its own.
    """
    served = [run for run in context.run.inside if run.task == "predict"]
    return bool(served) and is_crash(event) and all(run.ended == "finished" for run in served)


def _unended(context: Context, training: RankGroup, found: Sequence[Finding]) -> Finding | None:
    """Return the finding of a training that ended without a word, or still hung when the recording did."""
    end_s = training.end_t_s
    if training.main.ended is not None or any(abs(f.end_t_s - end_s) <= ENDED_TOGETHER_S for f in found):
        return None
    last = _went(context, training) or _left_hanging(context, training)
    if last is not None and last.cause and not last.cause.runner_up and _ended_well(context, end_s):
        return None  # its last line was lost, and nothing else speaks against a good end
    return last and replace(last, epoch=training.epoch, phase=training.phase.name)


def _ended_well(context: Context, end_s: float) -> bool:
    """Tell whether a command ended well right after a training did."""
    ends = context.run.command_ends
    return any(e.fields.get("exit_code") == 0 and 0 <= e.t_s - end_s <= ENDED_TOGETHER_S for e in ends)


def _went(context: Context, training: RankGroup) -> Finding | None:
    """Return the finding of a training whose process was seen to leave the GPU, and reported no end."""
    table, end_s = context.run.processes, training.end_t_s
    rows = table[(table["pid"] == training.main.pid) & (table["change"] == "gone")]
    if not (rows["t_s"] >= training.last_message_t_s).any():
        return None
    why = "its process left the GPU and reported no end: it was killed, or crashed outside Python"
    found = _finding(context, end_s, "The training's process disappeared", why)
    found = with_last_stacks(context, found, training.pids)
    oom = oom_kill(context, end_s, KILLED, training.pids)
    if oom is None:
        return found
    return _with_oom(context, found, oom, memory_owner(context, oom, training.pids, ended_it=True))


def _left_hanging(context: Context, training: RankGroup) -> Finding | None:
    """Return the finding of a training that reported nothing any more when the recording ended."""
    end_s = training.end_t_s
    hung = find_hang(context, training, end_s)
    if hung is None:
        return None
    what = f"The training {hung.how} {hung.where}: it reported nothing for its last {length(hung.seconds)}"
    found = _finding(context, end_s, what, "it hung, and the recording ended before it did")
    evidence = (*found.evidence, *hung.evidence)
    found = replace(found, names_epoch=hung.names_epoch, evidence=evidence)
    return replace(with_last_stacks(context, found, training.pids, hung.start_t_s), start_t_s=hung.start_t_s)


def _broken_off(context: Context) -> list[Finding]:
    """Return the finding of a recording that nobody ended, while host memory was full: it may have been killed, too."""
    run, end_s = context.run, context.run.duration_s
    killed = run.recording.ended_by is None and run.recording.source == RECORDED
    if not killed or not memory_was_full(context, end_s):
        return []
    what = "The recording stopped while host memory was full"
    found = _finding(context, end_s, what, "the kernel's OOM killer may have ended the recorder with the training")
    advice = memory_advice(context, end_s, None, MemoryOwner())
    return [replace(found, evidence=(*found.evidence, *host_memory(context, end_s)), advice=advice)]


def _stopped(training: RankGroup, before: Hang | None) -> str:
    """Return that somebody stopped a training, and how far it had come."""
    if before is not None:
        return f"The training {before.how} {before.where} for {length(before.seconds)}{before.doing}, until Ctrl-C"
    if training.epoch is None:
        return f"{STOPPED} before its first epoch"
    if training.phase.name == "final evaluation":
        return f"{STOPPED} in the final evaluation, after all of its epochs"
    asked = whole(training.main.settings.get("epochs"))
    return f"{STOPPED} in epoch {training.epoch}{f' of {asked}' if asked else ''}"


def _after(before: Hang | None) -> str:
    if before is None:
        return ""
    how = "been paused by a signal" if before.stopped else "hung"
    return f", after it had {how} {before.where} for {length(before.seconds)}"


def _process_of(context: Context, process: InsideRun) -> str:
    """Return what a rank is, with its GPU where that is known."""
    gpu = context.run.gpu_of_uuid(process.settings.get("gpu_uuid"))
    return f"training process of {'one GPU' if gpu is None else gpu_words(gpu)}"


def _pids(context: Context, going: Sequence[RankGroup]) -> frozenset[int]:
    """Return the pids of trainings, and of the commands that were started."""
    started = (event.fields.get("pid") for event in context.run.events if event.kind == "command_started")
    ranks = (pid for training in going for pid in training.pids)
    return frozenset([*ranks, *(pid for pid in started if isinstance(pid, int))])


def _finding(context: Context, end_s: float, summary: str, why: str) -> Finding:
    epoch, phase = context.epoch_at(end_s), context.phase_at(end_s - th.BEFORE_THE_END_S)
    return context.finding(
        "run-ended",
        "critical",
        (end_s, end_s),
        summary,
        epoch=epoch.epoch if epoch else phase.epoch if phase else None,
        phase=phase.name if phase else None,
        evidence=memory_just_before(context, end_s),
        cause=Cause("run-ended", CERTAIN, why),
    )

"""Rule: how the training ended, where that was no good end."""

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.context import Context
from gpu_report.model import Cause, Evidence, Finding, InsideRun, RecordedEvent

OUT_OF_MEMORY = "OutOfMemoryError"


def bad_endings(context: Context) -> list[Finding]:
    """Report a training that an exception, a signal or a failing command ended; at most one finding for each."""
    crashed = [run for run in context.run.inside if run.rank == 0 and run.ended == "exception"]
    found = [_crash(context, number, run) for number, run in enumerate(crashed, 1)]
    ended = [event for event in context.run.events if event.kind == "command_ended"]
    bad = [event for event in ended if event.fields.get("signal") or event.fields.get("exit_code")]
    return found or [_command(context, number, event) for number, event in enumerate(bad, 1)]


def _crash(context: Context, number: int, run: InsideRun) -> Finding:
    end_s = run.phases[-1].end_t_s if run.phases else context.run.duration_s
    if run.error == OUT_OF_MEMORY:
        return _finding(context, number, end_s, "The training ended: CUDA was out of memory", "CUDA was out of memory")
    what = f" ({run.error})" if run.error else ""
    return _finding(
        context, number, end_s, f"The training ended with an exception{what}", f"an exception{what} ended it"
    )


def _command(context: Context, number: int, event: RecordedEvent) -> Finding:
    signal, code = event.fields.get("signal"), event.fields.get("exit_code")
    how = f"{signal} ended the command" if signal else f"the command ended with exit code {code}"
    return _finding(context, number, event.t_s, f"{how[:1].upper()}{how[1:]}", how)


def _finding(context: Context, number: int, end_s: float, summary: str, why: str) -> Finding:
    epoch, phase = context.epoch_at(end_s), context.phase_at(end_s - th.BEFORE_THE_END_S)
    return Finding(
        id=f"ended-{number}",
        rule="run-ended",
        severity="critical",
        gpu=None,
        start_t_s=max(end_s - th.BEFORE_THE_END_S, 0.0),
        end_t_s=end_s,
        summary=summary,
        epoch=epoch.epoch if epoch else phase.epoch if phase else None,
        phase=phase.name if phase else None,
        evidence=_memory(context, end_s),
        cause=Cause("run-ended", 0.95, why),
    )


def _memory(context: Context, end_s: float) -> tuple[Evidence, ...]:
    """Return how full each used GPU was shortly before the end."""
    sizes = {gpu.index: gpu.memory_total_mib for gpu in context.run.gpus}
    found = []
    for track in context.tracks:
        before = track.rows[track.rows["t_s"].between(end_s - th.BEFORE_THE_END_S, end_s)]["memory_used_mib"].dropna()
        total = sizes.get(track.gpu)
        if track.gpu in context.activity.used_gpus and total and len(before):
            share = 100 * float(before.max()) / total
            found.append(Evidence(f"memory of GPU {track.gpu} in use just before", share, "%"))
    return tuple(found)

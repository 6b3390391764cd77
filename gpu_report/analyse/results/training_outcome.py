"""How the last training of a run ended, whether well or not: when, how far it had come, and its last minute."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules.thresholds import LAST_MINUTE_S
from gpu_report.analyse.rules.training_end.exit_signal import is_by_hand
from gpu_report.analyse.rules.training_end.oom_kill import host_memory
from gpu_report.analyse.timeline.phases import finished
from gpu_report.analyse.timeline.ranks import RankGroup
from gpu_report.analyse.timeline.thresholds import ENDED_TOGETHER_S
from gpu_report.analyse.timeline.trainings import whole
from gpu_report.analyse.timeseries.columns import column_values
from gpu_report.gpu_words import gpu_words
from gpu_report.model import Ending, EndingName, EpochRow, Evidence, Finding


def training_outcome(context: Context, findings: Sequence[Finding]) -> Ending | None:
    """Return how the last training ended, None where none was seen; `findings` hold the bad ends."""
    bad = [finding for finding in findings if finding.rule == "run-ended"]
    groups, rows = context.rank_groups, context.run.epoch_rows
    if groups:
        return _reported(context, groups[-1], bad)
    if rows:
        return _seen(context, [row for row in rows if row.run == rows[-1].run], bad)
    worst = max(bad, key=lambda finding: finding.end_t_s, default=None)
    return None if worst is None else _failed(context, Ending("failed", worst.end_t_s, names_epoch=True), worst)


def _reported(context: Context, training: RankGroup, bad: Sequence[Finding]) -> Ending:
    """Return the ending of a training that callbacks reported."""
    settings, end_s = training.main.settings, training.end_t_s
    ended = [finding for finding in bad if finding.end_t_s >= end_s - ENDED_TOGETHER_S]
    epochs = whole(settings.get("epochs")) or None
    reached = Ending("unknown", end_s, training.epoch, epochs, last_minute(context, end_s))
    if training.main.ended == "finished":
        return replace(reached, name="finished")
    if training.main.ended == "early stop":
        return replace(reached, name="early stop", patience=_patience(settings, training.epoch))
    if ended:
        return _with_exception(_failed(context, reached, ended[0]), training)
    if context.run.command_ends:
        return reached
    return replace(reached, name="going on", still_recorded=context.run.recording.goes_on)


def _seen(context: Context, rows: Sequence[EpochRow], bad: Sequence[Finding]) -> Ending:
    """Return the ending of a training by its results.csv, which knows of whole epochs only."""
    last = rows[-1]
    args = next((yolo.args for yolo in context.run.yolo_runs if yolo.number == last.run), {})
    epochs = whole(args.get("epochs")) or None
    ended = [finding for finding in bad if finding.end_t_s >= last.row_t_s]
    minute = last_minute(context, last.row_t_s)
    reached = Ending("unknown", last.row_t_s, last.epoch, epochs, minute, whole_epochs=True)
    if finished(args, rows):
        by_plan = last.epoch == epochs or args.get("time")
        early = replace(reached, name="early stop", patience=_patience(args, last.epoch))
        return replace(reached, name="finished") if by_plan else early
    return _failed(context, reached, ended[0]) if ended else reached


def _with_exception(ending: Ending, training: RankGroup) -> Ending:
    """Return an ending with the type and the words of the exception that it came of."""
    culprit = training.crashed
    if culprit is None:
        return ending
    name: EndingName = "interrupted" if training.is_interrupted else ending.name
    return replace(ending, name=name, type=culprit.error, message=culprit.raised.message or None)


def _failed(context: Context, reached: Ending, ended: Finding) -> Ending:
    """Return an ending as that of a finding."""
    return replace(
        reached,
        name="interrupted" if _is_by_hand(context, ended) else "failed",
        t_s=ended.end_t_s,
        failure=ended.summary,
        names_epoch=reached.names_epoch or (ended.names_epoch and not reached.whole_epochs),
        last_minute=last_minute(context, ended.end_t_s),
    )


def _is_by_hand(context: Context, ended: Finding) -> bool:
    """Tell whether Ctrl-C ended the command at a finding's time."""
    return any(e.t_s == ended.end_t_s and is_by_hand(e) for e in context.run.command_ends)


def last_minute(context: Context, end_s: float) -> tuple[Evidence, ...]:
    """Return what the used GPUs and the host's memory were like in the minute before an end.

    Of a training that was shorter, or began later, it is that training's time: what came before may have filled a GPU.
    """
    training = context.training_at(end_s)
    start_s = max(end_s - LAST_MINUTE_S, training.span[0] if training else 0.0, 0.0)
    numbers: list[tuple[str, float | None, str]] = []
    for series in context.used_series:
        used, total = (
            column_values(series.samples, "memory_used_mib", [(start_s, end_s)]),
            context.run.gpu(series.gpu).memory_total_mib,
        )
        mean = series.mean_util_pct(start_s, end_s)
        numbers.append((f"{gpu_words(series.gpu)} busy", mean if np.isfinite(mean) else None, "%"))
        share = 100 * float(used.max()) / total if total and len(used) else None
        numbers.append(("memory of that GPU in use, at most", share, "%"))
    return (*evidence(*numbers), *host_memory(context, end_s, when=""))


def _patience(settings: Mapping[str, object], epoch: int | None) -> int | None:
    """Return for how many epochs none was better, where an early stop came of that."""
    patience = whole(settings.get("patience")) or None
    return patience if patience is not None and epoch is not None and patience < epoch else None

"""How the last training of a run ended, whether well or not: when, how far it had come, and its last minute."""

from collections.abc import Mapping, Sequence

import numpy as np

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.context import Context
from gpu_report.analyse.rules.training_end.oom_kill import host_memory
from gpu_report.analyse.signals.interval_signals import evidence
from gpu_report.analyse.timeline.phases import finished
from gpu_report.analyse.timeline.ranks import RankGroup
from gpu_report.analyse.timeseries.columns import column_values
from gpu_report.model import Ending, EndingName, EpochRow, Evidence, Finding


def training_outcome(context: Context, findings: Sequence[Finding]) -> Ending | None:
    """Return how the last training ended, None where none was seen; `findings` hold the bad ends."""
    bad = [finding for finding in findings if finding.rule == "run-ended"]
    told = context.rank_groups
    if told:
        return _mention(context, told[-1], bad)
    rows = context.run.epoch_rows
    if rows:
        return _seen(context, [row for row in rows if row.run == rows[-1].run], bad)
    worst = max(bad, key=lambda finding: finding.end_t_s, default=None)
    return None if worst is None else _ending(context, "failed", worst.summary, worst.end_t_s, (None, None))


def _mention(context: Context, training: RankGroup, bad: Sequence[Finding]) -> Ending:
    """Return the ending of a training that callbacks told of."""
    settings, end_s = training.main.settings, training.end_t_s
    reached = training.epoch, _whole(settings.get("epochs"))
    ended = [finding for finding in bad if finding.end_t_s >= end_s - th.TOGETHER_S]
    if training.main.ended == "finished":
        return _ending(context, "finished", _finished(*reached), end_s, reached)
    if training.main.ended == "early stop":
        return _ending(context, "early stop", _early(settings, *reached), end_s, reached)
    if ended:
        said = f"epoch {training.epoch}" in ended[0].summary
        text = ended[0].summary + ("" if said else _in(*reached))
        return _ending(context, "failed", text, ended[0].end_t_s, reached)
    if any(event.kind == "command_ended" for event in context.run.events):
        return _ending(context, "unknown", f"Nothing says how it ended{_in(*reached)}", end_s, reached)
    return _ending(context, "going on", f"It was going on when the recording ended{_in(*reached)}", end_s, reached)


def _seen(context: Context, rows: Sequence[EpochRow], bad: Sequence[Finding]) -> Ending:
    """Return the ending of a training by its results.csv, which tells of whole epochs only."""
    last = rows[-1]
    args = next((yolo.args for yolo in context.run.yolo_runs if yolo.number == last.run), {})
    reached = last.epoch, _whole(args.get("epochs"))
    ended = [finding for finding in bad if finding.end_t_s >= last.row_t_s]
    if finished(args, rows):
        name: EndingName = "finished" if last.epoch == reached[1] or args.get("time") else "early stop"
        text = _finished(*reached) if name == "finished" else _early(args, *reached)
        return _ending(context, name, text, last.row_t_s, reached)
    if ended:
        return _ending(context, "failed", f"{ended[0].summary}{_in(*reached, after=True)}", ended[0].end_t_s, reached)
    text = f"Nothing says how it ended{_in(*reached, after=True)}"
    return _ending(context, "unknown", text, last.row_t_s, reached)


def _ending(
    context: Context, name: EndingName, text: str, end_s: float, reached: tuple[int | None, int | None]
) -> Ending:
    return Ending(name, text, end_s, *reached, last_minute(context, end_s))


def last_minute(context: Context, end_s: float) -> tuple[Evidence, ...]:
    """Return what the used GPUs and the host's memory were like in the minute before an end."""
    sizes = {gpu.index: gpu.memory_total_mib for gpu in context.run.gpus}
    start_s = max(end_s - th.LAST_MINUTE_S, 0.0)
    numbers: list[tuple[str, float | None, str]] = []
    for series in context.used_series:
        used, total = column_values(series.samples, "memory_used_mib", [(start_s, end_s)]), sizes.get(series.gpu)
        mean = series.mean_util_pct(start_s, end_s)
        numbers.append((f"GPU {series.gpu} busy", mean if np.isfinite(mean) else None, "%"))
        share = 100 * float(used.max()) / total if total and len(used) else None
        numbers.append(("its memory in use, at most", share, "%"))
    return (*evidence(*numbers), *host_memory(context, end_s, when=""))


def _finished(epoch: int | None, epochs: int | None) -> str:
    if epoch is None or epoch == epochs:
        return "It finished" + (f" all {epochs} epochs" if epochs else "")
    return f"It finished: its time was up after epoch {epoch}"


def _early(settings: Mapping[str, object], epoch: int | None, epochs: int | None) -> str:
    patience = _whole(settings.get("patience"))
    waited = patience is not None and epoch is not None and patience < epoch
    why = f": none was better for {patience} epochs (patience)" if waited else ""
    of = f" of {epochs}" if epochs else ""
    return f"It stopped early after epoch {epoch}{of}{why}"


def _in(epoch: int | None, epochs: int | None, *, after: bool = False) -> str:
    if epoch is None:
        return ", before its first epoch"
    of = f" of {epochs}" if epochs else ""
    return f", {'after' if after else 'in'} epoch {epoch}{of}"


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

"""The rows of one run: what its analysis says, in the columns of tables.py."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping

from gpu_report.fleet.cells import Rows, last_part, row
from gpu_report.fleet.unused_time import UnusedTime, held_gpus, unused_time
from gpu_report.inside.on_path.gpu_report_inside.secrets.hide import hide_in_command
from gpu_report.model import Analysis, EpochSummary, Finding, GpuSummary, LedgerRow, Stats

WORK, IDLE, UNMEASURED = "work", "idle", "unmeasured"  # rows of the ledger

Values = Mapping[str, object]


def run_rows(run: str, path: str, analysis: Analysis) -> dict[str, Rows]:
    """Return the rows of a run by table, without that of the manifest; `run` is its key, `path` where it lies."""
    unused, held = unused_time(analysis), held_gpus(analysis)
    ledger = _ledger(analysis, held)
    return {
        "runs": [row("runs", {"run": run, "path": path, **_run(analysis, ledger, unused, held)})],
        "gpus": [row("gpus", {"run": run, **_gpu(each, unused[each.gpu.index], held)}) for each in analysis.gpus],
        "epochs": [row("epochs", {"run": run, **_epoch(each)}) for each in analysis.epochs],
        "findings": [row("findings", {"run": run, **_finding(each, analysis)}) for each in analysis.findings],
        "ledger": [row("ledger", {"run": run, **_ledger_row(each, ledger)}) for each in analysis.ledger],
        "locations": [row("locations", {"run": run, **each}) for each in _locations(analysis)],
    }


def _ledger(analysis: Analysis, held: frozenset[int]) -> dict[str, float]:
    """Return GPU seconds by row of the ledger, without those of GPUs that the command could not have used.

    These stand in the report's as idle.
    """
    seconds = {each.name: each.gpu_seconds for each in analysis.ledger}
    shut_out = {each.gpu.index for each in analysis.gpus if not each.of_others} - held
    unmeasured_s = sum(gap.end_t_s - gap.start_t_s for gap in analysis.gaps if gap.gpu in shut_out)
    idle_s = len(shut_out) * analysis.run.duration_s - unmeasured_s
    for name, spent_s in ((IDLE, idle_s), (UNMEASURED, unmeasured_s)) if shut_out else ():
        seconds[name] = max(seconds.get(name, 0.0) - spent_s, 0.0)
    return seconds


def _run(
    analysis: Analysis, ledger: Mapping[str, float], unused: Mapping[int, UnusedTime], held: frozenset[int]
) -> Values:
    run, recording = analysis.run, analysis.run.recording
    return {
        "start": run.start_wall_s,
        "duration_s": run.duration_s,
        "user": recording.user,
        "host": recording.host,
        "slurm_job_id": recording.slurm_job_id,
        **_of_yolo(analysis),
        **_of_gpus(analysis, ledger, unused, held),
        **_of_lost_time(analysis, ledger),
        **_of_fix(analysis),
        **_of_end(analysis),
        "critical": sum(each.severity == "critical" for each in analysis.findings),
        "warnings": sum(each.severity == "warning" for each in analysis.findings),
        "coverage_pct": 100 * analysis.coverage,
        "driver": recording.driver,
        "torch": recording.torch,
        "ultralytics": recording.ultralytics,
        "tool": recording.tool_version,
        "command": shlex.join(hide_in_command(recording.command)) or None,
        "verdict": analysis.verdict.text or None,
    }


def _of_yolo(analysis: Analysis) -> Values:
    """Return what the arguments of the last YOLO run say."""
    run = analysis.run
    args = run.yolo_runs[-1].args if run.yolo_runs else {}
    return {
        "project": run.recording.project or last_part(args.get("project")),
        "name": args.get("name"),
        "task": args.get("task"),
        "model": last_part(args.get("model")),
        "batch": args.get("batch"),
        "imgsz": args.get("imgsz"),
        "epochs_asked": args.get("epochs"),
        "epochs": len(analysis.epochs),
    }


def _of_gpus(
    analysis: Analysis, ledger: Mapping[str, float], unused: Mapping[int, UnusedTime], held: frozenset[int]
) -> Values:
    names = Counter(each.gpu.name for each in analysis.gpus if each.gpu.index in held and each.gpu.name)
    mine = [unused[index] for index in sorted(held)]
    energies = [each.energy_j for each in analysis.gpus if each.gpu.index in held]
    return {
        "gpu_name": min(names, key=lambda name: (-names[name], name), default=None),
        "gpus": len(held),
        "gpus_used": _used(analysis),
        "gpu_hours": sum(ledger.values()) / 3600,
        "no_process_gpu_s": _sum([each.no_process_s for each in mine]),
        "idle_after_end_gpu_s": _sum([each.after_end_s for each in mine if each.after_end_s is not None]),
        "energy_j": _sum(energies),
    }


def _of_lost_time(analysis: Analysis, ledger: Mapping[str, float]) -> Values:
    lost = {each.name: each.gpu_seconds for each in analysis.ledger if not each.expected and each.name != UNMEASURED}
    top = min(lost, key=lambda name: (-lost[name], name), default=None)
    return {
        "work_gpu_s": ledger.get(WORK, 0.0),
        "lost_gpu_s": sum(lost.values()),
        "idle_gpu_s": ledger.get(IDLE, 0.0),
        "top_cause": top,
        "top_cause_gpu_s": lost[top] if top else None,
        "busy_pct": analysis.verdict.busy_pct,
        "epoch_s": None if analysis.epoch_now is None else analysis.epoch_now.seconds,
    }


def _of_fix(analysis: Analysis) -> Values:
    """Return the change that saves most, and what it would have saved in the epochs that were recorded.

    That is of the longest YOLO run in the recording, of which the projection is.
    """
    best = analysis.projection
    if best is None:
        return dict.fromkeys(("fix", "fix_argument", "fix_cause", "fix_epoch_s", "fix_saves_gpu_s"))
    epochs = max(Counter(each.run for each in analysis.epochs).values(), default=0)
    saved_s = (best.epoch_s_now - best.epoch_s_expected) * epochs
    return {
        "fix": best.fix,
        "fix_argument": best.fix.partition("=")[0],
        "fix_cause": best.cause,
        "fix_epoch_s": best.epoch_s_expected,
        "fix_saves_gpu_s": saved_s * _used(analysis),
    }


def _of_end(analysis: Analysis) -> Values:
    recording, ending = analysis.run.recording, analysis.ending
    return {
        "ending": None if ending is None else ending.name,
        "exit_code": recording.exit_code,
        "exit_signal": recording.exit_signal,
        "error_type": None if ending is None else ending.type,
    }


def _used(analysis: Analysis) -> int:
    return sum(each.used for each in analysis.gpus)


def _gpu(summary: GpuSummary, unused: UnusedTime, held: frozenset[int]) -> Values:
    gpu = summary.gpu
    return {
        "gpu": gpu.index,
        "uuid": gpu.uuid,
        "gpu_name": gpu.name,
        "memory_total_mib": gpu.memory_total_mib,
        "allocated": gpu.index in held,
        "used": summary.used,
        "gpu_util_pct": _stats(summary, "gpu_util_pct", "mean"),
        "memory_peak_mib": _stats(summary, "memory_used_mib", "max"),
        "power_mean_w": _stats(summary, "power_w", "mean"),
        "temperature_max_c": _stats(summary, "temperature_c", "max"),
        "energy_j": summary.energy_j,
        "no_process_s": unused.no_process_s,
        "idle_after_end_s": unused.after_end_s,
    }


def _stats(summary: GpuSummary, quantity: str, which: str) -> float | None:
    stats: Stats | None = summary.quantities.get(quantity)
    return None if stats is None else getattr(stats, which)


def _epoch(epoch: EpochSummary) -> Values:
    alike = ("epoch", "attempt", "train_s", "validation_s", "checkpoint_s", "images_per_s", "gpu_util_pct")
    return {
        "yolo_run": epoch.run,
        "start_s": epoch.start_t_s,
        "end_s": epoch.end_t_s,
        **{name: getattr(epoch, name) for name in (*alike, "energy_j", "data_wait_s", "loss", "lr")},
    }


def _finding(finding: Finding, analysis: Analysis) -> Values:
    advice = next((each for each in finding.advice if each.argument), None)
    most, likely = analysis.gains_of(advice) if advice else (None, None)
    alike = ("id", "rule", "severity", "lost_gpu_s", "share_of_training", "expected", "epoch", "phase", "summary")
    return {
        **{name: getattr(finding, name) for name in alike},
        "cause": finding.cause.name if finding.cause else None,
        "confidence": finding.cause.confidence if finding.cause else None,
        "start_s": finding.start_t_s,
        "duration_s": finding.took_s,
        "occurrences": finding.times,
        "argument": advice.argument if advice else None,
        "value": advice.to_value if advice else None,
        "gain_at_most": most,
        "gain_estimate": likely,
    }


def _ledger_row(each: LedgerRow, ledger: Mapping[str, float]) -> Values:
    return {
        "name": each.name,
        "expected": each.expected,
        "gpu_seconds": ledger[each.name],
        "energy_j": each.energy_j,
    }


def _locations(analysis: Analysis) -> Iterator[Values]:
    for each in analysis.ledger:
        for place in each.where:
            alike = {name: getattr(place, name) for name in ("process", "function", "file", "line", "share")}
            yield {"name": each.name, **alike, "gpu_seconds": place.share * each.gpu_seconds}


def _sum(values: list[float | None]) -> float | None:
    """Return the sum, None where one of them is not known, or there is none."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None

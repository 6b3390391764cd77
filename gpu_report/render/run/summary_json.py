"""summary.json, schema 2 (docs/summary.schema.json): the report's facts for machines. Missing is null."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from gpu_report import __version__
from gpu_report.iso_time import iso_utc
from gpu_report.model import (
    VALIDATION_PARTS,
    Advice,
    Analysis,
    CodeLocation,
    EpochSummary,
    Evidence,
    Finding,
    GpuSummary,
    KernelEvent,
    LedgerRow,
    Phase,
    Projection,
    Run,
    SpeedupLimit,
)
from gpu_report.render.formatting import outlier_words
from gpu_report.render.machine_values import json_ready, json_text
from gpu_report.render.nccl_words import nccl_json
from gpu_report.render.run.profiles_json import profiles
from gpu_report.render.run.served_json import calls
from gpu_report.render.sentence_kinds import sentence_json
from gpu_report.render.what_to_change import listed_changes
from gpu_report.wording import ending_words

SCHEMA_VERSION = 2

# What every GPU has in the summary, null where it was not recorded.
GPU_QUANTITIES = (
    "gpu_util_pct",
    "memory_used_mib",
    "power_w",
    "temperature_c",
    "sm_clock_mhz",
    "sm_active_pct",
    "tensor_active_pct",
    "dram_active_pct",
)

Json = dict[str, Any]


def render_summary(analysis: Analysis) -> str:
    """Return summary.json as text."""
    return json_text(build_summary(analysis))


def build_summary(analysis: Analysis) -> Json:
    """Return the summary of an analysis as JSON-ready values: no NaN, no infinity."""
    run = analysis.run
    summary = {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "gpu-report", "version": __version__},
        "verdict": [sentence_json(said) for said in analysis.verdict.sentences],
        "changes": [_advice(each, analysis) for each in listed_changes(analysis)],
        "projection": _projection(analysis.projection),
        "epoch_now": None if analysis.epoch_now is None else asdict(analysis.epoch_now),
        "hypotheses": [asdict(each) for each in analysis.hypotheses],
        "ending": _ending(analysis),
        "not_checked": [{"rule": each.rule, "reason": each.reason} for each in analysis.not_checked],
        "run": _run(analysis),
        "environment": _environment(run),
        "gpus": [_gpu(gpu) for gpu in analysis.gpus],
        "epochs": [_epoch(epoch) for epoch in analysis.epochs],
        "phases": [_phase(phase) for phase in analysis.phases],
        "findings": [_finding(finding, analysis) for finding in analysis.findings],
        "kernel": _kernel(run),
        "ledger": [_ledger_row(row, run.duration_s) for row in analysis.ledger],
        "code_lines": [asdict(line) | {"phase": line.phase or None} for line in analysis.code_lines],
        "bounds": [_limit(limit) for limit in analysis.speedup_limits],
        "profiles": profiles(analysis),
        "calls": calls(analysis, _location),
        "recorder": _recorder(run),
    }
    cleaned: Json = json_ready(summary)
    return cleaned


def _ledger_row(row: LedgerRow, duration_s: float) -> Json:
    """Return a row of the ledger: `seconds` are of the run's time, `gpu_seconds` of all its GPUs."""
    return {
        "name": row.name,
        "expected": row.expected,
        "seconds": row.share * duration_s,
        "gpu_seconds": row.gpu_seconds,
        "energy_j": row.energy_j,
        "money": row.money,
        "share": row.share,
        "where": [_location(location) for location in row.where],
    }


def _span(run: Run, start_t_s: float, end_t_s: float) -> Json:
    return {
        "start": iso_utc(run.start_wall_s + start_t_s),
        "end": iso_utc(run.start_wall_s + end_t_s),
        "start_s": start_t_s,
        "end_s": end_t_s,
    }


def _run(analysis: Analysis) -> Json:
    run, recording = analysis.run, analysis.run.recording
    return {
        "path": run.path,
        "start": iso_utc(run.start_wall_s),
        "end": iso_utc(run.start_wall_s + run.duration_s + run.slept_s),
        "duration_s": run.duration_s,
        "slept_s": run.slept_s,
        "interval_s": recording.interval_s,
        "ended_by": recording.ended_by,
        "exit_code": recording.exit_code,
        "exit_signal": recording.exit_signal,
        "command": list(recording.command) or None,
        "source": recording.source,
        "coverage_pct": analysis.coverage * 100,
        "longest_gap_s": analysis.longest_gap_s,
        "problems": list(run.problems),
    }


def _ending(analysis: Analysis) -> Json | None:
    """Return how the last training ended, None where none was seen."""
    ending = analysis.ending
    if ending is None:
        return None
    return {
        "kind": ending.name,
        "text": ending_words(ending),
        "type": ending.type,
        "message": ending.message,
        "time": iso_utc(analysis.run.start_wall_s + ending.t_s),
        "time_s": ending.t_s,
        "epoch": ending.epoch,
        "epochs": ending.epochs,
        "last_minute": _evidence(ending.last_minute),
    }


def _projection(projection: Projection | None) -> Json | None:
    """Return what the fix that saves most does to an epoch and to the whole training, None without an estimate."""
    if projection is None:
        return None
    sets = [dict(zip(("argument", "to"), each.split("=", 1), strict=True)) for each in projection.fix.split(" ")]
    (now_s, then_s), money = projection.seconds or (None, None), projection.money
    return {
        "epoch_s_now": projection.epoch_s_now,
        "epoch_s_expected": projection.epoch_s_expected,
        "epochs": projection.epochs,
        "epochs_left": projection.epochs if projection.left else None,
        "seconds_saved": None if now_s is None or then_s is None else now_s - then_s,
        "money_saved": None if money is None else money[0] - money[1],
        "cause": projection.cause,
        "setting": sets[0],
        "sets": sets,
    }


def _environment(run: Run) -> Json:
    recording = run.recording
    args = run.yolo_runs[-1].args if run.yolo_runs else {}
    return {
        "host": recording.host,
        "os": recording.os,
        "cores": recording.cores,
        "memory_mib": recording.memory_mib,
        "driver": recording.driver,
        "cuda": recording.cuda,
        "python": recording.python,
        "torch": recording.torch,
        "ultralytics": recording.ultralytics,
        "model": args.get("model"),
        "args": dict(args) or None,
        "effective": _effective(run),
        "yolo_runs": [
            {"number": y.number, "path": y.path, "anchor": y.anchor, "uncertainty_s": y.uncertainty_s, "note": y.note}
            for y in run.yolo_runs
        ],
        **({"nccl": nccl_json(run.nccl)} if run.nccl.processes else {}),
    }


def _effective(run: Run) -> Json | None:
    """Return what the last training really ran with, None where YOLO told nothing from inside."""
    settings = [process.settings for process in run.inside if process.rank == 0 and process.task == "train"]
    return dict(settings[-1]) if settings else None


def _gpu(summary: GpuSummary) -> Json:
    gpu = summary.gpu
    recorded = {name: asdict(stats) for name, stats in summary.quantities.items()}
    return {
        "index": gpu.index,
        "uuid": gpu.uuid,
        "name": gpu.name,
        "memory_total_mib": gpu.memory_total_mib,
        "ours": summary.used,
        "allocated": not summary.of_others,
        "samples": summary.samples,
        **dict.fromkeys(GPU_QUANTITIES),
        **recorded,
        "energy_j": summary.energy_j,
        "energy_source": summary.energy_source,
    }


def _epoch(epoch: EpochSummary) -> Json:
    return {
        "run": epoch.run,
        "epoch": epoch.epoch,
        "attempt": epoch.attempt,
        "start_s": epoch.start_t_s,
        "end_s": epoch.end_t_s,
        "warm_up_s": epoch.warm_up_s,
        "train_s": epoch.train_s,
        "validation_s": epoch.validation_s,
        "checkpoint_s": epoch.checkpoint_s,
        "images_per_s": epoch.images_per_s,
        "gpu_util_pct": epoch.gpu_util_pct,
        "memory_peak_mib": epoch.memory_peak_mib,
        "energy_j": epoch.energy_j,
        "data_wait_s": epoch.data_wait_s,
        "data_wait_share": epoch.data_wait_share,
        "longest_wait_s": epoch.longest_wait_s,
        "stall_s": epoch.stall_s,
        "stall_cause": epoch.stall_cause or None,
        "loss": epoch.loss,
        "lr": epoch.lr,
        "outliers": list(outlier_words(epoch)),
        "source": epoch.source or None,
        "uncertainty_s": epoch.uncertainty_s,
        "gpus": {
            str(gpu): {name: {"mean": stats.mean, "max": stats.max} for name, stats in quantities.items()}
            for gpu, quantities in epoch.gpus.items()
        },
    }


def _phase(phase: Phase) -> Json:
    validated = phase.validated
    return {
        "name": phase.name,
        "epoch": phase.epoch,
        "start_s": phase.start_t_s,
        "end_s": phase.end_t_s,
        "source": phase.source,
        "detail": phase.detail or None,
        "uncertainty_s": phase.uncertainty_s,
        "images": validated and validated.images,
        "images_per_s": validated and validated.images_per_s,
        "parts": validated and {f"{part}_s": validated.seconds.get(part) for part in VALIDATION_PARTS},
    }


def _finding(finding: Finding, analysis: Analysis) -> Json:
    run = analysis.run
    return {
        "id": finding.id,
        "rule": finding.rule,
        "severity": finding.severity,
        "gpus": list(finding.gpus) or ([] if finding.gpu is None else [finding.gpu]),
        "lost_gpu_s": finding.lost_gpu_s,
        "share_of_training": finding.share_of_training,
        "occurrences": [
            {**_span(run, *one.span), "gpus": list(one.gpus), "lost_gpu_s": one.lost_gpu_s}
            for one in finding.occurrences
        ],
        "where": [_location(location) for location in finding.where],
        **_span(run, finding.start_t_s, finding.end_t_s),
        "duration_s": finding.duration_s,
        "expected": finding.expected,
        "epoch": finding.epoch,
        "phase": finding.phase,
        "at_boundary": finding.at_boundary,
        "level_pct": finding.level_pct,
        "low_pct": finding.low_pct,
        "summary": finding.summary,
        "evidence": _evidence(finding.evidence),
        "cause": asdict(finding.cause) if finding.cause else None,
        "kernel_events": [{**_kernel_event(n.event, run), "offset_s": n.offset_s} for n in finding.kernel_events],
        "advice": [_advice(advice, analysis) for advice in finding.advice],
    }


def _advice(advice: Advice, analysis: Analysis) -> Json:
    most, likely = analysis.gains_of(advice)
    return {
        "title": advice.short or None,
        "text": advice.text,
        "argument": advice.argument,
        "from": advice.from_value,
        "to": advice.to_value,
        "sets": [{"argument": each.argument, "from": each.from_value, "to": each.to_value} for each in advice.settings],
        "images_times": advice.images_times,
        "images_px": advice.images_px,
        "gain_at_most": most,
        "gain_estimate": likely,
    }


def _location(location: CodeLocation) -> Json:
    """Return a line of code; `dumps` is there where py-spy saw it, `with_calls` where the share is that of a call."""
    return {name: value for name, value in asdict(location).items() if value not in {None, False}}


def _limit(limit: SpeedupLimit) -> Json:
    return {
        "cause": limit.cause,
        "epoch_s_now": limit.epoch_s_now,
        "epoch_s_at_best": limit.epoch_s_at_best,
        "epoch_s_estimate": limit.epoch_s_estimate,
        "speed_up_at_most": limit.speed_up_at_most,
        "speed_up_estimate": limit.speed_up_estimate,
        "fix": limit.fix or None,
        "basis": f"{limit.basis}; now is the {limit.now_is}" if limit.now_is else limit.basis,
    }


def _evidence(numbers: Sequence[Evidence]) -> list[Json]:
    return [{"text": each.text, "value": each.value, "unit": each.unit, "key": each.key or None} for each in numbers]


def _kernel(run: Run) -> Json:
    kernel = run.kernel
    return {
        "status": kernel.status,
        "source": kernel.source,
        "reason": kernel.reason or None,
        "advice": kernel.advice or None,
        "xid_events": kernel.xid_events,
        "events": [_kernel_event(event, run) for event in kernel.events],
    }


def _kernel_event(event: KernelEvent, run: Run) -> Json:
    fields = {name: value for name, value in asdict(event).items() if name not in {"at_limit", "subject", "xid_kind"}}
    return {**fields, "time": iso_utc(run.start_wall_s + event.t_s)}


def _recorder(run: Run) -> Json:
    errors = sum(event.kind in {"nvml_error", "nvml_stalled", "rows_lost"} for event in run.events)
    return {**asdict(run.recording.cost), "errors": errors}

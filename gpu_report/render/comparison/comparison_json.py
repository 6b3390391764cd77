"""compare.json, schema 1 (docs/compare.schema.json): a comparison for machines. Missing is null."""

from typing import Any

from gpu_report import __version__
from gpu_report.iso_time import iso_utc
from gpu_report.model import (
    Analysis,
    CallCause,
    Comparison,
    Difference,
    EpochCause,
    FindingChange,
    GateResult,
    LineChange,
    MetricComparison,
)
from gpu_report.render.comparison.rows import gate_word, label
from gpu_report.render.machine_values import json_ready
from gpu_report.wording import ending_words

SCHEMA_VERSION = 1

Json = dict[str, Any]
Pair = tuple[float, float] | None


def build_comparison(comparison: Comparison) -> Json:
    """Return a comparison as JSON-ready values: no NaN, no infinity."""
    found: Json = json_ready(
        {
            "schema_version": SCHEMA_VERSION,
            "tool": {"name": "gpu-report", "version": __version__},
            "verdict": comparison.verdict,
            "judgement": comparison.judgement,
            "cause": _cause(comparison.cause),
            "outcome": comparison.outcome,
            "exit_code": comparison.exit_code,
            "setup": comparison.setup,
            "obstacles": [obstacle.text for obstacle in comparison.obstacles],
            "notes": comparison.notes,
            "baselines": [_run(baseline) for baseline in comparison.baselines],
            "run": _run(comparison.run),
            "differences": [_difference(difference) for difference in comparison.differences],
            "metrics": [_metric(metric) for metric in comparison.metrics],
            "first_epochs": _metric(comparison.first_epochs) if comparison.first_epochs else None,
            "all_epochs": _metric(comparison.all_epochs) if comparison.all_epochs else None,
            "stutter": {"baseline": comparison.drop_time[0] or None, "run": comparison.drop_time[1] or None},
            "findings": [_finding(finding) for finding in comparison.findings],
            "code_lines": None if comparison.code_lines is None else [_line(line) for line in comparison.code_lines],
            "gates": [_gate(result) for result in comparison.gates],
        }
    )
    return found


def _run(analysis: Analysis) -> Json:
    run = analysis.run
    return {
        "path": run.path,
        "start": iso_utc(run.start_wall_s),
        "duration_s": run.duration_s,
        "epochs": len(analysis.epochs),
        "calls": sum(served.latency.calls for served in analysis.served),
        "coverage_pct": 100 * analysis.coverage,
        "ending": ending_words(analysis.ending) if analysis.ending else None,
        "verdict": analysis.verdict.text,
    }


def _difference(difference: Difference) -> Json:
    return {
        "name": difference.name,
        "baseline": difference.baseline,
        "run": difference.run,
        "kind": difference.kind,
    }


def _metric(metric: MetricComparison) -> Json:
    return {
        "metric": metric.metric,
        "model": metric.model or None,
        "label": label(metric),
        "statistic": metric.statistic,
        "unit": metric.unit,
        "baseline": metric.baseline,
        "run": metric.run,
        "change": metric.change,
        "change_pct": _percent(metric.change_share),
        "interval": _interval(metric.interval),
        "interval_pct": _interval(metric.interval_share, 100),
        "least_change": metric.least_change,
        "baseline_values": metric.each or ([metric.baseline] if metric.baseline is not None else []),
        "band": _interval(metric.band),
        "in_band": metric.in_band,
        "significant": metric.significant,
        "judgement": metric.judgement,
        "basis": metric.basis,
        "baseline_count": metric.counts[0],
        "run_count": metric.counts[1],
        "baseline_outliers": metric.outliers[0],
        "run_outliers": metric.outliers[1],
        "correlation": None if metric.basis == "calls" else metric.correlation,  # of calls it is in the interval
        "enough_epochs": None if metric.basis == "calls" else metric.enough,
        "enough_calls": metric.enough if metric.basis == "calls" else None,
        "note": metric.note or None,
    }


def _cause(cause: EpochCause | CallCause | None) -> Json | None:
    if cause is None:
        return None
    if isinstance(cause, CallCause):
        return {"kind": cause.kind, "baseline_ms": cause.baseline_ms, "run_ms": cause.run_ms, "share": cause.share}
    line = None if cause.line is None else _line(cause.line)
    seconds = {"baseline_s": cause.baseline_s, "run_s": cause.run_s}
    return {"kind": cause.kind, **seconds, "share": cause.share, "line": line}


def _finding(finding: FindingChange) -> Json:
    return {
        "status": finding.status,
        "rule": finding.rule,
        "cause": finding.cause,
        "gpu": finding.gpu,
        "severity": finding.severity,
        "summary": finding.summary,
        "baseline_count": finding.counts[0],
        "baseline_counts": [count for count, _ in finding.each],
        "baselines_with": len(finding.in_baselines),
        "run_count": finding.counts[1],
        "baseline_s": finding.seconds[0],
        "run_s": finding.seconds[1],
        "ids": finding.ids,
    }


def _line(line: LineChange) -> Json:
    return {
        "status": line.status,
        "process": line.process,
        "function": line.function,
        "file": line.file,
        "baseline_line": line.baseline_line,
        "run_line": line.run_line,
        "baseline_idle_gpu_s": line.baseline_idle_gpu_s,
        "run_idle_gpu_s": line.run_idle_gpu_s,
        "change_gpu_s": line.change_gpu_s,
        "waits_for": line.waits_for,
    }


def _gate(result: GateResult) -> Json:
    gate = result.gate
    return {
        "gate": gate.text,
        "metric": gate.metric,
        "statistic": gate.statistic,
        "kind": gate.kind,
        "limit": gate.limit,
        "level": gate.level,
        "optional": gate.optional,
        "outcome": result.outcome,
        "word": gate_word(result),
        "value": result.value,
        "summary": result.summary,
        "why": result.why or None,
    }


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _interval(ends: Pair, factor: float = 1) -> Json | None:
    return None if ends is None else {"low": factor * ends[0], "high": factor * ends[1]}

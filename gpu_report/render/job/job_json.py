"""summary.json of a job of several nodes, schema 2: `nodes`, ranks and the findings of the job. Missing is null."""

from typing import Any

from gpu_report import __version__
from gpu_report.iso_time import iso_utc
from gpu_report.model import CodeLocation, Finding, Job, JobFinding, JobNode, NodeGpu, RankRow
from gpu_report.render.machine_values import json_ready, json_text
from gpu_report.render.nccl_words import nccl_json
from gpu_report.render.sentence_kinds import sentence_json

SCHEMA_VERSION = 2
Json = dict[str, Any]


def render_job_json(job: Job) -> str:
    """Return a job's summary.json as text."""
    return json_text(build_job_json(job))


def build_job_json(job: Job) -> Json:
    """Return a job's summary as JSON-ready values."""
    summary = {
        "schema_version": SCHEMA_VERSION,
        "tool": {"name": "gpu-report", "version": __version__},
        "verdict": [sentence_json(said) for said in job.verdict],
        "job": _job(job),
        "nodes": [_node(node) for node in job.nodes],
        "ranks": [_rank(row) for row in job.ranks],
        "findings": [_finding(finding, job) for finding in job.findings],
        "notes": list(job.notes),
    }
    ready: Json = json_ready(summary)
    return ready


def _job(job: Job) -> Json:
    return {
        "id": job.id,
        "scheduler": job.scheduler,
        "start": iso_utc(job.start_wall_s),
        "end": iso_utc(job.start_wall_s + job.duration_s),
        "duration_s": job.duration_s,
        "busy_pct": job.busy_pct,
        "aligned": job.aligned,
        "why_not_aligned": job.why_not_aligned or None,
    }


def _rank(row: RankRow) -> Json:
    return {
        "rank": row.rank,
        "node": row.node,
        "gpu": row.gpu,
        "epochs": row.epochs,
        "train_s": row.train_s,
        "data_wait_s": row.data_wait_s,
        "gpu_util_pct": row.busy_pct,
        "share_slowest": row.last_share,
    }


def _node(node: JobNode) -> Json:
    run, clock = node.run, node.clock
    return {
        "name": node.name,
        "host": None if run is None else run.host,
        "node_rank": node.node_rank,
        "gpus": [] if run is None else [_gpu(gpu) for gpu in run.gpus],
        "clock_error_s": None if clock is None else clock.error_s,
        "clock_ahead_s": None if clock is None else clock.ahead_s,
        "clock_residual_s": None if clock is None else clock.residual_s,
        "barriers": None if clock is None else clock.barriers,
        "missing": node.is_missing,
        "unreadable": node.unread or None,
        "path": None if run is None else run.path,
        "start": None if run is None else iso_utc(run.start_wall_s),
        "duration_s": None if run is None else run.duration_s,
        "busy_pct": None if run is None else run.busy_pct,
        "nccl": [] if run is None else nccl_json(run.nccl),
        "verdict": None if run is None else run.verdict,
        "findings": [] if run is None else [_of_node(finding, node) for finding in run.findings],
    }


def _gpu(gpu: NodeGpu) -> Json:
    return {
        "index": gpu.index,
        "uuid": gpu.uuid,
        "name": gpu.name,
        "memory_total_mib": gpu.memory_total_mib,
        "used": gpu.used,
    }


def _of_node(finding: Finding, node: JobNode) -> Json:
    return {
        "id": finding.id,
        "rule": finding.rule,
        "severity": finding.severity,
        "gpus": list(finding.gpus),
        "start_s": finding.start_t_s + node.shift_s,
        "end_s": finding.end_t_s + node.shift_s,
        "summary": finding.summary,
        "cause": None if finding.cause is None else finding.cause.name,
        "where": [_location(location) for location in finding.where],
    }


def _finding(finding: JobFinding, job: Job) -> Json:
    return {
        "id": finding.id,
        "rule": finding.rule,
        "severity": finding.severity,
        "node": finding.node,
        "rank": finding.rank,
        "start": iso_utc(job.start_wall_s + finding.start_t_s),
        "end": iso_utc(job.start_wall_s + finding.end_t_s),
        "start_s": finding.start_t_s,
        "end_s": finding.end_t_s,
        "summary": finding.summary,
        "cause": finding.cause,
        "lost_gpu_s": finding.lost_gpu_s,
        "share_of_training": finding.share_of_training,
        "where": [_location(location) for location in finding.where],
        "advice": finding.advice or None,
    }


def _location(location: CodeLocation) -> Json:
    return {
        "process": location.process,
        "function": location.function,
        "file": location.file,
        "line": location.line,
        "share": location.share,
    }

"""From what is kept of each node to what is to be said about the job."""

from collections.abc import Sequence

from gpu_report.analyse.job.alignment import ahead_of, clocks, why_not_aligned
from gpu_report.analyse.job.findings import job_findings
from gpu_report.analyse.job.nodes import (
    absent_nodes,
    are_of_one_time,
    in_order,
    names_of,
    node_rank,
    refuse_several_jobs,
    refuse_several_trainings,
    refuse_unrelated_runs,
)
from gpu_report.analyse.job.ranks import RankOfJob, rank_table, ranks_of, rows_of
from gpu_report.analyse.job.straggler import find_straggler
from gpu_report.analyse.job.verdict import job_verdict
from gpu_report.model import Job, JobNode, NodeClock, NodeRun, UnreadNode


def analyse_job(runs: Sequence[NodeRun], unread: Sequence[UnreadNode] = ()) -> Job:
    """Return what is to be said about the nodes of one job; InputError where they are of several jobs.

    `unread` are folders that were named and cannot be read: they are nodes as well, of which only the reason is known.
    """
    refuse_several_jobs([(run.path, run.job) for run in runs])
    refuse_unrelated_runs(runs)
    ordered, notes = in_order(runs)
    found, names = clocks(ordered), names_of(ordered)
    refuse_several_trainings(ordered, found)
    begin_s, nodes = _nodes(ordered, names, found)
    recorded = list(zip(nodes, ordered, strict=True))
    duration_s = max(node.shift_s + run.duration_s for node, run in recorded)
    why_not = why_not_aligned(names, found, of_one_time=are_of_one_time(ordered))
    ranks = ranks_of(recorded)
    table = rank_table(ranks)
    straggler, last = find_straggler(table)
    absent = absent_nodes(ordered, unread)
    findings = job_findings(recorded, straggler, max(len(ranks), 1), duration_s, why_not, absent)
    busy_pct = _busy(ordered)
    known = next((run.job for run in ordered if run.job.id), ordered[0].job)
    return Job(
        id=known.id,
        scheduler=known.scheduler,
        start_wall_s=begin_s,
        duration_s=duration_s,
        nodes=(*nodes, *absent),
        ranks=rows_of(table, last),
        findings=findings,
        verdict=job_verdict(recorded, straggler, findings, busy_pct),
        aligned=not why_not,
        why_not_aligned=why_not,
        epoch_starts_s=_epoch_starts(ranks),
        busy_pct=busy_pct,
        notes=(*(each.reason for each in unread), *notes, *_problems(recorded)),
    )


def _nodes(
    runs: Sequence[NodeRun], names: Sequence[str], found: Sequence[NodeClock]
) -> tuple[float, tuple[JobNode, ...]]:
    """Return when the first recording began (UTC seconds by the clocks set right), and each node from then on."""
    starts = [run.start_wall_s - ahead_of(clock) for run, clock in zip(runs, found, strict=True)]
    begin_s = min(starts)
    return begin_s, tuple(
        JobNode(name, node_rank(run), run, clock, start - begin_s)
        for name, run, clock, start in zip(names, runs, found, starts, strict=True)
    )


def _problems(recorded: Sequence[tuple[JobNode, NodeRun]]) -> list[str]:
    return [f"{node.name}: {problem}" for node, run in recorded for problem in run.problems]


def _epoch_starts(ranks: Sequence[RankOfJob]) -> tuple[float, ...]:
    if not ranks:
        return ()
    return tuple(sorted(epoch.start_t_s + ranks[0].node.shift_s for epoch in ranks[0].epochs().values()))


def _busy(runs: Sequence[NodeRun]) -> float | None:
    """Return how busy the GPUs of all nodes were in training (%), each GPU in use counted once."""
    known = [(run.busy_pct, sum(gpu.used for gpu in run.gpus)) for run in runs if run.busy_pct is not None]
    gpus = sum(count for _, count in known)
    return sum(busy * count for busy, count in known) / gpus if gpus else None

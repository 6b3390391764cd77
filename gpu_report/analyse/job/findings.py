"""What is worth a finding about a job as a whole."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpu_report.analyse.collective_words import pending_advice, pending_words
from gpu_report.analyse.job import thresholds as th
from gpu_report.analyse.job.alignment import ahead_of
from gpu_report.analyse.job.nodes import host_words, missing_ranks, unequal
from gpu_report.analyse.job.straggler import Straggler
from gpu_report.analyse.signals.code.collectives import find_pending_collective
from gpu_report.catalogue import SLOW_RANK, UNEXPLAINED, WAITING_FOR_PEER
from gpu_report.model import (
    CodeLocation,
    JobFinding,
    JobNode,
    JobRule,
    NodeClock,
    NodeRun,
    RankTrace,
    Severity,
)
from gpu_report.wording import brief_seconds, counted, few_names, length, place_words, upper_first

Recorded = Sequence[tuple[JobNode, NodeRun]]

SEVERITIES: tuple[Severity, ...] = ("critical", "warning", "info")
CRITICAL_SHARE = 0.05  # of the training that the other ranks lose: DESIGN.md §3, severity
# Rules whose findings are stretches of one node in which its GPUs did less, or only waited.
STRETCHES = frozenset({"drop", WAITING_FOR_PEER, SLOW_RANK, "slow-epoch"})
WAITING = frozenset({WAITING_FOR_PEER, UNEXPLAINED, "trainer-blocked", ""})  # causes that may lie elsewhere
SOCKETS = "NET/Socket"  # a transport of NCCL's
SHOWN = 5  # nodes or ranks that a sentence names


def job_findings(  # noqa: PLR0913, PLR0917 - all that is known of the job
    recorded: Recorded,
    straggler: Straggler | None,
    world: int,
    duration_s: float,
    why_not_aligned: str,
    absent: Sequence[JobNode] = (),
) -> tuple[JobFinding, ...]:
    """Return the findings of a job, worst first, each with its id; `absent` are the nodes without a recording."""
    runs = [run for _, run in recorded]
    found = [
        *([_straggler(straggler, world, duration_s)] if straggler else []),
        *(_stalls(recorded) if not why_not_aligned else []),
        *_held(recorded, duration_s),
        *_missing(runs, absent, duration_s),
        *_restarts(recorded, duration_s),
        *_clocks(recorded, duration_s, why_not_aligned),
        *_sockets(runs, duration_s),
        *_unequal(runs, duration_s),
        *_hosts(runs, duration_s),
    ]
    found.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    counts: dict[str, int] = {}
    numbered = []
    for finding in found:
        counts[finding.rule] = counts.get(finding.rule, 0) + 1
        numbered.append(replace(finding, id=f"{finding.rule}-{counts[finding.rule]}"))
    return tuple(numbered)


def _finding(rule: JobRule, severity: Severity, span: tuple[float, float], summary: str) -> JobFinding:
    return JobFinding("", rule, severity, summary, *span)


def whom(straggler: Straggler) -> str:
    """Return the straggler in words: rank 3 on node 1."""
    who = "all ranks" if straggler.whole_node else f"rank {straggler.rank.rank}"
    return f"{who} on {straggler.node.name}"


def _whom_on_host(straggler: Straggler) -> str:
    """Return the straggler in words, with the name of its host: rank 3 on node 1 (host b)."""
    host = f" ({straggler.rank.run.host})" if straggler.rank.run.host else ""
    return f"{whom(straggler)}{host}"


def _straggler(found: Straggler, world: int, duration_s: float) -> JobFinding:
    late = found.rank.last
    lines = late.loading if found.kind == "input" else late.working
    share = found.excess_s / found.train_s
    lost_s = found.excess_s * found.epochs * (world - 1)
    others = "other rank" if world == 2 else f"{world - 1:,} other ranks"
    if found.kind == "input":
        verb = "wait" if found.whole_node else "waits"
        what = (
            f"{upper_first(_whom_on_host(found))} {verb} {brief_seconds(found.wait_s)} for data in each epoch, "
            f"the {others} {brief_seconds(found.others_wait_s)}"
        )
    else:
        what = (
            f"{upper_first(_whom_on_host(found))} keeps its GPU {found.busy_pct:.0f} % busy. The {others} wait for it: "
            f"nvidia-smi shows {found.others_busy_pct:.0f} % busy there"
        )
    severity: Severity = "critical" if share >= CRITICAL_SHARE and lost_s >= 600 else "warning"
    return replace(
        _finding("straggler", severity, (0.0, duration_s), what),
        node=found.node.name,
        rank=found.rank.rank,
        cause="input" if found.kind == "input" else "main-process",
        where=lines,
        advice=_advice(found, lines),
        lost_gpu_s=lost_s,
        share_of_training=share,
    )


def _advice(found: Straggler, lines: Sequence[CodeLocation]) -> str:
    """Return what to do about a straggler, its line of code first."""
    if lines and not lines[0].is_yolo:
        share = f"{lines[0].share * 100:.0f} % of that time is spent there"
        return f"Look at {place_words(lines[0])} on {found.node.name}: {share}"
    if found.kind == "work":
        return f"Compare what else runs on {found.node.name}, its CPU cores and its GPU's clock with the other nodes"
    if found.rank.last.workers == 0:
        return f"Give {found.node.name} loader workers (`workers`): its rank loads images itself"
    return f"Compare the disk, the CPU cores and `workers` of {found.node.name} with those of the other nodes"


def _stalls(recorded: Recorded) -> Iterator[JobFinding]:
    """Yield stretches of one node with a cause of its own, in which other nodes did less or waited as well."""
    stretches = [
        (node, finding, each.start_t_s + node.shift_s, each.end_t_s + node.shift_s)
        for node, run in recorded
        for finding in run.findings
        if finding.rule in STRETCHES
        for each in finding.each
    ]
    for node, finding, start_s, end_s in stretches:
        cause = finding.cause_name
        if cause in WAITING:
            continue
        with_it = [
            each
            for each in stretches
            if each[0] is not node and _overlap_s(each[2:], (start_s, end_s)) > (end_s - start_s) / 2
        ]
        if not with_it or any(each[1].cause_name not in WAITING for each in with_it):
            continue  # nobody felt it, or the others have causes of their own
        others = list(dict.fromkeys(each[0].name for each in with_it))
        yield replace(
            _finding(
                "stall-from-node",
                finding.severity,
                (start_s, end_s),
                f"{few_names(others, SHOWN)} waited {length(end_s - start_s)} for {node.name}: {finding.summary}",
            ),
            node=node.name,
            cause=cause,
            where=finding.where,
        )


def _overlap_s(one: tuple[float, float], other: tuple[float, float]) -> float:
    return min(one[1], other[1]) - max(one[0], other[0])


def _held(recorded: Recorded, duration_s: float) -> Iterator[JobFinding]:
    """Yield the collective that ranks of all nodes wait in, with times on the job's clock."""
    traces = [_shifted(trace, node.shift_s) for node, run in recorded for trace in run.nccl.traces]
    held = find_pending_collective(traces)
    if held is not None:
        span = min(max(held.collective.t_s, 0.0), duration_s), duration_s
        yield replace(
            _finding("missing-rank", "critical", span, pending_words(held)),
            rank=held.missing[0] if len(held.missing) == 1 else None,
            cause=WAITING_FOR_PEER,
            where=held.where,
            advice=pending_advice(held),
        )


def _shifted(trace: RankTrace, shift_s: float) -> RankTrace:
    groups = [replace(g, last=tuple(replace(c, t_s=c.t_s + shift_s) for c in g.last)) for g in trace.groups]
    return replace(trace, groups=tuple(groups))


def _sockets(runs: Sequence[NodeRun], duration_s: float) -> Iterator[JobFinding]:
    """Yield that ranks of different nodes are connected by TCP, and which variable of the user's asks for it.

    Whether there is a faster adapter NCCL's file does not say: it is a note, and advice only where a variable is set.
    """
    over_tcp = [each for run in runs for each in run.nccl.processes if SOCKETS in each.transports]
    if not over_tcp or max((each.nodes or 1 for each in over_tcp), default=1) <= 1:
        return
    adapters = list(dict.fromkeys(name for each in over_tcp for name in each.adapters))
    by = f" by {few_names(adapters, SHOWN)}" if adapters else ""
    asked = dict(pair for each in over_tcp for pair in each.settings).get("NCCL_IB_DISABLE")
    advice = ""
    if asked is not None and asked != "0":
        advice = f"`NCCL_IB_DISABLE={asked}` keeps NCCL from InfiniBand and RoCE: leave it out where nodes have them"
    text = f"Ranks of different nodes exchange gradients over TCP sockets{by}"
    yield replace(_finding("sockets", "info", (0.0, duration_s), text), advice=advice)


def _missing(runs: Sequence[NodeRun], absent: Sequence[JobNode], duration_s: float) -> Iterator[JobFinding]:
    said = max(*(run.job.nodes or 0 for run in runs), len(runs) + len(absent))
    missing, unread = ([node for node in absent if bool(node.unread) is is_there] for is_there in (False, True))
    if missing:
        text = f"{_of_all(missing, said)} {'is' if len(missing) == 1 else 'are'} missing{_which(missing)}"
        yield _finding("missing-node", "warning", (0.0, duration_s), f"{text}. What happened there is unknown")
    if unread:
        text = f"{_of_all(unread, said)} could not be read{_which(unread)}"
        yield _finding("missing-node", "warning", (0.0, duration_s), f"{text}. What happened there is unknown")
    if not absent and (ranks := missing_ranks(runs)):
        text = f"Nothing was recorded of rank {few_names(list(map(str, ranks)), SHOWN)}"
        yield _finding("missing-node", "warning", (0.0, duration_s), f"{text}. A straggler among them stays unknown")


def _of_all(nodes: Sequence[JobNode], said: int) -> str:
    return f"{counted(len(nodes), 'node')} of {said}"


def _which(nodes: Sequence[JobNode]) -> str:
    named = [node.name for node in nodes if node.node_rank is not None]
    return f": {few_names(named, SHOWN)}" if named else ""


def _restarts(recorded: Recorded, duration_s: float) -> Iterator[JobFinding]:
    starts = {rank.start for _, run in recorded for rank in run.ranks}
    if starts and max(starts) > 0:
        text = f"The ranks were started {max(starts) + 1} times: torchrun restarts all of them when one fails"
        yield _finding("elastic-restart", "warning", (0.0, duration_s), text)


def _clocks(recorded: Recorded, duration_s: float, why_not: str) -> Iterator[JobFinding]:
    reference = recorded[0][0].name
    for node, _ in recorded[1:]:
        ahead_s = ahead_of(node.clock or NodeClock(None, None, 0, None))
        if abs(ahead_s) > th.APART_S:
            side = "ahead of" if ahead_s > 0 else "behind"
            size = length(abs(ahead_s)) if abs(ahead_s) >= th.FAR_APART_S else f"{abs(ahead_s):.2f} s"
            severity: Severity = "warning" if abs(ahead_s) > th.FAR_APART_S else "info"
            text = f"The clock of {node.name} is {size} {side} that of {reference}. The timeline is corrected by it"
            yield replace(_finding("clocks-apart", severity, (0.0, duration_s), text), node=node.name)
    if why_not:
        yield _finding(
            "clocks-unknown", "warning", (0.0, duration_s), f"No cause is followed from node to node: {why_not}"
        )


def _unequal(runs: Sequence[NodeRun], duration_s: float) -> Iterator[JobFinding]:
    if words := unequal(runs):
        text = f"The nodes' GPUs differ: {words}. All ranks run at the speed of the slowest GPU"
        yield _finding("unequal-gpus", "warning", (0.0, duration_s), text)


def _hosts(runs: Sequence[NodeRun], duration_s: float) -> Iterator[JobFinding]:
    if host := host_words(runs):
        text = f"Several nodes call themselves {host}, as containers do. They are distinguished by their node rank"
        yield _finding("same-host", "info", (0.0, duration_s), text)

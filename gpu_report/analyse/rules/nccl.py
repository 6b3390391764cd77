"""Rules on the exchange between ranks: a rank that is missing from a collective, and warnings of NCCL's."""

from gpu_report.analyse.causes.confidence import CERTAIN
from gpu_report.analyse.collective_words import pending_advice, pending_words
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.signals.code.collectives import find_pending_collective, traces_of_the_end
from gpu_report.catalogue import WAITING_FOR_PEER
from gpu_report.model import Advice, Cause, Finding
from gpu_report.wording import counted


def missing_ranks(context: Context) -> list[Finding]:
    """Report the first collective that never completed, where traces of two ranks or more say who is missing.

    A training that went on afterwards, or came to its end, is not held: its calls were under way.
    """
    held = find_pending_collective(traces_of_the_end(context.run))
    if held is None:
        return []
    missing = f"rank {held.missing[0]}" if len(held.missing) == 1 else "other ranks"
    return [
        context.finding(
            "missing-rank",
            "critical",
            (held.collective.t_s, context.run.duration_s),
            pending_words(held),
            evidence=evidence(
                ("ranks that waited", float(len(held.waiting)), ""),
                ("ranks that had not called it", float(len(held.missing)), ""),
            ),
            cause=Cause(WAITING_FOR_PEER, CERTAIN, f"by PyTorch's flight recorder they waited for {missing}"),
            advice=(Advice(pending_advice(held)),),
            where=held.where,
        )
    ]


def nccl_warnings(context: Context) -> list[Finding]:
    """Report what NCCL itself marked as a warning, the first of a run in its words."""
    found = [(process, warning) for process in context.run.nccl.processes for warning in process.warnings]
    if not found:
        return []
    timed = sorted(warning.t_s for _, warning in found if warning.t_s is not None)
    process, first = min(found, key=lambda each: (each[1].t_s is None, each[1].t_s or 0.0))
    who = f"rank {process.rank}" if process.rank is not None else f"process {process.pid}"
    times = f"{counted(len(found), 'time')}, first" if len(found) > 1 else "once,"
    return [
        context.finding(
            "nccl-warning",
            "warning",
            (timed[0], timed[-1]) if timed else (0.0, context.run.duration_s),
            f"NCCL warned {times} in {who}: {first.text}",
            evidence=evidence(("warnings of NCCL", float(len(found)), "")),
        )
    ]

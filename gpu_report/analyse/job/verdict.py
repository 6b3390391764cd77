"""What a job comes to, in sentences: what to change first."""

from collections.abc import Sequence

from gpu_report.analyse.job.findings import whom
from gpu_report.analyse.job.nodes import missing_ranks
from gpu_report.analyse.job.straggler import Straggler
from gpu_report.model import JobFinding, JobNode, NodeRun, Sentence
from gpu_report.wording import brief_seconds, counted, place_words

Recorded = Sequence[tuple[JobNode, NodeRun]]
SAID = frozenset(
    {"missing-rank", "stall-from-node", "missing-node", "elastic-restart", "unequal-gpus", "clocks-unknown"}
)
MOST_SAID = 3


def job_verdict(
    recorded: Recorded, straggler: Straggler | None, findings: Sequence[JobFinding], busy_pct: float | None
) -> tuple[Sentence, ...]:
    """Return the sentences of a job's verdict."""
    said = [*(_of_straggler(straggler, findings) if straggler else _without_straggler(recorded, busy_pct))]
    rest = [finding for finding in findings if finding.rule in SAID]
    said += [Sentence("look", f"{finding.summary}.", (finding.id,)) for finding in rest[:MOST_SAID]]
    return tuple(said)


def _of_straggler(found: Straggler, findings: Sequence[JobFinding]) -> list[Sentence]:
    finding = next(each for each in findings if each.rule == "straggler")
    lines = found.rank.last.loading if found.kind == "input" else found.rank.last.working
    where = f": look at {place_words(lines[0])}" if lines else ""
    if found.kind == "input":
        first = f"Speed up data loading of {whom(found)}{where}."
    else:
        first = f"Find what holds up {whom(found)}{where}."
    now, then = brief_seconds(found.train_s), brief_seconds(found.train_s - found.excess_s)
    often = "each epoch" if found.last_share == 1 else f"{found.last_share * 100:.0f} % of the epochs"
    second = f"All other ranks wait for it in {often}."
    third = f"Without that, the training part of an epoch takes about {then} instead of {now}."
    return [
        Sentence("fix", first, (finding.id,), "input" if found.kind == "input" else "main-process"),
        Sentence("why", second, (finding.id,)),
        Sentence("projection", third, (finding.id,)),
    ]


def _no_rank(runs: Sequence[NodeRun], with_ranks: Sequence[str]) -> str:
    """Return that no rank is slower than the others, of those that reported; or why that is not known."""
    ranks = sum(len(run.ranks) for run in runs)
    if ranks > 1:
        whole = not missing_ranks(runs)
        return "No rank holds up the others." if whole else "Of the ranks in this report none holds up the others."
    why = f"only one, on {with_ranks[0]}, is in this report" if with_ranks else "no ranks reported"
    return f"Which rank is the slowest is unknown: {why}."


def _without_straggler(recorded: Recorded, busy_pct: float | None) -> list[Sentence]:
    nodes = counted(len(recorded), "node")
    text = _no_rank([run for _, run in recorded], [node.name for node, run in recorded if run.ranks])
    busy = f" The GPUs of {nodes} were busy {busy_pct:.0f} % of training time." if busy_pct is not None else ""
    said = [Sentence("work", f"{text}{busy}")]
    worst = next(
        ((node, run.findings[0]) for node, run in recorded if run.findings and run.findings[0].severity == "critical"),
        None,
    )
    if worst:
        said.append(Sentence("look", f"{worst[0].name.capitalize()}: {worst[1].summary}."))
    return said

"""Which node is which: their order and names, what is missing, and what are not folders of one job."""

from collections import Counter
from collections.abc import Sequence

from gpu_report.analyse.job import thresholds as th
from gpu_report.errors import InputError
from gpu_report.model import JobNode, JobPart, NodeClock, NodeRun, UnreadNode
from gpu_report.wording import counted, gpu_models


def refuse_several_jobs(parts: Sequence[tuple[str, JobPart]]) -> None:
    """Raise InputError where folders (path, what it knows of its job) are of several jobs, by their ids."""
    known = [(path, part) for path, part in parts if part.id is not None]
    for path, part in known[1:]:
        if part.id != known[0][1].id:
            raise InputError(
                f"{known[0][0]} is of job {known[0][1].id}, {path} is of job {part.id}: render each job by itself"
            )


def refuse_unrelated_runs(runs: Sequence[NodeRun]) -> None:
    """Raise InputError where nothing says that runs belong together: no job, and no common time."""
    if any(run.job.id or run.job.is_of_several_nodes for run in runs) or are_of_one_time(runs):
        return
    raise InputError(
        f"{runs[0].path} and {runs[1].path} cover different times, and neither says that it is a node of a job: "
        "render each by itself"
    )


def refuse_several_trainings(runs: Sequence[NodeRun], found: Sequence[NodeClock]) -> None:
    """Raise InputError where recordings of different times have epochs that do not fit together either."""
    for run, clock in zip(runs, found, strict=True):
        fits = clock.residual_s is None or clock.residual_s <= th.WORST_RESIDUAL_S
        if not fits and not _overlap(runs[0], run):
            raise InputError(
                f"{runs[0].path} and {run.path} are of different times, and their epochs do not fit together: "
                "they are of different trainings"
            )


def in_order(runs: Sequence[NodeRun]) -> tuple[list[NodeRun], list[str]]:
    """Return the nodes by their rank, and notes on recordings left out: earlier attempts of a node, and repetitions."""
    kept: list[NodeRun] = []
    notes: list[str] = []
    for run in sorted(runs, key=lambda run: -run.start_wall_s):
        same = next((each for each in kept if _is_same_node(run, each)), None)
        if same is None:
            kept.append(run)
        else:
            which = "has the same ranks as" if _overlap(run, same) else "is an earlier attempt of the node in"
            notes.append(f"{run.path} {which} {same.path}: it is left out")
    return sorted(kept, key=_place), notes


def _is_same_node(one: NodeRun, other: NodeRun) -> bool:
    """Tell whether both are of the same ranks, or the same node at another time; host names alone say nothing."""
    if node_rank(one) is None or node_rank(one) != node_rank(other):
        return False
    shared = _rank_numbers(one) & _rank_numbers(other)
    return bool(shared) or (one.host == other.host and not _overlap(one, other))


def _rank_numbers(run: NodeRun) -> set[int]:
    return {rank.rank for rank in run.ranks} | {rank.rank for rank in run.job.ranks}


def _overlap(one: NodeRun, other: NodeRun) -> bool:
    """Tell whether two recordings were of the same time, by their wall clocks."""
    together_s = min(one.start_wall_s + one.duration_s, other.start_wall_s + other.duration_s) - max(
        one.start_wall_s, other.start_wall_s
    )
    return together_s > th.OVERLAP_SHARE * min(one.duration_s, other.duration_s)


def are_of_one_time(runs: Sequence[NodeRun]) -> bool:
    """Tell whether all recordings overlap with the first one, by their wall clocks."""
    return all(_overlap(runs[0], each) for each in runs[1:])


def node_rank(run: NodeRun) -> int | None:
    """Return a node's number in the job, None where nobody said."""
    return run.job.node_rank


def _place(run: NodeRun) -> tuple[float, float, float, str]:
    """Return where a node stands: by its rank, by its lowest rank of the training, by its beginning."""
    number = node_rank(run)
    lowest = min((rank.rank for rank in run.ranks), default=None)
    order = float("inf") if number is None else number
    return order, float("inf") if lowest is None else lowest, run.start_wall_s, run.path


def names_of(runs: Sequence[NodeRun]) -> list[str]:
    """Return what each node is called: by its rank in the job, with a letter where several folders have the same."""
    numbers = [node_rank(run) for run in runs]
    if None in numbers or not numbers:
        return [f"node {place}" for place in range(len(runs))]
    of_each = Counter(numbers)
    seen: Counter[int | None] = Counter()
    names = []
    for number in numbers:
        names.append(
            f"node {number}" + (f" ({'abcdefghijklmnopqrstuvwxyz'[seen[number] % 26]})" if of_each[number] > 1 else "")
        )
        seen[number] += 1
    return names


def missing_nodes(runs: Sequence[NodeRun]) -> list[int | None]:
    """Return the ranks of the nodes that the job had and nobody gave; None is one whose number is not known."""
    said = max((run.job.nodes or 0 for run in runs), default=0)
    known = {number for run in runs if (number := node_rank(run)) is not None}
    if all(node_rank(run) is not None for run in runs):
        return [*sorted(set(range(said)) - known)]
    return [None] * max(said - len(runs), 0)


def absent_nodes(runs: Sequence[NodeRun], unread: Sequence[UnreadNode]) -> list[JobNode]:
    """Return the nodes without a recording: those whose folder cannot be read, and those that nobody gave.

    A folder that does not say which node it is stands for one that would else be missing.
    """
    missing = missing_nodes(runs)
    found = []
    for each in sorted(unread, key=lambda one: one.node_rank is None):
        at = missing.index(each.node_rank) if each.node_rank in missing else 0
        taken = missing.pop(at) if missing else None
        number = taken if each.node_rank in {None, taken} else None
        found.append(JobNode(_called(number), number, None, unread=each.reason))
    return [*found, *(JobNode(_called(number), number, None) for number in missing)]


def _called(number: int | None) -> str:
    return "node ?" if number is None else f"node {number}"


def missing_ranks(runs: Sequence[NodeRun]) -> list[int]:
    """Return the ranks of the training of which no recording has anything."""
    said = max((run.job.world_size or 0 for run in runs), default=0)
    known = set().union(*map(_rank_numbers, runs))
    return sorted(set(range(said)) - known) if known else []


def host_words(runs: Sequence[NodeRun]) -> str:
    """Return a host name that several nodes share, empty where each has its own."""
    hosts = Counter(run.host for run in runs if run.host)
    return next((host for host, count in hosts.most_common(1) if count > 1), "")


def unequal(runs: Sequence[NodeRun]) -> str:
    """Return how nodes' GPUs differ, in words; empty where all nodes have the same."""
    kinds = {
        gpu_models(gpu.name for gpu in run.gpus) or "no GPU": name
        for run, name in zip(reversed(runs), reversed(names_of(runs)), strict=True)
    }
    if len(kinds) > 1:
        shown = "; ".join(f"{name} has {kind}" for kind, name in sorted(kinds.items(), key=lambda each: each[1])[:3])
        return shown + (f"; {counted(len(kinds) - 3, 'other kind')}" if len(kinds) > 3 else "")
    memory = [gpu.memory_total_mib for run in runs for gpu in run.gpus if gpu.memory_total_mib]
    if memory and max(memory) - min(memory) > th.UNEQUAL_MEMORY * max(memory):
        return f"their memory is from {min(memory) / 1024:.0f} to {max(memory) / 1024:.0f} GiB"
    return ""

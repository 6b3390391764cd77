"""Which rank is missing from a collective that others wait in, by the traces of torch's flight recorder."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gpu_report.analyse.signals.code.stack_kinds import location_of
from gpu_report.model import CodeLocation, Collective, RankTrace, Run, TracedGroup

PENDING_LEAST_S = 10.0  # before the end: as a drop, below which nothing is called a stall; others may be on their way


@dataclass(frozen=True)
class PendingCollective:
    """A collective that some ranks wait in, and that others have not come to, or that they call otherwise.

    `waiting` ranks called it, `missing` ones did not. `called` is what each rank with a trace called as this number
    where they differ, else empty. Of `untraced` ranks of the group there is no trace. `where` are the lines that call
    it, `last_where` those of the last collective of the ranks that are missing: empty where traces have no stacks.
    """

    collective: Collective
    waiting: tuple[int, ...]
    missing: tuple[int, ...]
    called: Mapping[int, str]
    untraced: tuple[int, ...]
    where: tuple[CodeLocation, ...]
    last_where: tuple[CodeLocation, ...]


def traces_of_the_end(run: Run) -> tuple[RankTrace, ...]:
    """Return the traces of a run, with what never completed only where no epoch ended after it was called.

    One that was made of a training at work has calls under way as well: they came to their end.
    """
    worked_s = max((e.end_t_s for each in run.inside for e in each.epochs if e.end_t_s is not None), default=0.0)
    if any(each.task == "train" and each.ended == "finished" for each in run.inside) or run.recording.exit_code == 0:
        return ()
    until_s = run.duration_s - PENDING_LEAST_S
    return tuple(
        replace(trace, groups=tuple(_of_the_end(group, worked_s, until_s) for group in trace.groups))
        for trace in run.nccl.traces
    )


def _of_the_end(group: TracedGroup, worked_s: float, until_s: float) -> TracedGroup:
    """Return a group without the calls of the last moment, those before the end of an epoch as completed."""
    last = tuple(replace(c, completed=c.completed or c.t_s < worked_s) for c in group.last if c.t_s <= until_s)
    return replace(group, called=group.called - len(group.last) + len(last), last=last)


def find_pending_collective(traces: Sequence[RankTrace]) -> PendingCollective | None:
    """Return the first collective that ranks wait in for others, or that they call otherwise; None without one."""
    groups: dict[tuple[str, tuple[int, ...]], dict[int, TracedGroup]] = {}
    for trace in traces:
        for group in trace.groups:
            if trace.rank in group.ranks:
                groups.setdefault((group.name, group.ranks), {})[trace.rank] = group
    several = ((ranks, of_rank) for (_, ranks), of_rank in groups.items() if len(of_rank) > 1)  # one misses nobody
    held = [_held(ranks, of_rank) for ranks, of_rank in several]
    return min((each for each in held if each is not None), key=lambda each: each.collective.t_s, default=None)


def _held(ranks: Sequence[int], of_rank: Mapping[int, TracedGroup]) -> PendingCollective | None:
    """Return what is held in one process group."""
    # what one rank saw completed is so for all: the others had not looked yet
    done = max((call.number for group in of_rank.values() for call in group.last if call.completed), default=0)
    open_calls = {rank: call for rank, group in of_rank.items() if (call := _first_after(group, done)) is not None}
    if not open_calls:
        return None
    first = min(open_calls.values(), key=lambda call: (call.number, call.t_s))
    same = {rank: call for rank, group in of_rank.items() if (call := _numbered(group, first.number)) is not None}
    missing = tuple(rank for rank, group in of_rank.items() if group.called < first.number)
    differ = len({call.name for call in same.values()}) > 1
    if not missing and not differ:
        return None  # all called it: what held it up is none of theirs
    waiting = tuple(rank for rank, call in same.items() if not call.completed)
    return PendingCollective(
        collective=first,
        waiting=waiting,
        missing=missing,
        called={rank: call.name for rank, call in same.items()} if differ else {},
        untraced=tuple(sorted(set(ranks) - set(of_rank))),
        where=_lines(same[rank] for rank in waiting),
        last_where=_lines(of_rank[rank].last[-1] for rank in missing if of_rank[rank].last),
    )


def _first_after(group: TracedGroup, number: int) -> Collective | None:
    return next((call for call in group.last if call.number > number), None)


def _numbered(group: TracedGroup, number: int) -> Collective | None:
    return next((call for call in group.last if call.number == number), None)


def _lines(calls: Iterable[Collective]) -> tuple[CodeLocation, ...]:
    """Return the lines of the user's or YOLO's code that make calls, those of most ranks first."""
    lines = [line for call in calls if call.stack and (line := location_of(call.stack)) is not None]
    counts = {line: lines.count(line) for line in lines}
    most = sorted(counts, key=lambda line: -counts[line])
    return tuple(CodeLocation.in_main(each, counts[each] / len(lines)) for each in most)

"""`job` of run.json as typed values, and what the ranks of a killed recording said themselves."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpu_report.model import ClockState, InsideRun, JobPart, Rank
from gpu_report.run_folder import finite

MOST_RANKS = 4096  # on one node
LARGEST = 1_000_000  # ranks or nodes
LONGEST_ID = 64
SCHEDULERS = frozenset({"slurm", "torchrun", "kubernetes"})
LARGEST_ERROR_S = 1e6
# A rank's own names for what run.json has: torchrun tells it of the whole job.
OF_RANK = {"node_rank": "node_rank", "nodes": "nodes", "world_size": "ranks", "restarts": "restarts"}


def load_job(info: Mapping[str, Any], inside: Sequence[InsideRun]) -> JobPart:
    """Return what a recording knows of its job; of what is broken in run.json nothing is known."""
    said = info.get("job")
    job: Mapping[str, Any] = said if isinstance(said, Mapping) else {}
    clock = job.get("clock")
    clocks = clock if isinstance(clock, Mapping) else {}
    reported = [run for run in inside if run.task == "train" and "local_rank" in run.settings]
    counts = {name: _count(job.get(name)) for name in OF_RANK}
    for name, theirs in OF_RANK.items():
        if counts[name] is None and reported:
            counts[name] = _count(reported[-1].settings.get(theirs))
    scheduler, run_id = job.get("scheduler"), reported[-1].settings.get("run_id") if reported else None
    return JobPart(
        id=_text(job.get("id")) or _text(run_id),
        scheduler=scheduler if isinstance(scheduler, str) and scheduler in SCHEDULERS else None,
        **counts,
        ranks=_ranks(job.get("ranks")) or _reported(reported),
        clock_start=_clock(clocks.get("start")),
        clock_end=_clock(clocks.get("end")),
    )


def _ranks(value: object) -> tuple[Rank, ...]:
    entries = value[:MOST_RANKS] if isinstance(value, list) else []
    found = [_rank(entry) for entry in entries if isinstance(entry, Mapping)]
    return tuple(rank for rank in found if rank is not None)


def _rank(entry: Mapping[str, Any]) -> Rank | None:
    number = _count(entry.get("rank"))
    if number is None:
        return None
    return Rank(number, _count(entry.get("local_rank")), _text(entry.get("gpu_uuid")), _count(entry.get("pid")))


def _reported(runs: Sequence[InsideRun]) -> tuple[Rank, ...]:
    """Return the ranks as they said who they are, of each the last process."""
    found = {
        run.rank: Rank(run.rank, _count(run.settings.get("local_rank")), _text(run.settings.get("gpu_uuid")), run.pid)
        for run in runs
    }
    return tuple(found[number] for number in sorted(found))


def _clock(value: object) -> ClockState | None:
    if not isinstance(value, Mapping):
        return None
    synchronised = value.get("synchronised")
    offset = finite(value.get("offset_s"))
    return ClockState(
        synchronised if isinstance(synchronised, bool) else None,
        offset if offset is not None and abs(offset) <= LARGEST_ERROR_S else None,
        _error(value.get("max_error_s")),
        _error(value.get("estimated_error_s")),
    )


def _error(value: object) -> float | None:
    number = finite(value)
    return number if number is not None and 0 <= number <= LARGEST_ERROR_S else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST else None


def _text(value: object) -> str | None:
    return value[:LONGEST_ID] if isinstance(value, str) and value else None

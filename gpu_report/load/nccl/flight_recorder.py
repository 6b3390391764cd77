"""The traces of torch's flight recorder in JSON (`_dump_fr_trace_json`), a file a rank; its pickles are never read.

The fields are those of FlightRecorder.hpp in torch (version 2.x): `entries` with `process_group` [name, description],
`collective_seq_id`, `profiling_name`, `state` and, in traces that were pickles before, `frames`; `pg_config` with the
ranks of each group. Which rank it is of, only the file's name says, as torch's own tool takes it: its last number.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from gpu_report import schema
from gpu_report.load.run_clock import RunClock
from gpu_report.load.stack_tables import DEEPEST
from gpu_report.load.yolo.callback_lines import text, whole
from gpu_report.model import Collective, Frame, RankTrace, Stack, TracedGroup
from gpu_report.ordinary_file import MIB, open_ordinary
from gpu_report.run_folder import finite, stamp

LARGEST: Final = 8 * MIB  # a trace of 2,000 collectives has 3 MiB with their stacks; as objects it takes ten times that
LARGEST_ALL: Final = 64 * MIB
MAJOR: Final = "2."
MOST_GROUPS: Final = 64
MOST_RANKS: Final = 100_000
MOST_ENTRIES: Final = 20_000  # torch keeps 2,000 unless told otherwise
LAST: Final = 128  # collectives that are kept of a group
COMPLETED: Final = "completed"
_RANK = re.compile(r"(\d{1,6})\D*$")
_NUMBER = re.compile(r"\d{1,6}")
_PREFIX = re.compile(r"^\w+:")  # nccl:all_reduce

Json = Mapping[str, Any]


def read_traces(paths: Sequence[Path], clock: RunClock, duration_s: float) -> tuple[tuple[RankTrace, ...], list[str]]:
    """Return the traces by rank, and what could not be read; of several of a rank the last by name counts."""
    found: dict[int, RankTrace] = {}
    problems, left = [], LARGEST_ALL
    for path in paths:
        name, rank = f"{schema.NCCL_DIR}/{path.name}", _RANK.search(path.stem)
        try:
            with open_ordinary(path) as file:
                data = file.read(min(LARGEST, left) + 1)
        except OSError as error:
            problems.append(f"{name} could not be read ({error.strerror})")
            continue
        if len(data) > min(LARGEST, left):
            problems.append(f"{name} is too large, and left out")
            continue
        left -= len(data)
        value = _object(data)
        if rank is None or not str(value.get("version", "")).startswith(MAJOR):
            what = "names no rank at the end of its name" if rank is None else "is no trace in JSON of version 2"
            problems.append(f"{name} {what}, and left out")
            continue
        found[int(rank[1])] = RankTrace(int(rank[1]), _groups(value, clock, duration_s))
    return tuple(found[rank] for rank in sorted(found)), problems


def _object(data: bytes) -> Json:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _groups(value: Json, clock: RunClock, duration_s: float) -> tuple[TracedGroup, ...]:
    ranks = _ranks_of_groups(value.get("pg_config"))
    entries = value.get("entries")
    called: dict[str, dict[int, Collective]] = {}
    for entry in entries[-MOST_ENTRIES:] if isinstance(entries, list) else []:
        name = _group_of(entry)
        if name in ranks and (collective := _collective(entry, clock, duration_s)) is not None:
            called.setdefault(name, {})[collective.number] = collective
    so_far = _called_so_far(value.get("pg_status"))
    return tuple(
        TracedGroup(name, members, max(so_far.get(name, 0), *mine, 0), tuple(mine[at] for at in sorted(mine)[-LAST:]))
        for name, members in ranks.items()
        if (mine := called.get(name, {})) or name in so_far
    )


def _called_so_far(status: object) -> dict[str, int]:
    """Return how many collectives of each group were called: one that has none in a trace may not have begun."""
    groups = list(status.items())[:MOST_GROUPS] if isinstance(status, dict) else []
    last = {name: said.get("last_enqueued_collective") for name, said in groups if isinstance(said, dict)}
    return {name: max(number, 0) for name, number in last.items() if isinstance(number, int)}


def _ranks_of_groups(config: object) -> dict[str, tuple[int, ...]]:
    """Return the ranks of each group; torch writes them as text ("[0, 1]")."""
    groups = list(config.items())[:MOST_GROUPS] if isinstance(config, dict) else []
    found = {}
    for name, group in groups:
        said = group.get("ranks") if isinstance(group, dict) else None
        written = said if isinstance(said, str) else json.dumps(said) if isinstance(said, list) else ""
        ranks = sorted({int(each) for each in _NUMBER.findall(written)[:MOST_RANKS]})
        if ranks:
            found[name] = tuple(ranks)
    return found


def _group_of(entry: object) -> str:
    named = entry.get("process_group") if isinstance(entry, dict) else None
    return named[0] if isinstance(named, list) and named and isinstance(named[0], str) else ""


def _collective(entry: Json, clock: RunClock, duration_s: float) -> Collective | None:
    """Return a collective, None for what is none of all ranks (send, receive), or not of this run."""
    number, name = whole(entry.get("collective_seq_id")), text(entry.get("profiling_name"))
    created_ns = finite(entry.get("time_created_ns"))
    wall_s = None if created_ns is None else stamp(created_ns / 1e9)
    if not number or not name or wall_s is None or entry.get("is_p2p") is True:
        return None
    t_s = clock.t(wall_s, None)
    if not 0 <= t_s <= duration_s:
        return None
    return Collective(number, _PREFIX.sub("", name), t_s, entry.get("state") == COMPLETED, _stack(entry.get("frames")))


def _stack(said: object) -> Stack:
    frames = said[:DEEPEST] if isinstance(said, list) else []
    return tuple(
        Frame(text(each.get("filename")) or "", whole(each.get("line")) or 0, text(each.get("name")) or "")
        for each in frames
        if isinstance(each, dict)
    )

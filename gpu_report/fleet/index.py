"""Indexing: which runs are new or changed, their analysis by workers, and their rows into the fleet's parts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_report import __version__
from gpu_report.errors import InputError
from gpu_report.fleet.cells import columns_of
from gpu_report.fleet.places import RunPlace, UnlistedFolders, find_runs, root_of, shown
from gpu_report.fleet.read_runs import FAILED, ReadRun
from gpu_report.fleet.store import PART_RUNS, WHOLE, Shard, Store, StoredPart
from gpu_report.fleet.tables import TABLES, arrow_schema
from gpu_report.fleet.workers import Workers, read_all

if TYPE_CHECKING:
    import pyarrow as pa

WRITE_S = 120.0  # until what was read is written: what a command that is killed loses at most, but for the last part

Say = Callable[[str], None]


@dataclass(frozen=True)
class Indexed:
    """What an indexing came to: numbers of runs. `failed` are all that cannot be read, `read` those analysed now.

    `unread` are folders that could not be listed, `empty` those where the fleet has runs: what it has of them stays.
    """

    runs: int
    read: int
    removed: int
    failed: int
    reasons: tuple[tuple[str, str], ...]
    unread: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()


def index(
    folders: Sequence[str], output: Path, start: Callable[[], Workers], shard: Shard = WHOLE, say: Say = lambda _: None
) -> Indexed:
    """Bring a fleet up to date with the runs below some folders; InputError for a folder that has none.

    Runs below other folders stay as they are. `start` is called when there is something to analyse.
    """
    store = Store(output, shard)
    roots = [root_of(folder) for folder in folders]
    with store.claimed():
        say("looking for runs ...")
        unseen = UnlistedFolders()
        places = _found(roots, unseen)
        mine = {key: place for key, place in places.items() if shard.has(key)}
        parts = store.parts()
        missing = _missing(parts, mine, roots)
        gone = _gone(missing, [*unseen.unread, *unseen.empty])
        todo = _todo(parts, mine)
        writer = _PartWriter(store, parts)
        if todo:
            _read(todo, start(), writer, say)
        writer.finish(gone)
        done = _summed_up(store, len(todo), len(gone))
        return replace(done, unread=_shown(unseen.unread), empty=_shown(_holding(unseen.empty, missing)))


def _found(roots: Sequence[str], unseen: UnlistedFolders) -> dict[str, RunPlace]:
    places: dict[str, RunPlace] = {}
    for root in roots:
        found = {place.key: place for place in find_runs(root, unseen)}
        if not found:
            raise InputError(f"no run below {shown(root)}: name a folder that holds run folders, or mount it first")
        places |= found
    return places


def _todo(parts: Sequence[StoredPart], places: Mapping[str, RunPlace]) -> list[RunPlace]:
    """Return the runs that are new, or changed, or analysed by another version; those of one part stay together."""
    known: dict[str, tuple[int, tuple[object, object]]] = {}
    for number, part in enumerate(parts):
        columns = part.manifest
        for key, *facts in zip(columns["run"], columns["fingerprint"], columns["version"], strict=True):
            known[str(key)] = number, (facts[0], facts[1])
    late = [
        (known[key][0] if key in known else len(parts), key)
        for key, place in places.items()
        if key not in known or known[key][1] != (place.fingerprint, __version__)
    ]
    return [places[key] for _, key in sorted(late)]


def _missing(parts: Sequence[StoredPart], places: Mapping[str, RunPlace], roots: Sequence[str]) -> dict[str, str]:
    """Return the runs of the fleet that were below the roots and are no longer found: their paths by key."""
    above = tuple(map(_inside, roots))
    return {
        str(key): str(path)
        for part in parts
        for key, path in zip(part.manifest["run"], part.manifest["path"], strict=True)
        if key not in places and f"{path}/".startswith(above)
    }


def _gone(missing: Mapping[str, str], unseen: Sequence[str]) -> set[str]:
    """Return the runs that are not found, but for those below folders in which nobody could see them."""
    within = tuple(map(_inside, unseen))
    return {key for key, path in missing.items() if not f"{path}/".startswith(within)}


def _holding(folders: Sequence[str], missing: Mapping[str, str]) -> list[str]:
    """Return the folders below which there were runs that are not found."""
    return [folder for folder in folders if any(f"{path}/".startswith(_inside(folder)) for path in missing.values())]


def _inside(folder: str) -> str:
    """Return how the paths of a folder's runs begin."""
    return f"{shown(folder).rstrip('/')}/"


def _shown(folders: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(shown, folders))


def _read(todo: Sequence[RunPlace], workers: Workers, writer: _PartWriter, say: Say) -> None:
    """Have runs analysed, and written as they come; what came before an interruption is written, too."""
    begun = time.monotonic()
    try:
        for number, read in enumerate(read_all(todo, workers), 1):
            writer.add(read)
            rate = number / max(time.monotonic() - begun, 1e-3)
            say(f"{number:,} of {len(todo):,} runs analysed, {rate:.0f} a second ...")
    except KeyboardInterrupt:
        writer.finish(set())
        raise
    finally:
        workers.close()


class _PartWriter:
    """Takes rows of runs and writes parts: the last one that is not full is taken up and filled."""

    def __init__(self, store: Store, parts: Sequence[StoredPart]) -> None:
        self._store = store
        self._parts = list(parts)
        self._held: list[ReadRun] = []
        self._written = time.monotonic()

    def add(self, read: ReadRun) -> None:
        """Take a run, and write those that were taken once they are enough for a part, or it is time."""
        self._held.append(read)
        if len(self._held) >= PART_RUNS or time.monotonic() - self._written > WRITE_S:
            self._write(set())

    def finish(self, gone: set[str]) -> None:
        """Write what is left, and take out runs that are gone."""
        if self._held or gone:
            self._write(gone)

    def _write(self, gone: set[str]) -> None:
        keys = {read.key for read in self._held} | gone
        taken = [part for part in self._parts if keys.intersection(part.runs)]
        room = PART_RUNS - len(self._held) - sum(len(part.runs) for part in taken)
        for part in sorted((part for part in self._parts if part not in taken), key=lambda part: len(part.runs)):
            if len(part.runs) <= room:
                taken.append(part)
                room -= len(part.runs)
        self._store.write({name: self._rows(name, taken, keys) for name in TABLES}, taken)
        self._parts = self._store.parts()
        self._held, self._written = [], time.monotonic()

    def _rows(self, name: str, parts: Iterable[StoredPart], without: set[str]) -> pa.Table:
        """Return the rows of a table that are held, and those of parts without some runs."""
        import pyarrow as pa  # noqa: PLC0415 - the extra [fleet]
        import pyarrow.compute as pc  # noqa: PLC0415 - likewise

        rows = [row for read in self._held for row in read.tables[name]]
        schema = arrow_schema(name)
        held = pa.Table.from_pydict(columns_of(name, rows), schema=schema)
        drop = pa.array(sorted(without), pa.string())
        kept = [table.filter(pc.invert(pc.is_in(table["run"], value_set=drop))) for table in _tables(name, parts)]
        return pa.concat_tables([held, *(each.cast(schema) for each in kept)])


def _tables(name: str, parts: Iterable[StoredPart]) -> list[pa.Table]:
    return [part.table(name) for part in parts]


def _summed_up(store: Store, read: int, removed: int) -> Indexed:
    rows = [
        (str(path), str(error), status)
        for part in store.parts()
        for path, error, status in zip(*(part.manifest[name] for name in ("path", "error", "status")), strict=True)
    ]
    reasons = tuple(sorted((path, error) for path, error, status in rows if status == FAILED))
    return Indexed(len(rows), read, removed, len(reasons), reasons)

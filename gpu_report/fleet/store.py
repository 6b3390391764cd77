"""The folder of a fleet: parts of about a thousand runs, each a folder with a Parquet file a table.

    FLEET/parts/1-of-4-000002-9f3a61c2/{runs,gpus,epochs,findings,ledger,locations,manifest}.parquet, part.json

A part is written beside, appears by one rename, and is never changed: what changes in it is written as a new part that
names those it takes the place of. Whoever is killed on the way leaves both, and readers leave out what another names.
A shard writes and removes parts of its own only, so that no lock between shards is needed.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_report import run_folder
from gpu_report.errors import GpuReportError, InputError, UsageError, unwritable
from gpu_report.fleet.extra import need
from gpu_report.fleet.tables import FORMAT, TABLES, arrow_schema
from gpu_report.wording import counted

if TYPE_CHECKING:
    import pyarrow as pa

PARTS, FACTS = "parts", "part.json"
PART_RUNS = 1000  # of a part: DuckDB read 2,561 small files in 55 s, and the same in larger ones in 2 s (dripline #14)
COMPRESSION, LEVEL = "zstd", 3
# Columns of the manifest that are held; Arrow would load pandas for the time in `indexed`.
MANIFEST_KEPT = ("run", "path", "fingerprint", "version", "status", "error")
_LOCK = re.compile(r"\.\d+-of-(\d+)-lock")
_NAME = re.compile(r"(\d+)-of-(\d+)-(\d+)-[0-9a-f]{8}")


@dataclass(frozen=True)
class Shard:
    """The `number`-th (from 1) of `count` equal shares of all runs."""

    number: int = 1
    count: int = 1

    @property
    def prefix(self) -> str:
        """Return how the names of its parts begin."""
        return f"{self.number}-of-{self.count}-"

    def has(self, key: str) -> bool:
        """Tell whether a run belongs to it."""
        return int(key, 16) % self.count == self.number - 1


WHOLE = Shard()


@dataclass(frozen=True, eq=False)
class StoredPart:
    """A part that counts: its folder, and what is held of its manifest (MANIFEST_KEPT) as columns by name."""

    folder: Path
    manifest: Mapping[str, list[object]]

    @property
    def runs(self) -> list[str]:
        """Return the keys of its runs."""
        return [str(key) for key in self.manifest["run"]]

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a table of it."""
        import pyarrow.parquet as pq  # noqa: PLC0415 - the extra [fleet]

        return pq.ParquetFile(self.folder / f"{name}.parquet").read(columns)  # read_table would load pandas


class Store:
    """A fleet's folder, as one shard of it writes it."""

    def __init__(self, folder: Path, shard: Shard = WHOLE) -> None:
        """Take a folder; UsageError where it holds something else."""
        need("pyarrow")
        self.folder, self.shard = folder, shard
        self._places = folder / PARTS
        if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not self._places.is_dir())):
            raise UsageError(f"{folder} is no fleet, and not empty: name another folder with --output")

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Keep other indexers of the shard away; UsageError where there is one, or the fleet has other shards."""
        self._refuse_other_shards()
        try:
            self._places.mkdir(parents=True, exist_ok=True)
            lock = (self.folder / f".{self.shard.prefix}lock").open("a")
        except OSError as error:
            why = unwritable(self.folder, error, "name another with --output")
            raise UsageError(f"{self.folder} cannot be written: {why}") from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UsageError(f"{self.folder} is being indexed by another command: wait for its end") from error
            except OSError:  # a file system without locks: nobody can be kept away
                pass
            self._refuse_other_counts()  # which have their own lock before they look for this one
            self._refuse_other_shards()
            self._clean()
            yield

    def parts(self) -> list[StoredPart]:
        """Return the parts of this shard that can be read; of what is damaged its runs are indexed anew."""
        return read_parts(folder for folder in live_folders(self.folder) if folder.name.startswith(self.shard.prefix))

    def write(self, tables: Mapping[str, pa.Table], replaced: Sequence[StoredPart]) -> None:
        """Write tables as one part, or several where they have more runs than one may, in the place of others."""
        order = tables["manifest"].sort_by("run")
        keys = order["run"].to_pylist()
        count = max(-(-len(keys) // PART_RUNS), 1) if keys else 0
        names = self._new_names(count)
        facts = {"format": FORMAT, "replaces": [part.folder.name for part in replaced], "with": names}
        for at, name in enumerate(names):
            first, last = at * len(keys) // count, (at + 1) * len(keys) // count
            self._write_part(name, {each: _of_runs(table, keys[first:last]) for each, table in tables.items()}, facts)
        for part in replaced:
            self._remove(part.folder)

    def _new_names(self, count: int) -> list[str]:
        numbers = [int(found[3]) for path in self._places.iterdir() if (found := _NAME.fullmatch(path.name))]
        first = max(numbers, default=0) + 1
        return [f"{self.shard.prefix}{first + at:06d}-{secrets.token_hex(4)}" for at in range(count)]

    def _write_part(self, name: str, tables: Mapping[str, pa.Table], facts: Mapping[str, object]) -> None:
        import pyarrow.parquet as pq  # noqa: PLC0415 - the extra [fleet]

        beside = self._places / f".{name}.part"
        beside.mkdir()
        for table, rows in tables.items():
            pq.write_table(rows, beside / f"{table}.parquet", compression=COMPRESSION, compression_level=LEVEL)
        run_folder.write_json(beside / FACTS, dict(facts))
        _to_disk(beside)
        beside.rename(self._places / name)

    def _refuse_other_shards(self) -> None:
        for folder in live_folders(self.folder):
            found = _NAME.fullmatch(folder.name)
            if found and int(found[2]) != self.shard.count:
                has, asked = counted(int(found[2]), "shard"), self.shard.count
                raise UsageError(f"{self.folder} has parts of {has}, not of {asked}: name another folder with --output")

    def _refuse_other_counts(self) -> None:
        """Raise UsageError while the fleet is indexed in another number of shards, which may have no parts yet."""
        for path in self.folder.glob(".*-lock"):
            found = _LOCK.fullmatch(path.name)
            if found and int(found[1]) != self.shard.count and _is_locked(path):
                shards, asked = counted(int(found[1]), "shard"), self.shard.count
                raise UsageError(f"{self.folder} is being indexed in {shards}, not in {asked}: wait for its end")

    def _clean(self) -> None:
        """Remove what a killed indexer of this shard left, replaced or not finished, and what nobody can read."""
        alive = {part.folder.name for part in self.parts()}
        for path in self._places.iterdir():
            if path.name.lstrip(".").startswith(self.shard.prefix) and path.name not in alive:
                self._remove(path)

    def _remove(self, folder: Path) -> None:
        """Remove a part at once for readers, whatever becomes of its files."""
        hidden = folder.with_name(f".{folder.name.lstrip('.')}.gone")
        with suppress(OSError):
            folder.rename(hidden)
        shutil.rmtree(hidden if hidden.exists() else folder, ignore_errors=True)


def _is_locked(path: Path) -> bool:
    try:
        with path.open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # likewise
        return False
    return False


def live_folders(fleet: Path) -> list[Path]:
    """Return the folders of a fleet's parts that count, by name; InputError for those of a newer gpu-report."""
    found = sorted(path for path in (fleet / PARTS).glob("*-of-*") if _NAME.fullmatch(path.name))
    facts = {path.name: _facts(path) for path in found}
    newer = [name for name, fact in facts.items() if _format(fact) > FORMAT]
    if newer:
        raise InputError(
            f"{fleet} was indexed by a newer gpu-report (format {_format(facts[newer[0]])}): update this one"
        )
    whole = {name for name, fact in facts.items() if _is_whole(fact, facts.keys())}
    replaced = {each for name in whole for each in _listed(facts[name], "replaces")}
    return [path for path in found if path.name in whole - replaced]


def _is_whole(fact: Mapping[str, object], there: Set[str]) -> bool:
    """Tell whether the parts of one write are all there: of a write that was cut off none counts, but what it replaces.

    What it replaces goes last; after that its parts may be replaced one by one.
    """
    return all(name in there for name in _listed(fact, "with")) or there.isdisjoint(_listed(fact, "replaces"))


def read_parts(folders: Iterator[Path]) -> list[StoredPart]:
    """Return the parts in folders, without those that cannot be read or have another format: they count as none."""
    parts = []
    for folder in folders:
        if _format(_facts(folder)) != FORMAT:
            continue
        with suppress(GpuReportError):
            parts.append(StoredPart(folder, _manifest(folder)))
    return parts


def _manifest(folder: Path) -> Mapping[str, list[object]]:
    import pyarrow as pa  # noqa: PLC0415 - the extra [fleet]
    import pyarrow.parquet as pq  # noqa: PLC0415 - likewise

    try:
        file = pq.ParquetFile(folder / "manifest.parquet")
        read = file.read(list(MANIFEST_KEPT))
        missing = [name for name in TABLES if not (folder / f"{name}.parquet").is_file()]
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{folder}: {error}") from error
    if missing or file.schema_arrow.names != arrow_schema("manifest").names:
        raise InputError(f"{folder} lacks tables")
    columns: dict[str, list[object]] = read.to_pydict()
    return columns


def _of_runs(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Return the rows of some runs, by run: what was written first within a run stays first."""
    import pyarrow as pa  # noqa: PLC0415 - the extra [fleet]
    import pyarrow.compute as pc  # noqa: PLC0415 - likewise

    kept = table.filter(pc.is_in(table["run"], value_set=pa.array(keys, pa.string())))
    places = pa.array(range(kept.num_rows), pa.int64())
    return kept.append_column("_", places).sort_by([("run", "ascending"), ("_", "ascending")]).drop_columns("_")


def _facts(folder: Path) -> Mapping[str, object]:
    try:
        return run_folder.read_json(folder / FACTS)
    except InputError:
        return {}


def _format(facts: Mapping[str, object]) -> int:
    found = facts.get("format")
    return found if isinstance(found, int) else 0


def _listed(facts: Mapping[str, object], name: str) -> list[str]:
    found = facts.get(name)
    return [str(each) for each in found] if isinstance(found, list) else []


def _to_disk(folder: Path) -> None:
    """Have the disk keep a part before it appears: the files that it replaces are then removed."""
    for path in (*folder.iterdir(), folder):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

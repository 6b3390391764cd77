"""Fleets for tests: runs copied from sample_runs, and an executor that works at once, in this process."""

import shutil
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from pathlib import Path

from gpu_report.fleet.index import Indexed, index
from gpu_report.fleet.store import WHOLE, Shard, live_folders, read_parts
from gpu_report.fleet.tables import TABLES
from gpu_report.fleet.workers import Workers

SAMPLES = Path(__file__).resolve().parents[2] / "sample_runs"
CHANGES = ("indexed",)  # of a manifest: what no two indexings share


class AtOnce(Executor):
    """Does what is submitted at once; `dies` says of which addresses its worker is killed."""

    def __init__(self, dies: Callable[[str], bool] = lambda _: False):
        self.dies, self.broken = dies, False

    def submit(self, do, /, *arguments, **named):
        if self.broken:
            raise BrokenExecutor
        future = Future()
        if any(self.dies(place.address) for place in arguments[0]):
            self.broken = True
            future.set_exception(BrokenExecutor())
        else:
            future.set_result(do(*arguments, **named))
        return future


def at_once(dies: Callable[[str], bool] = lambda _: False) -> Workers:
    return Workers(lambda: AtOnce(dies), 2, 1, 20, (BrokenExecutor,), lambda pool: None)


def copied(folder: Path, **names: str) -> Path:
    """Copy sample runs into a folder: their new names, and which sample each is of."""
    for name, sample in names.items():
        shutil.copytree(SAMPLES / sample, folder / name)
    return folder


def indexed(runs: Path | str, fleet: Path, shard: Shard = WHOLE, workers: Workers | None = None) -> Indexed:
    return index([str(runs)], fleet, lambda: workers or at_once(), shard)


def tables_of(fleet: Path) -> dict[str, list[dict]]:
    """Return all rows of a fleet by table, in an order of their own; without what no two indexings share."""
    found = {}
    for name in TABLES:
        rows = [row for part in read_parts(iter(live_folders(fleet))) for row in part.table(name).to_pylist()]
        kept = [{key: value for key, value in row.items() if key not in CHANGES} for row in rows]
        found[name] = sorted(kept, key=lambda row: [(value is not None, str(value)) for value in row.values()])
    return found

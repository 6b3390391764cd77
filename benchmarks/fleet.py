"""How fast many runs are indexed, and whether all ways to do so agree: `fleet.py [--runs 10000] [--folder DIR]`.

Runs are made of sample_runs/, with other times, hosts and users, and one in a hundred damaged. They share most of their
files (hard links), so that ten thousand take little room. What is measured: runs a second and core; one Dask worker
against two; workers of which one is killed; four shards; 100 new runs among the others; the page and its first paint.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from gpu_report.fleet.store import StoredPart, live_folders, read_parts
from gpu_report.fleet.tables import TABLES

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "sample_runs"
WEEK_S = 7 * 86400
WEEKS = 8
WALL = re.compile(rb"(?<![\d.])1[67]\d{8}(?=\.\d)")  # a wall time of the sample runs
USERS = [f"user-{number:02d}" for number in range(40)]
PROJECTS = ["road-signs", "harvest", "x-ray", "retail", "drones", "barcodes", None]
HOSTS = [f"node-{number:03d}" for number in range(64)]
DAMAGED = 100  # one in so many
GPU_REPORT = (sys.executable, "-m", "gpu_report", "fleet")


def make(folder: Path, first: int, count: int, jobs: int = 1) -> None:
    """Make runs number `first` and on."""
    bases, some = _bases(folder), 200
    with ProcessPoolExecutor(jobs) as pool:
        numbers = [range(at, min(at + some, first + count)) for at in range(first, first + count, some)]
        list(pool.map(_make, [folder] * len(numbers), [bases] * len(numbers), numbers))


def _make(folder: Path, bases: list[Path], numbers: range) -> None:
    for number in numbers:
        pick = random.Random(number)
        base = bases[number % len(bases)]
        run = folder / "runs" / f"user-{number % 97:02d}" / f"run-{number:06d}"
        shutil.copytree(base, run, copy_function=os.link)
        _own_facts(run, pick)
        if number % DAMAGED == DAMAGED - 1:
            _DAMAGES[number // DAMAGED % len(_DAMAGES)](run)


def _bases(folder: Path) -> list[Path]:
    """Return each sample run in each week, made once."""
    bases = []
    for week in range(WEEKS):
        for sample in sorted(path for path in SAMPLES.iterdir() if (path / "run.json").is_file()):
            base = folder / "bases" / f"{sample.name}-{week}"
            bases.append(base)
            if not base.exists():
                shutil.copytree(sample, base)
                for path in (path for path in base.rglob("*") if path.is_file()):
                    data = path.read_bytes()
                    path.write_bytes(WALL.sub(lambda found, by=week: str(int(found[0]) - by * WEEK_S).encode(), data))
    return bases


def _own_facts(run: Path, pick: random.Random) -> None:
    info = json.loads((run / "run.json").read_text())
    user = USERS[min(int(pick.expovariate(0.15)), len(USERS) - 1)]
    facts = {
        "user": user,
        "project": pick.choice(PROJECTS),
        "host": {**info.get("host", {}), "name": pick.choice(HOSTS)},
    }
    _replace(run / "run.json", json.dumps({**info, **facts}).encode())


def _replace(path: Path, data: bytes) -> None:
    path.unlink(missing_ok=True)  # it is a link
    path.write_bytes(data)


def _of_newer_format(run: Path) -> None:
    _replace(run / "run.json", json.dumps({**json.loads((run / "run.json").read_text()), "format": 99}).encode())


def _pipe(run: Path) -> None:
    (run / "samples.csv").unlink()
    os.mkfifo(run / "samples.csv")


def _link_out(run: Path) -> None:
    (run / "samples.csv").unlink()
    (run / "samples.csv").symlink_to("/etc/hostname")


_DAMAGES: tuple[Callable[[Path], None], ...] = (
    lambda run: _replace(run / "samples.csv", b""),
    lambda run: _replace(run / "samples.csv", b"hello\n"),
    lambda run: _replace(run / "samples.csv", os.urandom(20_000)),
    lambda run: _replace(run / "samples.csv", (run / "samples.csv").read_bytes().partition(b"\n")[0]),
    lambda run: (run / "samples.csv").unlink(),
    lambda run: _replace(run / "run.json", b'{"format": 1, "start": {"wall'),  # is read all the same
    lambda run: _replace(run / "samples.csv", (run / "samples.csv").read_bytes()[:3000]),  # likewise
    _of_newer_format,
    _pipe,
    _link_out,
)


def timed(what: str, runs: int, do: Callable[[], object]) -> float:
    """Say how long something took, what CPU it used, and how busy the machine was; return the seconds."""
    before, begun = os.times(), time.perf_counter()
    do()
    seconds, after = time.perf_counter() - begun, os.times()
    cpu_s = sum(after[2:4]) - sum(before[2:4]) + sum(after[:2]) - sum(before[:2])
    cpu = f"{runs / cpu_s:7.1f} runs/CPU-s" if cpu_s > seconds / 10 else " " * 18
    print(f"{what:<44} {seconds:8.1f} s {runs / seconds:8.1f} runs/s {cpu}  load {os.getloadavg()[0]:.1f}", flush=True)
    return seconds


def index(runs: Path, fleet: Path, *options: str) -> None:
    subprocess.run([*GPU_REPORT, "index", str(runs), "--output", str(fleet), *options], check=True, capture_output=True)


def with_dask(runs: Path, fleet: Path, workers: int, count: int, *, kill_after_s: float | None = None) -> float:
    """Index with a LocalCluster of workers of one thread each, one of which may be killed on the way."""
    from distributed import LocalCluster  # noqa: PLC0415 - the extra [fleet]

    with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster:
        from distributed import Client  # noqa: PLC0415 - likewise

        with Client(cluster) as client:
            client.run(_warm)
        command = [*GPU_REPORT, "index", str(runs), "--output", str(fleet), "--scheduler", cluster.scheduler_address]

        def run() -> None:
            child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            if kill_after_s is not None:
                time.sleep(kill_after_s)
                os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
            assert child.wait() == 0

        killed = "" if kill_after_s is None else f", one killed after {kill_after_s:.0f} s"
        return timed(f"Dask, {workers} worker(s){killed}", count, run)


def _warm() -> None:
    from gpu_report.fleet.read_runs import prepare_worker  # noqa: PLC0415 - in a worker

    prepare_worker()


def with_shards(runs: Path, fleet: Path, shards: int, at_once: int) -> None:
    """Index as an array job would: a command a shard, some at a time."""
    for first in range(1, shards + 1, at_once):
        commands = [
            [*GPU_REPORT, "index", str(runs), "--output", str(fleet), "--jobs", "1", "--shard", f"{number}/{shards}"]
            for number in range(first, min(first + at_once, shards + 1))
        ]
        children = [
            subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for command in commands
        ]
        assert [child.wait() for child in children] == [0] * len(children)


def rows_of(fleet: Path) -> dict[str, list[str]]:
    """Return all rows of a fleet by table, sorted; without the time at which they were made."""
    found = {}
    for name in TABLES:
        tables = [part.table(name) for part in read_parts(iter(live_folders(fleet)))]
        kept = [table.drop_columns("indexed") if name == "manifest" else table for table in tables]
        found[name] = sorted(str(list(row.values())) for table in kept for row in table.to_pylist())
    return found


def paint(page: Path) -> float:
    """Return the seconds from opening a page to its table's first rows on the screen, the median of five."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - for the tests

    sys.path.insert(0, str(ROOT / "tests"))
    from support.chromium import find_chromium  # noqa: PLC0415 - likewise

    times = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox", "--disable-gpu"])
        for _ in range(5):
            opened = browser.new_page(viewport={"width": 1280, "height": 900})
            begun = time.perf_counter()
            opened.goto(page.as_uri())
            opened.wait_for_selector("html[data-ready=yes]")
            opened.screenshot()
            times.append(time.perf_counter() - begun)
            opened.close()
        browser.close()
    return sorted(times)[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/gpu-report-fleet"))
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument(
        "--scaling-runs", type=int, default=1000, help="for one process, and one Dask worker against two"
    )
    parser.add_argument("--no-browser", action="store_true")
    asked = parser.parse_args()
    folder, count, few = asked.folder, asked.runs, min(asked.scaling_runs, asked.runs)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    timed("made", count, lambda: make(folder, 0, count, asked.jobs))
    runs, fleets = folder / "runs", {name: folder / name for name in ("processes", "dask", "shards")}
    few_runs = folder / "few"
    few_runs.mkdir()
    for path in sorted(runs.glob("*/*"))[:: max(count // few, 1)][:few]:
        shutil.copytree(path, few_runs / path.name, symlinks=True, copy_function=_link)
    timed("one process", few, lambda: index(few_runs, folder / "one", "--jobs", "1"))
    one_s = with_dask(few_runs, folder / "dask-1", 1, few)
    two_s = with_dask(few_runs, folder / "dask-2", 2, few)
    print(f"two Dask workers are {one_s / two_s / 2:.2f} of twice one")
    whole_s = timed(
        f"{asked.jobs} processes", count, lambda: index(runs, fleets["processes"], "--jobs", str(asked.jobs))
    )
    with_dask(runs, fleets["dask"], max(asked.jobs, 2), count, kill_after_s=max(whole_s / 3, 5))
    timed("four shards", count, lambda: with_shards(runs, fleets["shards"], 4, asked.jobs))
    rows = {name: rows_of(fleet) for name, fleet in fleets.items()}
    print("tables are equal:", rows["processes"] == rows["dask"] == rows["shards"])
    print("rows:", {name: len(table) for name, table in rows["processes"].items()})
    failed = sum(status == "failed" for part in _parts(fleets["processes"]) for status in part.manifest["status"])
    print("cannot be read:", failed)
    make(folder, count, 100)
    timed("100 new among the others", 100, lambda: index(runs, fleets["processes"], "--jobs", str(asked.jobs)))
    timed("nothing new", 1, lambda: index(runs, fleets["processes"], "--jobs", str(asked.jobs)))
    size = sum(path.stat().st_size for path in fleets["processes"].rglob("*.parquet"))
    print(f"tables: {size / 1e6:.1f} MB, {size / count:.0f} bytes a run")
    page = folder / "fleet.html"
    timed(
        "page", count, lambda: subprocess.run([*GPU_REPORT, "report", str(fleets["processes"]), str(page)], check=True)
    )
    print(f"page: {page.stat().st_size / 1e6:.2f} MB")
    if not asked.no_browser:
        print(f"painted after {paint(page):.2f} s, load {os.getloadavg()[0]:.1f}")


def _link(source: str, target: str) -> None:
    if Path(source).is_file():
        os.link(source, target)
    else:
        os.mkfifo(target)


def _parts(fleet: Path) -> list[StoredPart]:
    return read_parts(iter(live_folders(fleet)))


if __name__ == "__main__":
    main()

"""The live page for its picture: a recorded run up to a moment, as if that were now."""

import fcntl
import json
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from gpu_report.live import report_so_far
from gpu_report.live.actions import Actions
from gpu_report.live.follower import Follower
from gpu_report.live.reading.run_now import RunNow
from gpu_report.live.report_so_far import Reports
from gpu_report.live.web.access import AccessGuard
from gpu_report.live.web.app import Page

ANALYSIS_S = 8.0  # until the report so far is there: that is when the picture is taken


def replayed(run: Path, until_s: float, into: Path) -> Path:
    """Write a run as it was `until_s` after its start, with its times moved so that this is now."""
    facts = json.loads((run / "run.json").read_text())
    start_s = facts["start"]["wall_s"]
    moved_s = time.time() + ANALYSIS_S - start_s - until_s
    shutil.copytree(run, into)  # what is not of the page (stacks, the host) goes by the recorder's own clock
    for name in ("ring.csv", "host.csv", "processes.csv"):
        _cut(into / name, facts["start"]["mono_s"] + until_s)
    facts["start"]["wall_s"] += moved_s
    (into / "run.json").write_text(json.dumps(facts | {"end": None, "ended_by": None}))
    head, *rows = (run / "samples.csv").read_text().splitlines()
    cells = [row.split(",", 1) for row in rows]
    kept = [f"{float(at_s) + moved_s:.3f},{rest}" for at_s, rest in cells if float(at_s) <= start_s + until_s]
    (into / "samples.csv").write_text("\n".join([head, *kept]) + "\n")
    for path in [run / "events.jsonl", *(run / "inside").glob("*.jsonl")]:
        events = [json.loads(line) for line in path.read_text().splitlines()]
        lines = [_moved(event, moved_s) for event in events if event["wall_s"] <= start_s + until_s]
        (into / path.relative_to(run)).write_text("\n".join(lines) + "\n")
    return into


def _cut(path: Path, until_mono_s: float) -> None:
    head, *rows = path.read_text().splitlines()
    kept = [row for row in rows if float(row.split(",")[1]) <= until_mono_s]
    path.write_text("\n".join([head, *kept]) + "\n")


def _moved(event: dict[str, object], moved_s: float) -> str:
    times = {name: value + moved_s for name, value in event.items() if name in ("wall_s", "start_wall_s")}
    return json.dumps(event | times)


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve the live page of a run folder, as if it were being recorded, and yield its address."""
    report_so_far.FIRST_S = 0.0
    recorded = (folder / "samples.csv").open("rb")
    fcntl.flock(recorded, fcntl.LOCK_EX)
    listening = socket.create_server(("127.0.0.1", 0))
    reports = Reports(folder, None)
    follower = Follower(RunNow(folder), reports, Actions(folder, []), None)
    server = uvicorn.Server(uvicorn.Config(AccessGuard(Page(follower).app(), None), log_level="critical"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
    server.should_exit = server.force_exit = True
    thread.join(10)
    recorded.close()

"""A recording as it was at an earlier moment: its training goes on, and its epoch is not over."""

import json
import shutil
from pathlib import Path


def cut_short(source: Path, folder: Path, seconds: float) -> Path:
    """Copy a run folder without what was recorded later than so many seconds after its start; return the copy."""
    shutil.copytree(source, folder)
    run = json.loads((folder / "run.json").read_text())
    last_wall_s = run["start"]["wall_s"] + seconds
    for path in folder.glob("*.csv"):
        _keep(path, lambda line: line.startswith("wall_s") or float(line.split(",")[0]) <= last_wall_s)
    for path in (*folder.glob("events.jsonl"), *folder.glob("inside/*"), *folder.glob("stacks/*")):
        _keep(path, lambda line: json.loads(line)["wall_s"] <= last_wall_s)
    past_s = run["end"]["wall_s"] - last_wall_s
    run["end"] = {clock: at - past_s for clock, at in run["end"].items()}
    run |= {"ended_by": "duration", "exit_code": None, "exit_signal": None}
    (folder / "run.json").write_text(json.dumps(run))
    for path in folder.glob("yolo/results.csv"):
        path.unlink()  # its rows have no time of their own
    return folder


def _keep(path, is_kept):
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if is_kept(line)))

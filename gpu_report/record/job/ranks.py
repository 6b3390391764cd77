"""Which processes were the ranks of the training, by what our callbacks in them wrote."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpu_report import schema
from gpu_report.ordinary_file import open_ordinary

MOST_FILES = 512  # processes that wrote, on one node
HEAD_BYTES = 1 << 18  # a rank says who it is in its first lines
RUN, SETTINGS = b'"kind": "run"', b'"kind": "settings"'
OF_JOB = {"node_rank": "node_rank", "nodes": "nodes", "world_size": "ranks", "restarts": "restarts", "id": "run_id"}


def reported_job(folder: Path) -> dict[str, Any]:
    """Return the `ranks` of a run folder, and what of schema.RUN_JOB these processes know; empty without any."""
    said = sorted(_said(folder), key=lambda each: each.get("wall_s") or 0.0)
    if not said:
        return {}
    ranks = {
        each["rank"]: {name: each.get(name) for name in ("rank", "local_rank", "gpu_uuid", "pid")} for each in said
    }
    known = {name: said[-1].get(theirs) for name, theirs in OF_JOB.items()}
    known["scheduler"] = "torchrun"  # nobody else starts ranks with these variables
    return {**{n: v for n, v in known.items() if v is not None}, "ranks": [ranks[rank] for rank in sorted(ranks)]}


def _said(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield what each process that is a rank of a training said of itself."""
    try:
        files = sorted((folder / schema.INSIDE_DIR).glob("*.jsonl"))[:MOST_FILES]
    except OSError:
        return
    for path in files:
        try:
            with open_ordinary(path) as file:
                lines = file.read(HEAD_BYTES).splitlines()
        except OSError:
            continue
        found = [_object(line) for line in lines if RUN in line or SETTINGS in line]
        runs = [each for each in found if each.get("kind") == "run" and each.get("task") == "train"]
        if runs and isinstance(runs[-1].get("rank"), int) and "local_rank" in runs[-1]:
            gpus = [each["gpu_uuid"] for each in found if isinstance(each.get("gpu_uuid"), str)]
            yield {**runs[-1], "gpu_uuid": gpus[-1] if gpus else None}


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}  # garbled, or cut
    return value if isinstance(value, dict) else {}

"""Run folders of a job of many nodes, made of one of `benchmarks/tiles.py`: the job's report is measured on them.

    python benchmarks/many_nodes.py --nodes 16 --gpus 8 --hours 1 OUTPUT

Each node has a copy with its own ranks, host and GPUs; one rank waits longer for data. The job's report:

    /usr/bin/time -v gpu-report render job.html OUTPUT
"""

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

import tiles

from gpu_report import schema

SLOW_NODE, SLOW_RANK = 3, 2  # its third rank
SLOWER_S = 1.5  # of each epoch


def make_job(nodes: int, gpus: int, hours: float, output: Path) -> None:
    """Write the run folders of a job."""
    base = output / "base"
    tiles.make_run(tiles.Shape(hours, gpus), base)
    for node in range(nodes):
        folder = output / f"node-{node}"
        shutil.copytree(base, folder)
        _describe(folder, node, nodes, gpus)
        for local in range(gpus):
            _rename(folder / schema.INSIDE_DIR / f"{4000 + local}.jsonl", node, nodes, local, gpus)
    shutil.rmtree(base)


def _describe(folder: Path, node: int, nodes: int, gpus: int) -> None:
    path = folder / schema.RUN_JSON
    info = json.loads(path.read_text())
    ranks = [
        {"rank": node * gpus + local, "local_rank": local, "gpu_uuid": _uuid(node, local), "pid": 4000 + local}
        for local in range(gpus)
    ]
    clock = {"synchronised": True, "offset_s": 0.0, "max_error_s": 0.05, "estimated_error_s": 0.001}
    info["host"]["name"] = f"node-{node}"
    info["gpus"] = [{**gpu, "uuid": _uuid(node, local)} for local, gpu in enumerate(info["gpus"])]
    info["job"] = {
        "id": "4711",
        "scheduler": "slurm",
        "node_rank": node,
        "nodes": nodes,
        "world_size": nodes * gpus,
        "restarts": 0,
        "ranks": ranks,
        "clock": {"source": "adjtimex", "start": clock, "end": clock},
    }
    path.write_text(json.dumps(info, indent=1))


def _uuid(node: int, local: int) -> str:
    return f"GPU-{node:02d}-{local}"


def _rename(path: Path, node: int, nodes: int, local: int, gpus: int) -> None:
    lines = [_changed(json.loads(line), node, nodes, local, gpus) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _changed(line: dict[str, Any], node: int, nodes: int, local: int, gpus: int) -> dict[str, Any]:
    """Return a line as this rank says it."""
    new = dict(line)
    if line["kind"] == "run":
        of_job = {"node_rank": node, "nodes": nodes, "ranks": nodes * gpus, "restarts": 0}
        new |= {"rank": node * gpus + local, "local_rank": local, **of_job}
    if line["kind"] == "settings" and "gpu_uuid" in line:
        new |= {"gpu_uuid": _uuid(node, local), "world_size": nodes * gpus}
    if (node, local) == (SLOW_NODE, SLOW_RANK) and line["kind"] == "epoch":
        new["data_wait_s"] = line["data_wait_s"] + SLOWER_S
    return new


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=16)
    parser.add_argument("--gpus", type=int, default=8)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("output", type=Path)
    args = parser.parse_args()
    make_job(args.nodes, args.gpus, args.hours, args.output)


if __name__ == "__main__":
    main()

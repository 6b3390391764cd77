"""Render every sample run by `gpu-report render`, in a few processes: a process each would mostly import.

    python .ci/sample_reports.py FOLDER

Exits with 1 if any failed; those are named.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from gpu_report.cli import main

SAMPLES = Path(__file__).resolve().parent.parent / "sample_runs"
TOGETHER = 2


def rendered(folder: Path, run: Path) -> bool:
    """Run the command in this process; tell whether it exited with 0."""
    sys.argv = ["gpu-report", "render", str(folder / f"{run.name}.html"), "--run", str(run)]
    try:
        main()
    except SystemExit as ended:
        return not ended.code


if __name__ == "__main__":
    into = Path(sys.argv[1])
    into.mkdir(parents=True, exist_ok=True)
    runs = sorted(path for path in SAMPLES.iterdir() if path.is_dir())
    with ProcessPoolExecutor(TOGETHER) as pool:
        failed = [run.name for run, done in zip(runs, pool.map(partial(rendered, into), runs), strict=True) if not done]
    sys.exit(f"not rendered: {', '.join(failed)}" if failed else 0)

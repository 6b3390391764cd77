"""The page of a fleet for its picture: runs made of sample_runs/, with other weeks, users and projects."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from gpu_report.fleet.figures import read_fleet
from gpu_report.fleet.index import index
from gpu_report.fleet.page import render_fleet_html
from gpu_report.fleet.workers import processes

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import fleet as made_runs

RUNS, PRICE = 264, 2.5


def html() -> str:
    """Return the page."""
    with TemporaryDirectory() as folder:
        base = Path(folder)
        made_runs.make(base, 0, RUNS)
        index([str(base / "runs")], base / "fleet", lambda: processes(None))
        return render_fleet_html(read_fleet(base / "fleet", PRICE), base / "fleet.html")

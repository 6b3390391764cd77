"""`python -m gpu_report.bench PLAN`: what `gpu-report bench` records. PLAN is JSON, the fields of `BenchPlan`."""

import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType

from gpu_report import schema
from gpu_report.bench.benchmark_run import BenchmarkRun, Terminated
from gpu_report.bench.child import Child
from gpu_report.bench.plan import BenchPlan
from gpu_report.inside import RUN_FOLDER_VARIABLE
from gpu_report.terminal import plain

NO_FOLDER = "there is no run folder to write into: its path holds a colon, or its disk does not answer"
NO_FOLDER_CODE = 2
SIGNAL_BASE = 128  # as shells have it


def main() -> int:
    """Run a benchmark within a recording; 1 where no variant has served, 128 + n where signal n ended it."""
    folder = os.environ.get(RUN_FOLDER_VARIABLE)
    if not folder:
        _say(NO_FOLDER)
        return NO_FOLDER_CODE
    logs = Path(folder) / schema.BENCH_LOGS
    logs.mkdir(exist_ok=True)
    benchmark = BenchmarkRun(
        BenchPlan.of(json.loads(sys.argv[1])), Path(folder), lambda name: Child(logs / f"{name}.log"), _say
    )
    signal.signal(signal.SIGTERM, _terminated)  # also then what is known is written
    try:
        return 0 if benchmark.run() else 1
    except Terminated:
        return SIGNAL_BASE + signal.SIGTERM
    except KeyboardInterrupt:
        return SIGNAL_BASE + signal.SIGINT


def _terminated(_number: int, _frame: FrameType | None) -> None:
    raise Terminated


def _say(line: str) -> None:
    sys.stderr.write(f"gpu-report: {plain(line)}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())

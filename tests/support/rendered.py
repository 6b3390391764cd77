"""The reports of the sample runs, rendered in a process of their own while the browser looks at the ones before.

Where SAMPLE_REPORTS names a folder that has them (CI rendered them by `make sample-reports`), those are looked at.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from gpu_report.analyse import analyse
from gpu_report.load import load_run
from gpu_report.model import Options
from gpu_report.render import render_html


def render_sample(run: Path, folder: Path) -> Path:
    """Render a run folder's report into a folder, and return its path."""
    path = folder / f"{run.name}.html"
    made = Path(os.environ.get("SAMPLE_REPORTS", "")) / path.name
    if "SAMPLE_REPORTS" in os.environ and made.is_file():
        return made
    path.write_text(render_html(analyse(load_run(run), Options())), encoding="utf-8")
    return path


@contextmanager
def rendering_ahead(runs: Iterable[Path], folder: Path) -> Iterator[Mapping[str, Future[Path]]]:
    """Yield the report of each run, by the run's name, as it will be there; they are rendered in order."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:  # a fork would inherit the browser's pipes
        yield {run.name: pool.submit(render_sample, run, folder) for run in runs}
        pool.shutdown(cancel_futures=True)

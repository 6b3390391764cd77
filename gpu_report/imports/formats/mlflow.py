"""MLflow's system metrics: a run's folder in `mlruns`, the database `mlflow.db`, or what its REST API answers.

mlflow/system_metrics/metrics/gpu_monitor.py: memory in MB of 10**6 bytes; a value is the mean of the samples since the
one before, every 10 s by default.
"""

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from gpu_report.errors import InputError
from gpu_report.imports.machines import MOST_SHOWN
from gpu_report.imports.parsing.each_log import read_each
from gpu_report.imports.parsing.fields import MIB_PER_MB, Field, first_of, not_imported
from gpu_report.imports.parsing.json_documents import Documents, damage, number
from gpu_report.imports.parsing.readings import Found
from gpu_report.imports.parsing.series import Gathered, SeriesPlace
from gpu_report.imports.parsing.text_file import read_head, read_text
from gpu_report.imports.selection import Selection
from gpu_report.ordinary_file import LARGEST_SMI_LOG, refuse_special

TOOL: Final = "MLflow"
HOW: Final = (
    "name mlflow.db, the folder of a run in mlruns, or the saved JSON of metrics/get-history, with system metrics"
)
FIELDS: Final[Mapping[str, Field]] = {
    "utilization_percentage": Field("gpu_util_pct"),
    "memory_usage_megabytes": Field("memory_used_mib", MIB_PER_MB),
    "power_usage_watts": Field("power_w"),
}
HOST_FIELDS: Final[Mapping[str, Field]] = {
    "cpu_utilization_percentage": Field("cpu_pct"),
    "system_memory_usage_megabytes": Field("memory_used_mib", MIB_PER_MB),
}
_NAME: Final = re.compile(r"system/(?:(?P<node>[^/]+)/)?(?:gpu_(?P<gpu>\d{1,5})_)?(?P<metric>[^/]+)")
_DATABASE: Final = "SQLite format 3\0"
_MILLI: Final = 1e-3
_READINGS: Final = (
    "SELECT run_uuid, key, timestamp, value FROM metrics WHERE key LIKE 'system/%' AND is_nan = 0 ORDER BY timestamp"
)
_METRICS: Final = Path("metrics", "system")

Reading = tuple[str, float, float]  # the metric's key, its time (s) and value


def is_log(path: Path, head: str) -> bool:
    """Tell whether a path is a folder with system metrics of MLflow, its database, or metrics as JSON."""
    if path.is_dir():
        return bool(_runs_in(path))
    return head.startswith(_DATABASE) or ('"key"' in head and '"system/' in head and '"timestamp"' in head)


def read(paths: Sequence[Path], selection: Selection) -> Found:
    """Return the system metrics of one run; InputError where there are none, or where a store has them of several."""
    gathered = Gathered(TOOL, selection)
    run = dict(selection.labels).get("run")
    said, left_out = read_each(paths, lambda path: _read(path, run, gathered), HOW)
    problems = (*left_out, *(one for each in said for one in each), *not_imported(TOOL, gathered.unknown))
    return gathered.found(HOW, problems)


def _read(path: Path, run: str | None, gathered: Gathered) -> tuple[str, ...]:
    refuse_special(path, LARGEST_SMI_LOG)
    said: tuple[str, ...] = ()
    if path.is_dir():
        readings = list(_in_folder(_of_run(_runs_in(path), run, path)))
    elif read_head(path).startswith(_DATABASE):
        readings = _in_database(path, run)
    else:
        documents = Documents(read_text(path, TOOL))
        answers = list(documents)
        readings = [reading for answer in answers for reading in _in_answer(answer)]
        said = (*damage(path, documents), *_more_pages(path, answers))
    for key, stamp_s, value in readings:
        if found := _NAME.fullmatch(key):
            gpu = None if found["gpu"] is None else int(found["gpu"])
            field = (HOST_FIELDS if gpu is None else FIELDS).get(found["metric"])
            shown = found["metric"] if gpu is None else f"gpu_N_{found['metric']}"
            gathered.add(SeriesPlace(shown, found["node"], gpu, field), stamp_s, value)
    return said


def _more_pages(path: Path, answers: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return which metrics go on in a page that is not there: the last page of each names no next one."""
    goes_on = {key: bool(answer.get("next_page_token")) for answer in answers for key, _, _ in _in_answer(answer)}
    cut = sorted(key for key, more in goes_on.items() if more)
    return (f"{path} lacks later readings: ask MLflow with page_token for the rest of {first_of(cut)}.",) if cut else ()


def _runs_in(path: Path) -> dict[str, Path]:
    """Return where a run's folder, an experiment's or a store has system metrics, by the run's id."""
    found = [each for above in ("", "*/", "*/*/") for each in path.glob(f"{above}{_METRICS.as_posix()}")]
    return {each.parent.parent.name: each for each in found}


def _of_run(runs: Mapping[str, Any], run: str | None, path: Path) -> Any:
    """Return what is of the run that was asked for, or of the only one; InputError where there is no such one."""
    if run is None and len(runs) == 1:
        return next(iter(runs.values()))
    if run is not None and run in runs:
        return runs[run]
    names = ", ".join(list(runs)[:MOST_SHOWN])
    if not runs:
        raise InputError(f"{path} holds no system metrics: {HOW}")
    raise InputError(f"{path} has system metrics of {len(runs)} runs: choose one with --label run=ID ({names})")


def _in_folder(folder: Path) -> Iterator[Reading]:
    """Yield the metrics of a run's folder: a file each, its lines a time in ms, a value and a step."""
    for file in sorted(folder.glob("**/*")):
        if not file.is_file():
            continue
        key = f"system/{file.relative_to(folder).as_posix()}"
        for line in read_text(file, TOOL).splitlines():
            words = line.split()
            if len(words) >= 2:
                yield key, number(words[0]) * _MILLI, number(words[1])


def _in_database(path: Path, run: str | None) -> list[Reading]:
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro", uri=True)) as database:
            rows = database.execute(_READINGS).fetchall()
    except sqlite3.Error as error:
        raise InputError(f"{path} cannot be read ({error}): {HOW}") from error
    runs: dict[str, list[Reading]] = {}
    for of, key, stamp_ms, value in rows:
        runs.setdefault(str(of), []).append((str(key), number(stamp_ms) * _MILLI, number(value)))
    readings: list[Reading] = _of_run(runs, run, path)
    return readings


def _in_answer(document: Mapping[str, Any]) -> Iterator[Reading]:
    """Yield the metrics of an answer of metrics/get-history, or a metric alone."""
    metrics = document.get("metrics", [document])
    for metric in metrics if isinstance(metrics, list) else ():
        if isinstance(metric, dict) and isinstance(metric.get("key"), str):
            yield metric["key"], number(metric.get("timestamp")) * _MILLI, number(metric.get("value"))

"""Writing what an import found as a run folder: whole or not at all."""

import csv
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from gpu_report import __version__, run_folder, schema
from gpu_report.errors import UsageError, unwritable
from gpu_report.imports.parsing.readings import ImportedEvent
from gpu_report.inside.on_path.gpu_report_inside.secrets.hide import hide_in_text
from gpu_report.ordinary_file import LARGEST_RESULTS, refuse_special, refuse_way_out
from gpu_report.without_secrets import event_line, safe_arguments


def require_free(output: Path) -> None:
    """Raise UsageError unless `output` can become a new run folder: it does not exist, or is empty."""
    try:
        taken = output.exists() and (not output.is_dir() or any(output.iterdir()))
    except OSError as error:
        raise UsageError(f"{output} cannot be used ({error.strerror}): name another folder with --output") from error
    if taken:
        holds_run = (output / schema.RUN_JSON).exists() or (output / schema.SAMPLES_CSV).exists()
        what = "holds a run already" if holds_run else "exists and is not empty"
        raise UsageError(f"{output} {what}: name a new folder with --output")


def write_whole(output: Path, fill: Callable[[Path], None]) -> None:
    """Let `fill` write a folder beside `output`, then give it its name; UsageError where that cannot be."""
    output = output.absolute()  # `.` has no name to write beside
    beside = output.with_name(f".{output.name}.{os.getpid()}.part")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        beside.mkdir()
        fill(beside)
        beside.replace(output)
    except OSError as error:
        why = unwritable(output, error, "name another folder with --output")
        raise UsageError(f"{output} cannot be written: {why}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def write_samples(folder: Path, samples: pd.DataFrame) -> None:
    """Write samples.csv: the same text as `run_folder.format_row` gives, a column at a time for speed."""
    _write_numbers(folder / schema.SAMPLES_CSV, samples, schema.SAMPLES_COLUMNS)


def _write_numbers(path: Path, rows: pd.DataFrame, columns: Sequence[schema.Column]) -> None:
    """Write columns of numbers as CSV; one that `rows` has not is empty."""
    nothing = [""] * len(rows)
    cells = [_texts(rows[column.name], column) if column.name in rows else nothing for column in columns]
    header = ",".join(column.name for column in columns)
    path.write_text("\n".join([header, *map(",".join, zip(*cells, strict=True)), ""]), encoding="utf-8")


def write_processes(folder: Path, rows: pd.DataFrame | None) -> None:
    """Write processes.csv, where there are rows of it."""
    if rows is None or rows.empty:
        return
    with (folder / schema.PROCESSES_CSV).open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(column.name for column in schema.PROCESSES_COLUMNS)
        texts = [_cells(rows[column.name], column) for column in schema.PROCESSES_COLUMNS]
        writer.writerows(zip(*texts, strict=True))


def _cells(values: pd.Series, column: schema.Column) -> list[str]:
    if pd.api.types.is_numeric_dtype(values):
        return _texts(values, column)
    codes, known = pd.factorize(values)
    texts = [hide_in_text(str(value)) for value in known] + [""]
    return [texts[code] for code in codes.tolist()]


def write_host(folder: Path, rows: pd.DataFrame | None) -> None:
    """Write host.csv, where there are rows of it."""
    if rows is not None and not rows.empty:
        _write_numbers(folder / schema.HOST_CSV, rows, schema.HOST_COLUMNS)


def write_events(folder: Path, happenings: Iterable[ImportedEvent]) -> None:
    """Write events.jsonl in order of time."""
    ordered = sorted(happenings, key=lambda happening: happening.mono_s)
    lines = [event_line(each.kind, each.wall_s, each.mono_s, each.fields) for each in ordered]
    (folder / schema.EVENTS_JSONL).write_bytes(b"".join(lines))


def write_yolo(folder: Path, files: Sequence[Path]) -> None:
    """Copy the files of the YOLO run into yolo/, its arguments without secrets."""
    if files:
        (folder / schema.YOLO_DIR).mkdir()
    for path in files:
        refuse_special(path, LARGEST_RESULTS)
        refuse_way_out(path, path.parent)
        target = folder / schema.YOLO_DIR / path.name
        if path.name == schema.YOLO_ARGS:
            run_folder.write_text(target, safe_arguments(path.read_text(encoding="utf-8", errors="replace")))
        else:
            shutil.copyfile(path, target)


def write_run_json(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write run.json."""
    run_folder.write_json(folder / schema.RUN_JSON, facts)


def facts_of_import(source: str, start: tuple[float, float], end: tuple[float, float]) -> dict[str, Any]:
    """Return run.json of what another tool logged, from `start` to `end` (wall, monotonic); null is what none tells."""
    unknown = ("command", "working_directory", "nvml", "cuda", "python", "torch", "ultralytics", "driver", "recorder")
    return {
        "format": schema.FORMAT_VERSION,
        "tool": {"name": "gpu-report", "version": __version__},
        "source": source,
        "start": _clocks(*start),
        "end": _clocks(*end),
        "ended_by": "import",
        "exit_code": None,
        "exit_signal": None,
        "host": dict.fromkeys(("name", "os", "kernel", "container", "cores", "memory_mib")),
        **dict.fromkeys(unknown),
        "yolo": [],
    }


def _clocks(wall_s: float, mono_s: float) -> dict[str, float | None]:
    return {"wall_s": round(wall_s, 3), "mono_s": round(mono_s, 3), "boot_s": None}


def _texts(values: pd.Series, column: schema.Column) -> list[str]:
    """Return the cells of one column; each different value is formatted once, NaN is an empty cell."""
    if values.isna().all():
        return [""] * len(values)
    codes, known = pd.factorize(values)
    texts = [run_folder.number_cell(value, column) for value in known] + [""]  # factorize gives NaN the code -1
    return [texts[code] for code in codes.tolist()]

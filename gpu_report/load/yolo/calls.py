"""The calls of models (`inside/<pid>.calls.csv`), put on the run's clock, each model's apart."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gpu_report import schema
from gpu_report.errors import InputError
from gpu_report.load.csv_file import read_csv
from gpu_report.load.problems import noted
from gpu_report.load.run_clock import Boot, RunClock
from gpu_report.model import Gpu, InsideRun, ModelCalls

Floats = npt.NDArray[np.float64]
Read = npt.NDArray[np.floating[Any]]

COLUMNS: Final = tuple(column.name for column in schema.CALLS_COLUMNS)
KEPT: Final = tuple(name for name in COLUMNS if name not in {"mono_s", "model"})
MOST_FILES: Final = 4096  # processes
MOST_MODELS: Final = 1000  # in all of them
LARGEST: Final = 1e9  # milliseconds (eleven days), images and pixels; what lies beyond is a garbled line
NO_ROWS: Final = ("call has no row and is left out", "calls have no rows and are left out")
BAD_ROWS: Final = (
    "row that no call can have made is left out",
    "rows that no call can have made are left out",
)


def load_calls(
    folder: Path, inside: Sequence[InsideRun], gpus: Sequence[Gpu], clock: RunClock, end_t_s: float
) -> tuple[tuple[ModelCalls, ...], tuple[str, ...]]:
    """Return the calls of each model of each process, and what could not be read.

    `folder` is the run folder's inside/, `inside` what the same processes wrote there, `end_t_s` the recording's end.
    """
    found: list[ModelCalls] = []
    problems: list[str] = []
    for path in _files(folder):
        pid = int(path.name.removesuffix(schema.CALLS_SUFFIX))
        own = [run for run in inside if run.pid == pid]
        try:
            table = read_csv(path, COLUMNS)
        except InputError as error:
            problems.append(str(error))
            continue
        problems += table.problems
        problems += _missing(path.name, table.rows, own)
        columns, bad = _sound(table.numbers, _boot_of(own, table.numbers["mono_s"], clock), end_t_s)
        problems += [noted(path.name, bad, *BAD_ROWS)] if bad else []
        found += _models(pid, columns, own, gpus)
    return tuple(found[:MOST_MODELS]), tuple(problems)


def _files(folder: Path) -> list[Path]:
    """Return the files whose names begin with a pid."""
    try:
        paths = sorted(folder.glob(f"*{schema.CALLS_SUFFIX}"))
    except OSError:
        return []
    return [path for path in paths if _is_pid(path.name.removesuffix(schema.CALLS_SUFFIX))][:MOST_FILES]


def _is_pid(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < len(str(int(LARGEST)))


def _missing(name: str, rows: int, own: Sequence[InsideRun]) -> list[str]:
    """Return that a process made more calls than it has rows: it was killed, or its disk did not keep up."""
    made = _sum(run.calls.get("calls") for run in own) or 0
    return [noted(name, made - rows, *NO_ROWS)] if made > rows else []


def _boot_of(own: Sequence[InsideRun], mono_s: Read, clock: RunClock) -> Boot:
    """Return since which start of the machine a process has lived: calls have no stamp of the wall clock."""
    began = [phase.start_t_s for run in own for phase in run.phases[:1]]
    if not began or not len(mono_s):
        return clock.boots[0]
    return min(clock.boots, key=lambda boot: abs(boot.t_s + float(mono_s[0]) - boot.mono_s - began[0]))


def _sound(numbers: Mapping[str, Read], boot: Boot, end_t_s: float) -> tuple[dict[str, Floats], int]:
    """Return the columns on the run's clock, in order of time, without rows that make no sense, and how many these are.

    A part that makes no sense counts as missing; a row needs its beginning, its images and its whole time.
    """
    start_s = boot.t_s + numbers["mono_s"].astype(np.float64) - boot.mono_s
    columns = {name: _counted(numbers[name]) for name in KEPT}
    sound = np.isfinite(start_s) & (start_s <= end_t_s) & np.isfinite(columns["total_ms"]) & (columns["images"] >= 1)
    order = np.flatnonzero(sound)[np.argsort(start_s[sound], kind="stable")]
    model = np.nan_to_num(numbers["model"].astype(np.float64))
    columns.update(start_s=start_s, model=model)
    return {name: column[order] for name, column in columns.items()}, int((~sound).sum())


def _counted(values: Read) -> Floats:
    known = (values >= 0) & (values < LARGEST)
    return np.where(known, values, np.nan).astype(np.float64, copy=False)


def _models(
    pid: int, columns: Mapping[str, Floats], own: Sequence[InsideRun], gpus: Sequence[Gpu]
) -> Iterable[ModelCalls]:
    """Yield the calls of each model of a process."""
    settings = {number: facts for run in own for number, facts in run.models.items()}
    numbers = np.unique(columns["model"])[:MOST_MODELS].tolist()
    for number in numbers:
        of = columns["model"] == number
        facts = settings.get(int(number), {})
        yield ModelCalls(
            pid=pid,
            number=int(number),
            settings={name: value for name, value in facts.items() if name != "gpu_uuid"},
            gpu=next((gpu.index for gpu in gpus if gpu.uuid and gpu.uuid == facts.get("gpu_uuid")), None),
            start_s=columns["start_s"][of],
            **{name: columns[name][of] for name in KEPT},
            predictors=_most((run.objects for run in own), int(number)),
            repeated=_most((run.repeated for run in own), int(number)),
            repeated_images=_most((run.repeated_images for run in own), int(number)),
            image_px=_largest_px(own, int(number), columns["images"][of]),
            failed=_sum(run.calls.get("failed") for run in own) if len(numbers) == 1 else None,
        )


def _largest_px(own: Sequence[InsideRun], number: int, images: Floats) -> int | None:
    """Return the longer side of the largest image of a model.

    Older recordings have it of the first image of each call: of calls with one image that is all.
    """
    of_all = _most((run.largest_px for run in own), number)
    if of_all is not None or (images > 1).any():
        return of_all
    return _most((run.image_px for run in own), number)


def _most(counts: Iterable[Mapping[int, int]], number: int) -> int | None:
    """Return the most that was said of a model."""
    return max((each[number] for each in counts if number in each), default=None)


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None

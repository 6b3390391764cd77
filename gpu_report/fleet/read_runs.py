"""What a worker does: reads and analyses some runs, one after the other, and returns their rows."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gpu_report import __version__
from gpu_report.errors import GpuReportError, InputError, UsageError
from gpu_report.few_collections import few_collections
from gpu_report.fleet.cells import Cell, Rows, row
from gpu_report.fleet.places import RunPlace
from gpu_report.fleet.remote import fetch, is_url
from gpu_report.fleet.tables import TABLES

OK, FAILED = "ok", "failed"
AGAIN = ""  # a fingerprint that no run has
LONGEST_REASON = 500  # characters
LARGEST_RUN = 16 * 2**30  # bytes that are fetched: a recorded week of eight GPUs has 4 GiB

Tables = dict[str, Rows]


@dataclass(frozen=True)
class ReadRun:
    """A run's rows by table; one that could not be read has a row in the manifest alone, with the reason."""

    key: str
    tables: Tables


def read_runs(places: Sequence[RunPlace]) -> list[ReadRun]:
    """Return the rows of runs, in their order; whatever is wrong with one is its reason, and never raised."""
    import pandas as pd  # noqa: PLC0415 - a worker loads it, not who asks for it

    # With pyarrow beside it pandas keeps texts as Arrow does, which takes a quarter longer for tables of a few rows.
    with pd.option_context("mode.string_storage", "python"), few_collections():
        return [read_one(place) for place in places]


def read_one(place: RunPlace) -> ReadRun:
    """Return the rows of a run."""
    try:
        tables = _analysed(place)
    except GpuReportError as error:
        # what the disk, the network or a package lacked may be there next time; what is wrong with the files stays so
        return failed(
            place, str(error), may_pass=isinstance(error, UsageError) or _is_of_the_way(place, error.__cause__)
        )
    except MemoryError:
        return failed(place, "it needs more memory than this worker may use", may_pass=True)
    except Exception as error:  # noqa: BLE001 - one run that nobody foresaw must not keep all others from their rows
        return failed(place, f"internal error: {type(error).__name__}: {error}")
    return ReadRun(place.key, {**tables, "manifest": [_manifest(place, OK, None)]})


def _is_of_the_way(place: RunPlace, cause: BaseException | None) -> bool:
    """Tell whether it was the way to a run's files that failed: a disk, or whatever a URL's protocol raises."""
    return isinstance(cause, OSError) or (cause is not None and is_url(place.address))


def failed(place: RunPlace, reason: str, *, may_pass: bool = False) -> ReadRun:
    """Return the rows of a run that could not be read; where that may pass, the next call tries again."""
    place = replace(place, fingerprint=AGAIN) if may_pass else place
    line = " ".join(reason.replace(place.address, place.path).split())[:LONGEST_REASON]
    nothing: Tables = {name: [] for name in TABLES}
    return ReadRun(place.key, {**nothing, "manifest": [_manifest(place, FAILED, line)]})


def _analysed(place: RunPlace) -> Tables:
    from gpu_report.analyse import analyse  # noqa: PLC0415 - as pandas above
    from gpu_report.fleet.run_rows import run_rows  # noqa: PLC0415 - likewise
    from gpu_report.load import load_run  # noqa: PLC0415 - likewise

    def rows_in(folder: Path) -> Tables:
        return run_rows(place.key, place.path, analyse(load_run(folder), with_code_time=False))

    if not is_url(place.address):
        return rows_in(Path(place.address))
    if place.bytes > LARGEST_RUN:
        raise InputError(f"{place.path} has {place.bytes:,} bytes, and is not fetched")
    with tempfile.TemporaryDirectory(prefix="gpu-report-fleet-") as folder:
        fetch(place.address, place.names, Path(folder))
        try:
            return rows_in(Path(folder))
        except GpuReportError as error:
            raise InputError(str(error).replace(folder, place.address)) from error.__cause__


def _manifest(place: RunPlace, status: str, error: str | None) -> list[Cell]:
    return row(
        "manifest",
        {
            "run": place.key,
            "path": place.path,
            "fingerprint": place.fingerprint,
            "version": __version__,
            "status": status,
            "error": error,
            "files": place.files,
            "bytes": place.bytes,
            "indexed": time.time(),
        },
    )


def prepare_worker() -> None:
    """Make a process a worker: modules loaded once."""
    import gpu_report.fleet.run_rows  # noqa: PLC0415 - as in _analysed
    import gpu_report.load  # noqa: F401, PLC0415 - likewise

"""From logs of any tool to a run folder: the same steps, whichever format they are in."""

from collections.abc import Sequence
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any

import pandas as pd

from gpu_report.errors import InputError, UsageError
from gpu_report.imports import run_writer, times
from gpu_report.imports.clock import on_wall
from gpu_report.imports.formats import AUTO, FORMATS, Selection, format_of
from gpu_report.imports.join import Joined, join
from gpu_report.imports.kernel_log.around import kernel_happenings
from gpu_report.imports.merge import merge
from gpu_report.imports.parsing.readings import DEVICE_FIELDS, Device, Found, ImportedEvent
from gpu_report.imports.process_rows import process_rows
from gpu_report.imports.yolo_files import epochs_in_tensorboard, files_of_yolo, yolo_facts
from gpu_report.wording import first_few


def import_logs(  # noqa: PLR0913 (the command's options)
    logs: Sequence[Path],
    output: Path,
    *,
    source: str = AUTO,
    yolo: Path | None = None,
    kernel_log: Path | None = None,
    timezone: str | None = None,
    boot_time: str | float | None = None,
    train_start: str | float | None = None,
    selection: Selection | None = None,
) -> tuple[str, ...]:
    """Write `logs` as the run folder `output`; return what there is to say, in whole sentences.

    `source` is the format of all logs, by AUTO that of each by its content; `selection` chooses among what a log holds.
    `timezone` names the zone of times that carry none, `boot_time` puts a kernel log with the kernel's clock on the
    wall clock, `train_start` says when training began (both: ISO 8601 or UTC epoch seconds). InputError when nothing
    can be read, UsageError for options that cannot be and for an `output` that is taken.
    """
    run_writer.require_free(output)
    zone = times.zone(timezone)
    train_start_s = times.moment(train_start, "--train-start", zone)
    boot_time_s = times.moment(boot_time, "--boot-time", zone)
    found, problems = _read(logs, source, selection or Selection())
    if train_start is not None and any(each.trained_in for each in found):
        raise UsageError("TensorBoard's events say when training started: leave out --train-start")
    joined = join([merge(each, zone) for each in _with_rows(found)])
    yolo = yolo or next((each.yolo for each in found if each.yolo), None)
    kernel, kernel_problems = kernel_happenings(kernel_log, joined.span, zone, boot_time_s)
    yolo_files, yolo_problems = files_of_yolo(yolo)
    happenings = _happenings(found, joined)
    logged, logged_problems = ([], ()) if _has_epochs(happenings) else epochs_in_tensorboard(yolo, joined.start_s)
    notes = _notes(found, joined)
    facts = _facts(found, joined, notes)
    trained_in = yolo or next((each.trained_in for each in found if each.trained_in), None)
    if trained_in is not None:
        facts["yolo"] = [yolo_facts(trained_in, yolo_files, train_start_s)]
    events = [*_frame(found, joined, yolo), *joined.happenings, *kernel, *happenings, *logged]

    def fill(folder: Path) -> None:
        run_writer.write_samples(folder, joined.samples)
        run_writer.write_processes(folder, _looks(found, joined, zone))
        run_writer.write_host(folder, _host(found, joined, zone))
        run_writer.write_events(folder, events)
        run_writer.write_yolo(folder, yolo_files)
        run_writer.write_run_json(folder, facts)

    run_writer.write_whole(output, fill)
    problems += [problem for each in found if each not in _with_rows(found) for problem in each.problems]
    return first_few((*notes, *problems, *joined.problems, *kernel_problems, *yolo_problems, *logged_problems))


def _read(logs: Sequence[Path], source: str, selection: Selection) -> tuple[list[Found], list[str]]:
    """Return what each tool's logs say; those that cannot be used are problems, and an error only where none can."""
    by_format: dict[str, list[Path]] = {"prometheus": []} if selection.server else {}
    for log in logs:
        by_format.setdefault(format_of(log) if source == AUTO else source, []).append(log)
    found: list[Found] = []
    unusable: list[str] = []
    for name, paths in by_format.items():
        try:
            found.append(FORMATS[name](paths, selection))
        except InputError as error:
            unusable.append(str(error))
        except OSError as error:  # the way to a log is barred, or its name is too long
            unusable.append(f"{error.filename} cannot be read ({error.strerror}): name a log that a tool wrote")
    if not found:
        raise InputError(unusable[0] if unusable else "no log was named: name the files that a tool wrote")
    return found, [f"Left out: {reason}." for reason in unusable]


def _with_rows(found: Sequence[Found]) -> list[Found]:
    """Return the logs that give rows; derived ones only where there are no others."""
    return [each for each in found if not each.derived] or list(found)


def _happenings(found: Sequence[Found], joined: Joined) -> list[ImportedEvent]:
    return [
        ImportedEvent(kind, wall_s, wall_s - joined.start_s, fields)
        for each in found
        for kind, wall_s, fields in each.happenings
    ]


def _has_epochs(happenings: Sequence[ImportedEvent]) -> bool:
    return any(each.kind == "tensorboard" for each in happenings)


def _notes(found: Sequence[Found], joined: Joined) -> tuple[str, ...]:
    """Return what the report has to say: of the log that gave the rows, and of what others added."""
    return (*(note for each in found if each.tool == joined.sources[0] for note in each.notes), *joined.notes)


def _facts(found: Sequence[Found], joined: Joined, notes: Sequence[str]) -> dict[str, Any]:
    """Return run.json, with what there is to note of the logs; what no log says is null."""
    wall_s = joined.span
    facts = run_writer.facts_of_import(" and ".join(joined.sources), (wall_s[0], 0.0), (wall_s[1], joined.length_s))
    facts["host"]["name"] = next((each.host_name for each in found if each.host_name), None)
    facts["interval_s"] = round(max(joined.interval_s, 0.001), 3)
    facts["gpus"] = [_gpu_facts(int(gpu), joined.devices.get(gpu, {})) for gpu in joined.samples["gpu"].unique()]
    facts["gpus"].sort(key=lambda gpu: gpu["index"])
    facts["driver"] = next((device["driver"] for device in joined.devices.values() if device.get("driver")), None)
    if notes:
        facts["notes"] = list(notes)
    return facts


def _gpu_facts(index: int, device: Device) -> dict[str, Any]:
    known = {field: device.get(field) for field in (*DEVICE_FIELDS, "uuid", "pci_bus_id", "name")}
    mig = device.get("mig_enabled")
    return {"index": index, **known, "mig_enabled": None if mig is None else mig == "Enabled"}


def _frame(found: Sequence[Found], joined: Joined, yolo: Path | None) -> list[ImportedEvent]:
    """Return the events at the ends of the recording, and the YOLO run that it watched."""
    start, end = (joined.span[0], 0.0), (joined.span[1], joined.length_s)
    unheard = {"status": "unavailable", "reason": _no_xids(found, joined)}
    happenings = [
        ImportedEvent("recording_started", *start, {"segment": 1}),
        ImportedEvent("recording_ended", *end, {"ended_by": "import"}),
        ImportedEvent("xid_events", *start, unheard),
    ]
    if yolo is not None:
        happenings.append(ImportedEvent("yolo_run", *start, {"path": str(yolo), "number": 1}))
    return happenings


def _no_xids(found: Sequence[Found], joined: Joined) -> str:
    """Return why Xid errors may have gone unseen."""
    if keeping := next((each.tool for each in found if each.keeps_last_xid), None):
        return f"{keeping} keeps the last one alone: one that came twice is seen once"
    return f"{' and '.join(joined.sources)} {'does' if len(joined.sources) == 1 else 'do'} not log them"


def _looks(found: Sequence[Found], joined: Joined, zone: tzinfo | None) -> pd.DataFrame | None:
    """Return rows of processes.csv, of the first log that has processes."""
    for each in found:
        if each.processes is not None and len(each.processes):
            return process_rows(_timed(each.processes, each, joined, zone))
    return None


def _host(found: Sequence[Found], joined: Joined, zone: tzinfo | None) -> pd.DataFrame | None:
    """Return rows of host.csv, of the first log that says something of the host."""
    for each in found:
        if each.host is not None and len(each.host):
            return _timed(each.host, each, joined, zone).sort_values("mono_s", kind="stable", ignore_index=True)
    return None


def _timed(rows: pd.DataFrame, found: Found, joined: Joined, zone: tzinfo | None) -> pd.DataFrame:
    wall_s, steady_s = on_wall(rows["stamp_s"].to_numpy(), UTC if found.in_utc else zone)
    timed = rows.assign(wall_s=wall_s, mono_s=steady_s - joined.start_s)
    return timed[timed["mono_s"] >= 0]

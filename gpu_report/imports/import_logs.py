"""From logs of any tool to a run folder: the same steps, whichever format they are in."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from gpu_report.errors import InputError, UsageError
from gpu_report.imports import run_writer, times
from gpu_report.imports.formats import AUTO, FORMATS, Selection, format_of
from gpu_report.imports.join import join
from gpu_report.imports.kernel_log.around import kernel_happenings
from gpu_report.imports.logs_of_run import LogsOfRun
from gpu_report.imports.merge import merge
from gpu_report.imports.parsing.readings import Found, ImportedEvent
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
    logs_of_run = LogsOfRun(found, join([merge(each, zone) for each in _with_rows(found)]), zone)
    joined = logs_of_run.joined
    yolo = yolo or next((each.yolo for each in found if each.yolo), None)
    kernel, kernel_problems = kernel_happenings(kernel_log, joined.span, zone, boot_time_s)
    yolo_files, yolo_problems = files_of_yolo(yolo)
    happenings = logs_of_run.happenings()
    logged, logged_problems = ([], ()) if _has_epochs(happenings) else epochs_in_tensorboard(yolo, joined.start_s)
    facts = logs_of_run.facts()
    trained_in = yolo or next((each.trained_in for each in found if each.trained_in), None)
    if trained_in is not None:
        facts["yolo"] = [yolo_facts(trained_in, yolo_files, train_start_s)]
    events = [*logs_of_run.frame(yolo), *joined.happenings, *kernel, *happenings, *logged]
    run_writer.write_whole(output, partial(_fill, logs_of_run, facts, events, yolo_files))
    problems += [problem for each in found if each not in _with_rows(found) for problem in each.problems]
    more = (*joined.problems, *kernel_problems, *yolo_problems, *logged_problems)
    return first_few((*logs_of_run.notes(), *problems, *more))


def _fill(
    logs: LogsOfRun, facts: Mapping[str, Any], events: Sequence[ImportedEvent], yolo_files: Sequence[Path], folder: Path
) -> None:
    """Write the files of a run folder."""
    run_writer.write_samples(folder, logs.joined.samples)
    run_writer.write_processes(folder, logs.processes())
    run_writer.write_host(folder, logs.host())
    run_writer.write_events(folder, events)
    run_writer.write_yolo(folder, yolo_files)
    run_writer.write_run_json(folder, facts)


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


def _has_epochs(happenings: Sequence[ImportedEvent]) -> bool:
    return any(each.kind == "tensorboard" for each in happenings)

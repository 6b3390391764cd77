"""Import of logs that people have already: `nvidia-smi --query-gpu=... --format=csv -l 1 > log.csv`."""

from collections.abc import Sequence
from datetime import tzinfo
from pathlib import Path
from typing import Any, Final

from gpu_report.errors import InputError
from gpu_report.imports import run_writer, times
from gpu_report.imports.kernel_around import kernel_happenings
from gpu_report.imports.smi_columns import DEVICE_NUMBERS
from gpu_report.imports.smi_file import Section, read_log
from gpu_report.imports.smi_merge import Device, ImportedEvent, Log, merge
from gpu_report.imports.smi_table import Numbering, power_column, read_section
from gpu_report.imports.yolo_files import epochs_in_tensorboard, files_of_yolo, yolo_facts
from gpu_report.wording import first_few

_POWER_NAMES: Final = "power.draw.average, power.draw and power.draw.instant"


def import_nvidia_smi(  # noqa: PLR0913 (the command's options)
    logs: Sequence[Path],
    output: Path,
    *,
    yolo: Path | None = None,
    kernel_log: Path | None = None,
    timezone: str | None = None,
    boot_time: str | float | None = None,
    train_start: str | float | None = None,
) -> tuple[str, ...]:
    """Write nvidia-smi's CSV `logs` as the run folder `output`; return what there is to say, in whole sentences.

    `timezone` names the zone of the logs' times, `boot_time` puts a kernel log with the kernel's clock on the wall
    clock, `train_start` says when training began (both: ISO 8601 or UTC epoch seconds). InputError when nothing
    can be read, UsageError for options that cannot be and for an `output` that is taken.
    """
    run_writer.require_free(output)
    zone = times.zone(timezone)
    train_start_s = times.moment(train_start, "--train-start", zone)
    boot_time_s = times.moment(boot_time, "--boot-time", zone)
    log, problems = _read_logs(logs, zone)
    kernel, kernel_problems = kernel_happenings(kernel_log, _span(log), zone, boot_time_s)
    yolo_files, yolo_problems = files_of_yolo(yolo)
    facts = _run_facts(log)
    if yolo is not None:
        facts["yolo"] = [yolo_facts(yolo, yolo_files, train_start_s)]
    logged, logged_problems = epochs_in_tensorboard(yolo, _span(log)[0])

    def fill(folder: Path) -> None:
        run_writer.write_samples(folder, log.samples)
        run_writer.write_events(folder, [*_frame_of(log, yolo), *log.happenings, *kernel, *logged])
        run_writer.write_yolo(folder, yolo_files)
        run_writer.write_run_json(folder, facts)

    run_writer.write_whole(output, fill)
    return first_few((*problems, *log.problems, *kernel_problems, *yolo_problems, *logged_problems))


def _read_logs(paths: Sequence[Path], zone: tzinfo | None) -> tuple[Log, list[str]]:
    """Return all rows of all logs; a log that cannot be used is a problem, and an error only where none can."""
    problems: list[str] = []
    sections: list[Section] = []
    unusable: list[str] = []
    for path in paths:
        try:
            file = read_log(path)
        except InputError as error:
            unusable.append(str(error))
            continue
        sections += file.sections
        problems += file.problems
    if not sections:
        raise InputError(unusable[0] if unusable else "no log was named: name the files that nvidia-smi wrote")
    power = power_column(sections)
    if power is not None and any(power not in section.columns for section in sections):
        problems.append(f"Power is {power}; parts of the log without it have none, since {_POWER_NAMES} differ.")
    numbering = Numbering()
    # Parts with an index first: they say which UUID has which.
    sections.sort(key=lambda section: "index" not in section.columns)
    tables = [read_section(section, power, numbering) for section in sections]
    return merge(tables, zone), [*(f"Left out: {reason}." for reason in unusable), *problems]


def _span(log: Log) -> tuple[float, float]:
    """Return the wall times of the first and of the last row, in seconds; a clock that was set back swaps them."""
    wall_s = log.samples["wall_s"]
    return float(wall_s.iloc[0]), float(wall_s.iloc[-1])


def _frame_of(log: Log, yolo: Path | None) -> list[ImportedEvent]:
    """Return the events at the ends of the recording, and the YOLO run that it watched."""
    start_s, end_s = _span(log)
    start, end = (start_s, 0.0), (end_s, float(log.samples["mono_s"].iloc[-1]))
    happenings = [
        ImportedEvent("recording_started", *start, {"segment": 1}),
        ImportedEvent("recording_ended", *end, {"ended_by": "import"}),
        ImportedEvent("xid_events", *start, {"status": "unavailable", "reason": "nvidia-smi does not log them"}),
    ]
    if yolo is not None:
        happenings.append(ImportedEvent("yolo_run", *start, {"path": str(yolo), "number": 1}))
    return happenings


def _run_facts(log: Log) -> dict[str, Any]:
    """Return run.json; what nvidia-smi's log does not tell is null."""
    start_s, end_s = _span(log)
    driver = next((device["driver"] for device in log.devices.values() if device["driver"]), None)
    return {
        **run_writer.facts_of_import("nvidia-smi", (start_s, 0.0), (end_s, float(log.samples["mono_s"].iloc[-1]))),
        "interval_s": round(log.interval_s, 3),
        "gpus": [_gpu_facts(index, device) for index, device in log.devices.items()],
        "driver": driver,
    }


def _gpu_facts(index: int, device: Device) -> dict[str, Any]:
    known = {field: device[field] for field in (*DEVICE_NUMBERS, "uuid", "pci_bus_id", "name")}
    mig = device["mig_enabled"]
    return {"index": index, **known, "mig_enabled": None if mig is None else mig == "Enabled"}

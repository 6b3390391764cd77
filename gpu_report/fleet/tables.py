"""The tables of a fleet: their columns, types and meanings, for whoever writes or reads them (docs/fleet.md has them).

A column is added at the end of its table and raises FORMAT, as any other change does: what was indexed before is then
indexed once more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = 1

TypeName = Literal["string", "int64", "double", "bool", "timestamp"]  # a timestamp is in microseconds, UTC


@dataclass(frozen=True)
class TableColumn:
    """A column of a table. Any may be null but the key `run`: null is what is not known, never zero."""

    name: str
    type: TypeName
    meaning: str


RUN = TableColumn("run", "string", "the run's key: 16 letters of the SHA-256 of its path")

RUNS = (
    RUN,
    TableColumn("path", "string", "its folder, or its URL without user and password"),
    TableColumn("start", "timestamp", "when the recording began"),
    TableColumn("duration_s", "double", "how long it was recorded"),
    TableColumn("user", "string", "who recorded it (`run.json`)"),
    TableColumn("project", "string", "`project` of `run.json`, else the last folder of YOLO's argument `project`"),
    TableColumn("host", "string", "the machine's name"),
    TableColumn("slurm_job_id", "string", "the number of its Slurm job"),
    TableColumn("name", "string", "YOLO's argument `name`"),
    TableColumn("task", "string", "YOLO's argument `task`"),
    TableColumn("model", "string", "the file name of YOLO's argument `model`"),
    TableColumn("batch", "double", "YOLO's argument `batch`"),
    TableColumn("imgsz", "double", "YOLO's argument `imgsz`"),
    TableColumn("epochs_asked", "int64", "YOLO's argument `epochs`"),
    TableColumn("epochs", "int64", "epochs in the recording"),
    TableColumn("gpu_name", "string", "the model of its GPUs; of several the most frequent"),
    TableColumn("gpus", "int64", "GPUs that it held (allocated)"),
    TableColumn("gpus_used", "int64", "GPUs that did work for it"),
    TableColumn("gpu_hours", "double", "hours of all GPUs that it held; the sum of its ledger"),
    TableColumn("work_gpu_s", "double", "GPU seconds of work"),
    TableColumn("lost_gpu_s", "double", "GPU seconds that went to causes of lost time"),
    TableColumn("idle_gpu_s", "double", "GPU seconds outside training, and of GPUs that it held and did not use"),
    TableColumn(
        "no_process_gpu_s", "double", "GPU seconds in which no process was on the GPU; null where nobody could look"
    ),
    TableColumn("idle_after_end_gpu_s", "double", "GPU seconds of used GPUs after the end of the last training"),
    TableColumn("top_cause", "string", "the cause of most lost time"),
    TableColumn("top_cause_gpu_s", "double", "GPU seconds that went to it"),
    TableColumn("busy_pct", "double", "mean utilisation in training"),
    TableColumn("energy_j", "double", "energy of all GPUs that it held; null where a part of it is not known"),
    TableColumn("epoch_s", "double", "length of an epoch now, as the report gives it"),
    TableColumn("fix", "string", "the change that saves most: `workers=11`"),
    TableColumn("fix_argument", "string", "its argument"),
    TableColumn("fix_cause", "string", "the cause that it removes"),
    TableColumn("fix_epoch_s", "double", "expected length of an epoch with it"),
    TableColumn("fix_saves_gpu_s", "double", "GPU seconds that it would have saved in the epochs recorded"),
    TableColumn(
        "ending", "string", "finished, early stop, interrupted, failed, going on, unknown; null without a training"
    ),
    TableColumn("exit_code", "int64", "that of the command"),
    TableColumn("exit_signal", "string", "the signal that ended the command"),
    TableColumn("error_type", "string", "the type of the exception that ended the training"),
    TableColumn("critical", "int64", "findings of this severity"),
    TableColumn("warnings", "int64", "findings of this severity"),
    TableColumn("coverage_pct", "double", "share of the expected samples that are there"),
    TableColumn("driver", "string", "version of the NVIDIA driver"),
    TableColumn("torch", "string", "version of torch"),
    TableColumn("ultralytics", "string", "version of ultralytics"),
    TableColumn("tool", "string", "version of gpu-report that recorded it"),
    TableColumn("command", "string", "the command, secrets hidden"),
    TableColumn("verdict", "string", "the verdict of its report"),
)

GPUS = (
    RUN,
    TableColumn("gpu", "int64", "device index"),
    TableColumn("uuid", "string", "the GPU's or MIG device's UUID"),
    TableColumn("gpu_name", "string", "its model"),
    TableColumn("memory_total_mib", "double", "its memory"),
    TableColumn("allocated", "bool", "the run held it: its command may see it, and it is not at work for others alone"),
    TableColumn("used", "bool", "the run worked on it"),
    TableColumn("gpu_util_pct", "double", "mean utilisation over the whole recording"),
    TableColumn("memory_peak_mib", "double", "most memory in use"),
    TableColumn("power_mean_w", "double", "mean power"),
    TableColumn("temperature_max_c", "double", "highest temperature"),
    TableColumn("energy_j", "double", "its energy; null where a part of it is not known"),
    TableColumn("no_process_s", "double", "seconds in which no process was on it; null where nobody could look"),
    TableColumn("idle_after_end_s", "double", "seconds after the end of the last training; null on unused GPUs"),
)

EPOCHS = (
    RUN,
    TableColumn("yolo_run", "int64", "the YOLO run within the recording, from 1"),
    TableColumn("epoch", "int64", "from 1"),
    TableColumn("attempt", "int64", "how often it was begun, from 1"),
    TableColumn("start_s", "double", "its beginning, since the run's start"),
    TableColumn("end_s", "double", "its end, since the run's start"),
    TableColumn("train_s", "double", "seconds of training"),
    TableColumn("validation_s", "double", "seconds of validation"),
    TableColumn("checkpoint_s", "double", "seconds of saving"),
    TableColumn("images_per_s", "double", "images a second in training"),
    TableColumn("gpu_util_pct", "double", "mean utilisation"),
    TableColumn("energy_j", "double", "energy"),
    TableColumn("data_wait_s", "double", "seconds of training in which it waited for data"),
    TableColumn("loss", "double", "sum of the training losses"),
    TableColumn("lr", "double", "learning rate"),
)

FINDINGS = (
    RUN,
    TableColumn("id", "string", "its id in the report: report.html#drop-3"),
    TableColumn("rule", "string", "what kind it is (findings.md)"),
    TableColumn("severity", "string", "critical, warning or info"),
    TableColumn("cause", "string", "its cause (findings.md)"),
    TableColumn("confidence", "double", "of the cause, 0 to 1"),
    TableColumn("start_s", "double", "its beginning, since the run's start"),
    TableColumn("duration_s", "double", "how long it lasted, all occurrences together"),
    TableColumn("occurrences", "int64", "how often it happened"),
    TableColumn("lost_gpu_s", "double", "GPU seconds of work that it took"),
    TableColumn("share_of_training", "double", "the same as a share of training (ends of epochs: of epochs), 0 to 1"),
    TableColumn("expected", "bool", "its phase explains it: no alarm"),
    TableColumn("epoch", "int64", "the epoch in which it began"),
    TableColumn("phase", "string", "the phase in which it began"),
    TableColumn("argument", "string", "the argument to change"),
    TableColumn("value", "string", "its new value"),
    TableColumn("gain_at_most", "double", "share of an epoch that can be saved at all, 0 to 1"),
    TableColumn("gain_estimate", "double", "share that the change is likely to save, 0 to 1"),
    TableColumn("summary", "string", "a sentence about it"),
)

LEDGER = (
    RUN,
    TableColumn("name", "string", "a cause, or `work`, `short gaps`, `idle`, `unmeasured` and phases (findings.md)"),
    TableColumn("expected", "bool", "it is no lost time"),
    TableColumn("gpu_seconds", "double", "GPU seconds that went there; of a run they add up to its gpu_hours"),
    TableColumn("energy_j", "double", "energy; null where most of it is not known"),
)

LOCATIONS = (
    RUN,
    TableColumn("name", "string", "the row of the ledger"),
    TableColumn("process", "string", "main, rank N, workers of a data loader, or thread (beside the main thread)"),
    TableColumn("function", "string", "the function"),
    TableColumn("file", "string", "its file"),
    TableColumn("line", "int64", "the line in which the process was"),
    TableColumn("share", "double", "share of the row's time, 0 to 1"),
    TableColumn("gpu_seconds", "double", "GPU seconds lost while it was there"),
)

MANIFEST = (
    RUN,
    TableColumn("path", "string", "its folder or URL"),
    TableColumn("fingerprint", "string", "of the sizes and times of its files: another one has it analysed anew"),
    TableColumn("version", "string", "the gpu-report that analysed it"),
    TableColumn("status", "string", "`ok`, or `failed`: then it has no row in any other table"),
    TableColumn("error", "string", "why it could not be read"),
    TableColumn("files", "int64", "files of the run"),
    TableColumn("bytes", "int64", "their size together"),
    TableColumn("indexed", "timestamp", "when it was analysed"),
)

TABLES: Mapping[str, tuple[TableColumn, ...]] = {
    "runs": RUNS,
    "gpus": GPUS,
    "epochs": EPOCHS,
    "findings": FINDINGS,
    "ledger": LEDGER,
    "locations": LOCATIONS,
    "manifest": MANIFEST,
}


def arrow_schema(table: str) -> pa.Schema:
    """Return the schema of a table as Arrow and Parquet have it."""
    import pyarrow as pa  # noqa: PLC0415 - the extra [fleet]

    types = {
        "string": pa.string(),
        "int64": pa.int64(),
        "double": pa.float64(),
        "bool": pa.bool_(),
        "timestamp": pa.timestamp("us", tz="UTC"),
    }
    fields = [pa.field(column.name, types[column.type], nullable=column != RUN) for column in TABLES[table]]
    return pa.schema(fields, metadata={"gpu_report_fleet_format": str(FORMAT)})

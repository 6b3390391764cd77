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
class Column:
    """A column of a table. Any may be null but the key `run`: null is what is not known, never zero."""

    name: str
    type: TypeName
    meaning: str


RUN = Column("run", "string", "the run's key: 16 letters of the SHA-256 of its path")

RUNS = (
    RUN,
    Column("path", "string", "its folder, or its URL without user and password"),
    Column("start", "timestamp", "when the recording began"),
    Column("duration_s", "double", "how long it was recorded"),
    Column("user", "string", "who recorded it (`run.json`)"),
    Column("project", "string", "`project` of `run.json`, else the last folder of YOLO's argument `project`"),
    Column("host", "string", "the machine's name"),
    Column("slurm_job_id", "string", "the number of its Slurm job"),
    Column("name", "string", "YOLO's argument `name`"),
    Column("task", "string", "YOLO's argument `task`"),
    Column("model", "string", "the file name of YOLO's argument `model`"),
    Column("batch", "double", "YOLO's argument `batch`"),
    Column("imgsz", "double", "YOLO's argument `imgsz`"),
    Column("epochs_asked", "int64", "YOLO's argument `epochs`"),
    Column("epochs", "int64", "epochs in the recording"),
    Column("gpu_name", "string", "the model of its GPUs; of several the most frequent"),
    Column("gpus", "int64", "GPUs that it held (allocated)"),
    Column("gpus_used", "int64", "GPUs that did work for it"),
    Column("gpu_hours", "double", "hours of all GPUs that it held; the sum of its ledger"),
    Column("work_gpu_s", "double", "GPU seconds of work"),
    Column("lost_gpu_s", "double", "GPU seconds that went to causes of lost time"),
    Column("idle_gpu_s", "double", "GPU seconds outside training, and of GPUs that it held and did not use"),
    Column(
        "no_process_gpu_s", "double", "GPU seconds in which no process was on the GPU; null where nobody could look"
    ),
    Column("idle_after_end_gpu_s", "double", "GPU seconds of used GPUs after the end of the last training"),
    Column("top_cause", "string", "the cause of most lost time"),
    Column("top_cause_gpu_s", "double", "GPU seconds that went to it"),
    Column("busy_pct", "double", "mean utilisation in training"),
    Column("energy_j", "double", "energy of all GPUs that it held; null where a part of it is not known"),
    Column("epoch_s", "double", "length of an epoch now, as the report gives it"),
    Column("fix", "string", "the change that saves most: `workers=11`"),
    Column("fix_argument", "string", "its argument"),
    Column("fix_cause", "string", "the cause that it removes"),
    Column("fix_epoch_s", "double", "expected length of an epoch with it"),
    Column("fix_saves_gpu_s", "double", "GPU seconds that it would have saved in the epochs recorded"),
    Column("ending", "string", "finished, early stop, interrupted, failed, going on, unknown; null without a training"),
    Column("exit_code", "int64", "that of the command"),
    Column("exit_signal", "string", "the signal that ended the command"),
    Column("error_type", "string", "the type of the exception that ended the training"),
    Column("critical", "int64", "findings of this severity"),
    Column("warnings", "int64", "findings of this severity"),
    Column("coverage_pct", "double", "share of the expected samples that are there"),
    Column("driver", "string", "version of the NVIDIA driver"),
    Column("torch", "string", "version of torch"),
    Column("ultralytics", "string", "version of ultralytics"),
    Column("tool", "string", "version of gpu-report that recorded it"),
    Column("command", "string", "the command, secrets hidden"),
    Column("verdict", "string", "the verdict of its report"),
)

GPUS = (
    RUN,
    Column("gpu", "int64", "device index"),
    Column("uuid", "string", "the GPU's or MIG device's UUID"),
    Column("gpu_name", "string", "its model"),
    Column("memory_total_mib", "double", "its memory"),
    Column("allocated", "bool", "the run held it: its command may see it, and it is not at work for others alone"),
    Column("used", "bool", "the run worked on it"),
    Column("gpu_util_pct", "double", "mean utilisation over the whole recording"),
    Column("memory_peak_mib", "double", "most memory in use"),
    Column("power_mean_w", "double", "mean power"),
    Column("temperature_max_c", "double", "highest temperature"),
    Column("energy_j", "double", "its energy; null where a part of it is not known"),
    Column("no_process_s", "double", "seconds in which no process was on it; null where nobody could look"),
    Column("idle_after_end_s", "double", "seconds after the end of the last training; null on unused GPUs"),
)

EPOCHS = (
    RUN,
    Column("yolo_run", "int64", "the YOLO run within the recording, from 1"),
    Column("epoch", "int64", "from 1"),
    Column("attempt", "int64", "how often it was begun, from 1"),
    Column("start_s", "double", "its beginning, since the run's start"),
    Column("end_s", "double", "its end, since the run's start"),
    Column("train_s", "double", "seconds of training"),
    Column("validation_s", "double", "seconds of validation"),
    Column("checkpoint_s", "double", "seconds of saving"),
    Column("images_per_s", "double", "images a second in training"),
    Column("gpu_util_pct", "double", "mean utilisation"),
    Column("energy_j", "double", "energy"),
    Column("data_wait_s", "double", "seconds of training in which it waited for data"),
    Column("loss", "double", "sum of the training losses"),
    Column("lr", "double", "learning rate"),
)

FINDINGS = (
    RUN,
    Column("id", "string", "its id in the report: report.html#drop-3"),
    Column("rule", "string", "what kind it is (findings.md)"),
    Column("severity", "string", "critical, warning or info"),
    Column("cause", "string", "its cause (findings.md)"),
    Column("confidence", "double", "of the cause, 0 to 1"),
    Column("start_s", "double", "its beginning, since the run's start"),
    Column("duration_s", "double", "how long it lasted, all occurrences together"),
    Column("occurrences", "int64", "how often it happened"),
    Column("lost_gpu_s", "double", "GPU seconds of work that it took"),
    Column("share_of_training", "double", "the same as a share of the training, 0 to 1"),
    Column("expected", "bool", "its phase explains it: no alarm"),
    Column("epoch", "int64", "the epoch in which it began"),
    Column("phase", "string", "the phase in which it began"),
    Column("argument", "string", "the argument to change"),
    Column("value", "string", "its new value"),
    Column("gain_at_most", "double", "share of an epoch that can be saved at all, 0 to 1"),
    Column("gain_estimate", "double", "share that the change is likely to save, 0 to 1"),
    Column("summary", "string", "a sentence about it"),
)

LEDGER = (
    RUN,
    Column("name", "string", "a cause, or `work`, `short gaps`, `idle`, `unmeasured` and phases (findings.md)"),
    Column("expected", "bool", "it is no lost time"),
    Column("gpu_seconds", "double", "GPU seconds that went there; of a run they add up to its gpu_hours"),
    Column("energy_j", "double", "energy; null where most of it is not known"),
)

LOCATIONS = (
    RUN,
    Column("name", "string", "the row of the ledger"),
    Column("process", "string", "main, rank N, workers of a data loader, or thread (beside the main thread)"),
    Column("function", "string", "the function"),
    Column("file", "string", "its file"),
    Column("line", "int64", "the line in which the process was"),
    Column("share", "double", "share of the row's time, 0 to 1"),
    Column("gpu_seconds", "double", "GPU seconds lost while it was there"),
)

MANIFEST = (
    RUN,
    Column("path", "string", "its folder or URL"),
    Column("fingerprint", "string", "of the sizes and times of its files: another one has it analysed anew"),
    Column("version", "string", "the gpu-report that analysed it"),
    Column("status", "string", "`ok`, or `failed`: then it has no row in any other table"),
    Column("error", "string", "why it could not be read"),
    Column("files", "int64", "files of the run"),
    Column("bytes", "int64", "their size together"),
    Column("indexed", "timestamp", "when it was analysed"),
)

TABLES: Mapping[str, tuple[Column, ...]] = {
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

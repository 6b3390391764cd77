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
class Stored:
    """A column of a table. Any may be null but the key `run`: null is what is not known, never zero."""

    name: str
    type: TypeName
    meaning: str


RUN = Stored("run", "string", "the run's key: 16 letters of the SHA-256 of its path")

RUNS = (
    RUN,
    Stored("path", "string", "its folder, or its URL without user and password"),
    Stored("start", "timestamp", "when the recording began"),
    Stored("duration_s", "double", "how long it was recorded"),
    Stored("user", "string", "who recorded it (`run.json`)"),
    Stored("project", "string", "`project` of `run.json`, else the last folder of YOLO's argument `project`"),
    Stored("host", "string", "the machine's name"),
    Stored("slurm_job_id", "string", "the number of its Slurm job"),
    Stored("name", "string", "YOLO's argument `name`"),
    Stored("task", "string", "YOLO's argument `task`"),
    Stored("model", "string", "the file name of YOLO's argument `model`"),
    Stored("batch", "double", "YOLO's argument `batch`"),
    Stored("imgsz", "double", "YOLO's argument `imgsz`"),
    Stored("epochs_asked", "int64", "YOLO's argument `epochs`"),
    Stored("epochs", "int64", "epochs in the recording"),
    Stored("gpu_name", "string", "the model of its GPUs; of several the most frequent"),
    Stored("gpus", "int64", "GPUs that it held (allocated)"),
    Stored("gpus_used", "int64", "GPUs that did work for it"),
    Stored("gpu_hours", "double", "hours of all GPUs that it held; the sum of its ledger"),
    Stored("work_gpu_s", "double", "GPU seconds of work"),
    Stored("lost_gpu_s", "double", "GPU seconds that went to causes of lost time"),
    Stored("idle_gpu_s", "double", "GPU seconds outside training, and of GPUs that it held and did not use"),
    Stored(
        "no_process_gpu_s", "double", "GPU seconds in which no process was on the GPU; null where nobody could look"
    ),
    Stored("idle_after_end_gpu_s", "double", "GPU seconds of used GPUs after the end of the last training"),
    Stored("top_cause", "string", "the cause of most lost time"),
    Stored("top_cause_gpu_s", "double", "GPU seconds that went to it"),
    Stored("busy_pct", "double", "mean utilisation in training"),
    Stored("energy_j", "double", "energy of all GPUs that it held; null where a part of it is not known"),
    Stored("epoch_s", "double", "length of an epoch now, as the report gives it"),
    Stored("fix", "string", "the change that saves most: `workers=11`"),
    Stored("fix_argument", "string", "its argument"),
    Stored("fix_cause", "string", "the cause that it removes"),
    Stored("fix_epoch_s", "double", "expected length of an epoch with it"),
    Stored("fix_saves_gpu_s", "double", "GPU seconds that it would have saved in the epochs recorded"),
    Stored("ending", "string", "finished, early stop, interrupted, failed, going on, unknown; null without a training"),
    Stored("exit_code", "int64", "that of the command"),
    Stored("exit_signal", "string", "the signal that ended the command"),
    Stored("error_type", "string", "the type of the exception that ended the training"),
    Stored("critical", "int64", "findings of this severity"),
    Stored("warnings", "int64", "findings of this severity"),
    Stored("coverage_pct", "double", "share of the expected samples that are there"),
    Stored("driver", "string", "version of the NVIDIA driver"),
    Stored("torch", "string", "version of torch"),
    Stored("ultralytics", "string", "version of ultralytics"),
    Stored("tool", "string", "version of gpu-report that recorded it"),
    Stored("command", "string", "the command, secrets hidden"),
    Stored("verdict", "string", "the verdict of its report"),
)

GPUS = (
    RUN,
    Stored("gpu", "int64", "device index"),
    Stored("uuid", "string", "the GPU's or MIG device's UUID"),
    Stored("gpu_name", "string", "its model"),
    Stored("memory_total_mib", "double", "its memory"),
    Stored("allocated", "bool", "the run held it: its command may see it, and it is not at work for others alone"),
    Stored("used", "bool", "the run worked on it"),
    Stored("gpu_util_pct", "double", "mean utilisation over the whole recording"),
    Stored("memory_peak_mib", "double", "most memory in use"),
    Stored("power_mean_w", "double", "mean power"),
    Stored("temperature_max_c", "double", "highest temperature"),
    Stored("energy_j", "double", "its energy; null where a part of it is not known"),
    Stored("no_process_s", "double", "seconds in which no process was on it; null where nobody could look"),
    Stored("idle_after_end_s", "double", "seconds after the end of the last training; null on unused GPUs"),
)

EPOCHS = (
    RUN,
    Stored("yolo_run", "int64", "the YOLO run within the recording, from 1"),
    Stored("epoch", "int64", "from 1"),
    Stored("attempt", "int64", "how often it was begun, from 1"),
    Stored("start_s", "double", "its beginning, since the run's start"),
    Stored("end_s", "double", "its end, since the run's start"),
    Stored("train_s", "double", "seconds of training"),
    Stored("validation_s", "double", "seconds of validation"),
    Stored("checkpoint_s", "double", "seconds of saving"),
    Stored("images_per_s", "double", "images a second in training"),
    Stored("gpu_util_pct", "double", "mean utilisation"),
    Stored("energy_j", "double", "energy"),
    Stored("data_wait_s", "double", "seconds of training in which it waited for data"),
    Stored("loss", "double", "sum of the training losses"),
    Stored("lr", "double", "learning rate"),
)

FINDINGS = (
    RUN,
    Stored("id", "string", "its id in the report: report.html#drop-3"),
    Stored("rule", "string", "what kind it is (findings.md)"),
    Stored("severity", "string", "critical, warning or info"),
    Stored("cause", "string", "its cause (findings.md)"),
    Stored("confidence", "double", "of the cause, 0 to 1"),
    Stored("start_s", "double", "its beginning, since the run's start"),
    Stored("duration_s", "double", "how long it lasted, all occurrences together"),
    Stored("occurrences", "int64", "how often it happened"),
    Stored("lost_gpu_s", "double", "GPU seconds of work that it took"),
    Stored("share_of_training", "double", "the same as a share of the training, 0 to 1"),
    Stored("expected", "bool", "its phase explains it: no alarm"),
    Stored("epoch", "int64", "the epoch in which it began"),
    Stored("phase", "string", "the phase in which it began"),
    Stored("argument", "string", "the argument to change"),
    Stored("value", "string", "its new value"),
    Stored("gain_at_most", "double", "share of an epoch that can be saved at all, 0 to 1"),
    Stored("gain_estimate", "double", "share that the change is likely to save, 0 to 1"),
    Stored("summary", "string", "a sentence about it"),
)

LEDGER = (
    RUN,
    Stored("name", "string", "a cause, or `work`, `short gaps`, `idle`, `unmeasured` and phases (findings.md)"),
    Stored("expected", "bool", "it is no lost time"),
    Stored("gpu_seconds", "double", "GPU seconds that went there; of a run they add up to its gpu_hours"),
    Stored("energy_j", "double", "energy; null where most of it is not known"),
)

LOCATIONS = (
    RUN,
    Stored("name", "string", "the row of the ledger"),
    Stored("process", "string", "main, rank N, workers of a data loader, or thread (beside the main thread)"),
    Stored("function", "string", "the function"),
    Stored("file", "string", "its file"),
    Stored("line", "int64", "the line in which the process was"),
    Stored("share", "double", "share of the row's time, 0 to 1"),
    Stored("gpu_seconds", "double", "GPU seconds lost while it was there"),
)

MANIFEST = (
    RUN,
    Stored("path", "string", "its folder or URL"),
    Stored("fingerprint", "string", "of the sizes and times of its files: another one has it analysed anew"),
    Stored("version", "string", "the gpu-report that analysed it"),
    Stored("status", "string", "`ok`, or `failed`: then it has no row in any other table"),
    Stored("error", "string", "why it could not be read"),
    Stored("files", "int64", "files of the run"),
    Stored("bytes", "int64", "their size together"),
    Stored("indexed", "timestamp", "when it was analysed"),
)

TABLES: Mapping[str, tuple[Stored, ...]] = {
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

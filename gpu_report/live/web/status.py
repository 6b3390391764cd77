"""What `/gpu-status` says: the state of a run at this moment, as JSON. docs/live.md documents every field."""

from collections.abc import Sequence
from typing import Any

from gpu_report import schema
from gpu_report.iso_time import iso_utc
from gpu_report.live.alarms import Alarm, idle
from gpu_report.live.reading.gpu_readings import GpuReadings
from gpu_report.live.reading.last_minute import calls_now, host_now
from gpu_report.live.reading.run_now import RunNow
from gpu_report.live.reading.training import LiveTraining
from gpu_report.live.report_so_far import SoFar

SCHEMA_VERSION = 1
SECONDS_PER_HOUR = 3600.0
QUANTITIES = tuple(column.name for column in schema.GPU_QUANTITIES)


def status(
    run: RunNow, now_s: float, alarms: Sequence[Alarm], so_far: SoFar | None, price_per_hour: float | None
) -> dict[str, Any]:
    """Return the state of a run. Whatever is not known of now is None: no reading outlives its recorder."""
    state, training, rest = run.state(now_s), run.training, idle(run, now_s)
    host = host_now(run.folder, now_s, run.fresh_s) if state == "recording" else None
    mono_s = None if host is None else host.pop("mono_s")
    return {
        "schema_version": SCHEMA_VERSION,
        "time": iso_utc(now_s),
        "state": state,
        "last_sample": None if run.last_s is None else iso_utc(run.last_s),
        "run": _run(run),
        "gpus": [_gpu(run, gpu, now_s) for gpu in run.gpus],
        "idle_s": None if rest is None else round(max(rest.lasts_s, 0.0), 1),
        "training": None if training is None else _training(training, now_s, is_live=state == "recording"),
        "host": host,
        "calls": None if mono_s is None else calls_now(run.folder, mono_s),
        "spent": _spent(run, price_per_hour),
        "alarms": [_alarm(alarm, run.last_s or now_s) for alarm in alarms],
        "so_far": None if so_far is None else so_far.as_json(),
    }


def without_answer(said: dict[str, Any], now_s: float) -> dict[str, Any]:
    """Return what was said last without any reading: the disk of the run folder does not answer."""
    gone = dict.fromkeys((*QUANTITIES, "idle_s", "low_s", "level_pct"))
    gpus = [{**gpu, **gone} for gpu in said.get("gpus", ())]
    why = "the disk of the run folder does not answer"
    return {**said, "time": iso_utc(now_s), "gpus": gpus, "idle_s": None, "alarms": [], "error": why}


def _run(run: RunNow) -> dict[str, Any]:
    events = run.events
    return {
        "name": run.folder.name,
        "host": run.host,
        "start": None if run.samples.start_s is None else iso_utc(run.samples.start_s),
        "end": None if events.ended_s is None else iso_utc(events.ended_s),
        "ended_by": events.ended_by,
        "exit_code": events.exit_code,
        "exit_signal": events.exit_signal,
        "interval_s": run.interval_s,
    }


def _gpu(run: RunNow, gpu: GpuReadings, now_s: float) -> dict[str, Any]:
    is_now, device = run.is_of_now(gpu, now_s), run.devices.get(gpu.index)
    readings = {name: gpu.newest.get(name) if is_now else None for name in QUANTITIES}
    return {
        "index": gpu.index,
        "name": None if device is None else device.name,
        "uuid": None if device is None else device.uuid,
        "memory_total_mib": None if device is None else device.memory_mib,
        "age_s": round(now_s - gpu.at_s, 3),
        **readings,
        "idle_s": _since(gpu.idle_since_s, gpu.at_s) if is_now else None,
        "low_s": _since(gpu.low_since_s, gpu.at_s) if is_now else None,
        "level_pct": gpu.level_pct if is_now else None,
        "energy_used_j": round(gpu.energy_j, 1),
    }


def _training(training: LiveTraining, now_s: float, *, is_live: bool) -> dict[str, Any]:
    return {
        "task": training.task,
        "model": training.model,
        "phase": training.phase if is_live else None,
        "phase_s": _since(training.phase_since_s, now_s) if is_live and training.phase else None,
        "epoch": training.epoch,
        "epochs": training.epochs,
        "batch": training.batch,
        "batches": training.batches,
        "epoch_s": training.epoch_s(),
        "left_s": training.left_s(now_s) if is_live else None,
        "data_wait_share": training.data_wait_share,
        "data_wait_s": round(training.data_wait_s, 3),
        "ended": training.ended,
        "error": training.error,
    }


def _spent(run: RunNow, price_per_hour: float | None) -> dict[str, Any]:
    """Return what was spent on all GPUs while they were recorded; the time between two recordings is none of it."""
    seconds = max((gpu.recorded_s for gpu in run.gpus), default=0.0)
    gpu_s = sum(gpu.recorded_s for gpu in run.gpus)
    return {
        "seconds": round(seconds, 1),
        "gpu_seconds": round(gpu_s, 1),
        "energy_j": round(sum(gpu.energy_j for gpu in run.gpus), 1),
        "money": None if price_per_hour is None else round(price_per_hour * gpu_s / SECONDS_PER_HOUR, 4),
    }


def _alarm(alarm: Alarm, run_last_s: float) -> dict[str, Any]:
    return {
        "id": alarm.key,
        "kind": alarm.kind,
        "severity": alarm.severity,
        "gpu": alarm.gpu,
        "since": None if alarm.since_s is None else iso_utc(alarm.since_s),
        "for_s": _since(alarm.since_s, run_last_s),
        "text": alarm.text,
        "provisional": True,
    }


def _since(at_s: float | None, now_s: float) -> float | None:
    return None if at_s is None else round(max(now_s - at_s, 0.0), 1)

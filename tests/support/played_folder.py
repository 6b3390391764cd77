"""A played training (support/played_training.py) as a run folder of format 1: what load_run reads."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_report import schema
from support.played_training import (
    IDLE,
    SPINNING_WORK,
    STALL,
    TRAIN,
    VALIDATION,
    Floats,
    Played,
    Readings,
    Training,
    in_low,
    play,
    spins,
)
from support.played_yolo import APPEARED_S, MONO_S, PID, SAVE_DIR, WALL_S, args_yaml, inside, line, results

IDLE_CLOCKS = 1  # the reason of NVML for the clocks of a GPU without work
Cells = dict[str, Any]  # by the name of a column, its values or the one of all rows


def write_played(folder: Path, played: Played) -> Training:
    """Write the run folder of a played training and return what the training came to."""
    training = play(played)
    (folder / schema.YOLO_DIR).mkdir(parents=True)
    _table(folder / schema.SAMPLES_CSV, schema.SAMPLES_COLUMNS, _samples(training))
    if training.ring:
        _table(folder / schema.RING_CSV, schema.RING_COLUMNS, _of_gpus(training.ring))
    if played.host:
        _table(folder / schema.HOST_CSV, (*schema.TIME_COLUMNS, *schema.HOST_QUANTITIES), _host(training))
    if played.processes:
        _lines(folder / schema.PROCESSES_CSV, _processes(training))
    _lines(folder / schema.EVENTS_JSONL, map(json.dumps, sorted(_events(training), key=lambda event: event["mono_s"])))
    _lines(folder / schema.YOLO_DIR / schema.YOLO_RESULTS, results(training))
    (folder / schema.YOLO_DIR / schema.YOLO_ARGS).write_text(args_yaml(played))
    if played.inside:
        (folder / schema.INSIDE_DIR).mkdir()
        _lines(folder / schema.INSIDE_DIR / f"{PID}.jsonl", map(json.dumps, inside(training)))
    (folder / schema.RUN_JSON).write_text(json.dumps(_run(training)))
    return training


# --- tables -------------------------------------------------------------------------------------------------------


def _table(path: Path, columns: Sequence[schema.Column], cells: Cells) -> None:
    """Write a CSV; a column that `cells` does not have is empty, and so is a cell that is NaN."""
    rows = len(np.asarray(cells["wall_s"]))
    texts = [_texts(column, cells[column.name], rows) if column.name in cells else [""] * rows for column in columns]
    _lines(path, [",".join(column.name for column in columns), *map(",".join, zip(*texts, strict=True))])


def _texts(column: schema.Column, values: npt.ArrayLike, rows: int) -> list[str]:
    array = np.broadcast_to(np.asarray(values, dtype=float), rows)
    text = f"{{:.{column.decimals}f}}".format
    return ["" if value != value else text(value) for value in array.tolist()]  # noqa: PLR0124 - only NaN is not itself


def _lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("\n".join(lines) + "\n")


def _of_gpus(readings: Readings) -> Cells:
    """Return the columns that ticks and ring have in common: a row for each moment and GPU."""
    gpus = len(readings.util_pct)
    t_s = np.repeat(readings.t_s, gpus)
    gpu = np.tile(np.arange(gpus), len(readings.t_s))
    return {"wall_s": WALL_S + t_s, "mono_s": MONO_S + t_s, "gpu": gpu, "gpu_util_pct": readings.util_pct.T.ravel()}


def _samples(training: Training) -> Cells:
    played, ticks = training.played, training.ticks
    kinds = np.repeat(ticks.kinds, played.gpus)
    cells = _of_gpus(ticks)
    cells |= _utilised(training, kinds) | _clocks(played, kinds)
    hot = np.isin(kinds, (TRAIN, STALL))
    return cells | {
        "memory_used_mib": np.trunc(_memory(played)[kinds]),
        "memory_reserved_mib": 300,
        "power_w": training.power_w.ravel(),
        "temperature_c": np.where(hot, played.temperature_c, played.temperature_c - 15),
    }


def _utilised(training: Training, kinds: npt.NDArray[np.intp]) -> Cells:
    """Return what is told of how busy the GPUs were; GPM has no first row, for it counts since the row before."""
    played, util_pct = training.played, training.ticks.util_pct.T.ravel()
    cells: Cells = {"memory_util_pct": np.trunc(util_pct * 0.4)}
    if not played.has_utilisation:
        cells = {"gpu_util_pct": np.nan, "memory_util_pct": np.nan}
    if played.gpm:
        waiting = np.array([spins(played, training.ticks.kinds, gpu) for gpu in range(played.gpus)]).T.ravel()
        work = np.where(waiting, SPINNING_WORK, 1.0) * util_pct
        work[: played.gpus] = np.nan
        shares = {"sm_active_pct": 0.85, "sm_occupancy_pct": 0.35, "tensor_active_pct": 0.1, "dram_active_pct": 0.3}
        cells |= {name: share * work for name, share in shares.items()}
    return cells


def _clocks(played: Played, kinds: npt.NDArray[np.intp]) -> Cells:
    sm_mhz = np.full(len(kinds), played.card.clock_mhz)
    sm_mhz[kinds == IDLE] = played.card.idle_clock_mhz
    sm_mhz[kinds == TRAIN] = played.train_clock_mhz
    sm_mhz[kinds == VALIDATION] = played.validation_clock_mhz or played.train_clock_mhz
    reasons = np.where(kinds == TRAIN, played.train_clock_reasons, np.where(kinds == IDLE, IDLE_CLOCKS, 0))
    return {"sm_clock_mhz": sm_mhz, "memory_clock_mhz": 10501, "performance_state": 2, "clock_event_reasons": reasons}


def _memory(played: Played) -> Floats:
    """Return the memory (MiB) in each kind of part."""
    full = played.memory_mib
    return np.array([10, 500, 0.8 * full, full, full, 1.03 * full, 1.03 * full, 0.2 * full])


def _host(training: Training) -> Cells:
    played, ticks = training.played, training.ticks
    busy, stalled = ticks.kinds == TRAIN, in_low(played, ticks)

    def cpu(training_pct: float, else_pct: float, stalled_pct: float) -> npt.NDArray[Any]:
        return np.where(stalled, stalled_pct, np.where(busy, training_pct, else_pct))

    nothing = ("iowait_pct", "io_pressure_pct", "io_full_pressure_pct", "memory_pressure_pct", "swap_in_mib_s")
    return dict.fromkeys((*nothing, "workers_blocked", "trainer_stopped"), 0) | {
        "wall_s": WALL_S + ticks.t_s,
        "mono_s": MONO_S + ticks.t_s,
        "cpu_pct": cpu(30, 5, 1),
        "cpu_busiest_core_pct": 90,
        "memory_used_mib": 20000,
        "memory_available_mib": 40000,
        "cpu_pressure_pct": 0.2,
        "disk_read_mib_s": 20,
        "shm_free_mib": 32000,
        "main_cpu_pct": cpu(played.main_cpu_pct, 20, played.low_main_cpu_pct),
        "busiest_worker_cpu_pct": cpu(played.worker_cpu_pct, 5, 0),
        "workers_cpu_pct": cpu(played.worker_cpu_pct * played.workers, 20, 0),
        "workers": played.workers,
        "trainer_read_mib_s": 20,
    }


def _processes(training: Training) -> list[str]:
    played, gone_s = training.played, training.duration_s - training.played.idle_after_s
    lines = ["wall_s,mono_s,gpu,pid,name,memory_used_mib,change,owner,gpu_util_pct"]
    for gpu in range(played.gpus):
        for t_s, change in ((played.idle_before_s + APPEARED_S, "appeared"), (gone_s, "gone")):
            process = f"{gpu},{PID},python3 train.py,{played.memory_mib},{change},trainer,"
            lines.append(f"{WALL_S + t_s:.3f},{MONO_S + t_s:.3f},{process}")
    return lines


# --- events.jsonl and run.json ---------------------------------------------------------------------------------------


def _events(training: Training) -> list[dict[str, Any]]:
    played, end_s = training.played, training.duration_s
    begun_s, over_s = training.epochs[0].start_s, end_s - played.idle_after_s
    events = [
        line(0, "recording_started", segment=1),
        line(0, "kernel_log", status="read", source="/dev/kmsg", reason="", advice=""),
        line(0.1, "command_started", pid=PID, command=["yolo", "detect", "train"]),
        line(played.idle_before_s + APPEARED_S, "yolo_run", path=SAVE_DIR, number=1),
        line(over_s, "command_ended", exit_code=0),
        line(end_s, "recording_ended", ended_by="command", signal=None, exit_code=0),
    ]
    for epoch in training.epochs:
        row = {"run": 1, "epoch": epoch.number, "time_s": epoch.row_s - begun_s, "metrics": {"train/box_loss": 1.0}}
        events.append(line(epoch.row_s + 0.002, "epoch", **row))
        events.append(line(epoch.row_s + 0.6 * (epoch.end_s - epoch.row_s), "checkpoint", run=1, file="last.pt"))
    return events


def _run(training: Training) -> dict[str, Any]:
    played, last = training.played, training.epochs[-1]
    return {
        "format": schema.FORMAT_VERSION,
        "tool": {"name": "gpu-report", "version": "0.1.0"},
        "source": "gpu-report record",
        "pid": 1,
        "start": _clock(0.0),
        "end": _clock(training.duration_s),
        "ended_by": "command",
        "exit_code": 0,
        "exit_signal": None,
        "interval_s": played.interval_s,
        "command": ["yolo", "detect", "train"],
        "working_directory": "/r",
        "cuda_visible_devices": None,
        "host": _machine(played),
        "gpus": [_gpu(played, index) for index in range(played.gpus)],
        "driver": "550.120",
        "nvml": "12.550",
        "cuda": "12.4",
        "python": "3.12",
        "torch": "2.5.1",
        "ultralytics": "8.3.0",
        "yolo": [
            {
                "number": 1,
                "path": SAVE_DIR,
                "results_mtime_s": WALL_S + last.row_s,
                "train_start_s": WALL_S + training.epochs[0].start_s,
                "args_mtime_s": WALL_S + played.idle_before_s + APPEARED_S,
                "weights_mtime_s": WALL_S + last.end_s,
            }
        ],
        "recorder": {"cpu_pct": 0.5, "rss_mib": 54, "tick_p50_ms": 3, "tick_p99_ms": 20, "late_ticks": 0, "errors": 0},
    }


def _clock(t_s: float) -> dict[str, float]:
    return {"wall_s": WALL_S + t_s, "mono_s": MONO_S + t_s, "boot_s": MONO_S + t_s}


def _machine(played: Played) -> dict[str, Any]:
    known: dict[str, Any] = {"name": "box", "os": "Ubuntu 24.04", "kernel": "6.8", "container": None, "mounts": []}
    cores = {"cores": played.cores, "cores_online": played.cores}
    return known | cores | {"memory_mib": 64000, "memory_limit_mib": None, "shm_total_mib": 32000}


def _gpu(played: Played, index: int) -> dict[str, Any]:
    card = played.card
    return {
        "index": index,
        "uuid": f"GPU-{index:08d}-0000-4000-8000-000000000001",
        "pci_bus_id": f"00000000:0{index + 1}:00.0",
        "name": card.name,
        "memory_total_mib": card.memory_mib,
        "power_limit_w": card.limit_w,
        "max_sm_clock_mhz": card.clock_mhz,
        "max_memory_clock_mhz": 10501,
        "mig_enabled": False,
        "health_start": None,
        "health_end": None,
    }

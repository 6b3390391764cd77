"""What stands in run.json."""

import itertools
import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpu_report import __version__, schema
from gpu_report.inside.on_path.gpu_report_inside.secrets.hide import hide_in_command
from gpu_report.record.clocks import Clocks
from gpu_report.record.host import cgroup, cpu_memory, mounts, psi_disk
from gpu_report.record.job.describe import job_at_end, job_at_start
from gpu_report.record.lifecycle import user_and_project
from gpu_report.record.lifecycle.command import Ended, environment_version
from gpu_report.record.options import RecordOptions
from gpu_report.run_folder import slurm_job_id

SOURCE = "gpu-report record"
CUDA_DEVICES = "CUDA_VISIBLE_DEVICES"
SLURM_JOB = "SLURM_JOB_ID"  # but for this, whose.py and job/environment.py nothing of the environment is kept


def at_start(options: RecordOptions, start: Clocks, earlier: Mapping[str, object]) -> dict[str, object]:
    """Return run.json as it is written first; `earlier` is the one found in the folder, whose start is kept."""
    return {
        "format": schema.FORMAT_VERSION,
        "tool": {"name": "gpu-report", "version": __version__},
        "source": SOURCE,
        "pid": os.getpid(),
        "start": earlier.get("start") or start.as_json(),
        "end": None,
        "ended_by": None,
        "exit_code": None,
        "exit_signal": None,
        "interval_s": options.interval_s,
        "command": list(hide_in_command(options.command)) or None,
        "working_directory": _working_directory(),
        "cuda_visible_devices": _cuda_visible_devices(options.command),
        "slurm_job_id": slurm_job_id(os.environ.get(SLURM_JOB)),
        "user": user_and_project.user(),
        "project": user_and_project.project(),
        "job": job_at_start(),
        "host": _host(),
        "gpus": [],
        "driver": None,
        "nvml": None,
        "cuda": None,
        "python": platform.python_version(),
        "torch": environment_version(options.command, "torch"),
        "ultralytics": environment_version(options.command, "ultralytics"),
        "yolo": earlier_yolo_runs(earlier),
        "oom_kills": None,
        "recorder": None,
    }


def at_end(end: Clocks, ended_by: str, ended: Ended | None, recorder: Mapping[str, object]) -> dict[str, object]:
    """Return the fields that the end of a recording adds; `ended` is how the command ended, when it did."""
    return {
        "end": end.as_json(),
        "ended_by": ended_by,
        "exit_code": None if ended is None else ended.code,
        "exit_signal": None if ended is None else ended.signal_name,
        "recorder": dict(recorder),
    }


def job_to_the_end(start: object, folder: Path) -> dict[str, object]:
    """Return schema.RUN_JOB as it is known when the recording ends; `start` is what was written when it began."""
    begun = start if isinstance(start, dict) else job_at_start()
    ended = job_at_end(folder)
    clock = {**begun["clock"], "end": ended.pop("end")}
    return {**begun, **ended, "clock": clock}


def earlier_yolo_runs(earlier: Mapping[str, object]) -> list[dict[str, object]]:
    """Return the YOLO runs that an earlier recording into the same folder knew."""
    runs = earlier.get("yolo")
    return [dict(run) for run in runs if isinstance(run, dict)] if isinstance(runs, list) else []


def _host() -> dict[str, object]:
    """Return schema.RUN_HOST: the machine, and what of it this process and those that it starts may use."""
    limits = {"cpu_limit": cgroup.cpu_limit(), "memory_limit_mib": cgroup.memory_limit_mib()}
    return {**cpu_memory.describe(), **limits, "shm_total_mib": psi_disk.shm_total_mib(), "mounts": mounts.mounts()}


def _cuda_visible_devices(command: Sequence[str]) -> str | None:
    """Return what the command will find: our own value, unless it begins with `env CUDA_VISIBLE_DEVICES=...`."""
    words = itertools.takewhile(lambda word: "=" in word, command[1:]) if command[:1] == ("env",) else ()
    given = [word.removeprefix(CUDA_DEVICES + "=") for word in words if word.startswith(CUDA_DEVICES + "=")]
    return given[-1] if given else os.environ.get(CUDA_DEVICES)


def _working_directory() -> str | None:
    try:
        return str(Path.cwd())
    except OSError:
        return None  # it was deleted

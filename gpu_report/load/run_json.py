"""run.json as typed values; a run without it is described by its samples alone."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gpu_report import schema
from gpu_report.errors import InputError
from gpu_report.median import enough_of, median_of
from gpu_report.model import Gpu, Mount, RecorderCost, Recording
from gpu_report.ordinary_file import LARGEST_INDEX, MOST_GPUS
from gpu_report.run_folder import finite, read_json, slurm_job_id

# What lies beyond these is a broken file, not a machine.
LARGEST_NUMBER = 1e12
MOST_MOUNTS = 1024
LONGEST_VERSION = 20  # characters
SHORTEST_INTERVAL_S, LONGEST_INTERVAL_S = 0.01, 7200.0  # half and twice of what the recorder takes
MOST_TIMES = 10  # ticks are as close together only where others were asked for


def load_info(folder: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return run.json and what is wrong with it; InputError when it is of a newer format than we know."""
    try:
        info = read_json(folder / schema.RUN_JSON)
    except InputError as error:
        missing = not (folder / schema.RUN_JSON).exists()
        why = f"{schema.RUN_JSON} is missing" if missing else str(error)
        return {}, (f"{why}: host, driver and command are not known",)
    version = info.get("format")
    if isinstance(version, int) and version > schema.FORMAT_VERSION:
        newer = str(version)[:LONGEST_VERSION]
        raise InputError(
            f"{folder} has format {newer}, this gpu-report reads up to {schema.FORMAT_VERSION}: update gpu-report"
        )
    listed = info.get("gpus")
    if isinstance(listed, list) and len(listed) > MOST_GPUS:
        return info, (
            f"{schema.RUN_JSON} lists {len(listed):,} GPUs: those after the first {MOST_GPUS:,} are left out",
        )
    return info, ()


def recording(info: Mapping[str, Any], samples: pd.DataFrame, *, goes_on: bool = False) -> Recording:
    """Return how the run was recorded; the interval is measured where it is not known."""
    host = _mapping(info.get("host"))
    return Recording(
        tool_version=_text(_mapping(info.get("tool")).get("version")),
        host=_text(host.get("name")),
        os=_text(host.get("os")),
        cores=_whole(_number(host.get("cores"))),
        cores_online=_whole(_number(host.get("cores_online"))),
        cpu_limit=_number(host.get("cpu_limit")) or None,
        memory_mib=_number(host.get("memory_mib")),
        memory_limit_mib=_number(host.get("memory_limit_mib")),
        shm_total_mib=_number(host.get("shm_total_mib")),
        mounts=_mounts(host.get("mounts")),
        oom_kills=_counts(info.get("oom_kills")),
        driver=_text(info.get("driver")),
        cuda=_text(info.get("cuda")),
        python=_text(info.get("python")),
        torch=_text(info.get("torch")),
        ultralytics=_text(info.get("ultralytics")),
        command=_words(info.get("command")),
        cuda_visible_devices=_visible(info.get("cuda_visible_devices")),
        slurm_job_id=slurm_job_id(info.get("slurm_job_id")),
        user=_text(info.get("user")),
        project=_text(info.get("project")),
        interval_s=_interval_s(info, measured_interval(samples)),
        ended_by=_text(info.get("ended_by")),
        goes_on=goes_on,
        exit_code=_whole(info.get("exit_code")),
        exit_signal=_text(info.get("exit_signal")),
        source=_text(info.get("source")) or "samples CSV",
        cost=_cost(_mapping(info.get("recorder"))),
    )


def _cost(own: Mapping[str, Any]) -> RecorderCost:
    return RecorderCost(
        cpu_pct=_number(own.get("cpu_pct")),
        rss_mib=_number(own.get("rss_mib")),
        tick_p50_ms=_number(own.get("tick_p50_ms")),
        tick_p99_ms=_number(own.get("tick_p99_ms")),
        late_ticks=_whole(own.get("late_ticks")),
    )


def gpus(info: Mapping[str, Any], samples: pd.DataFrame) -> tuple[Gpu, ...]:
    """Return every GPU that run.json or the samples name, by index."""
    entries = info.get("gpus")
    listed = [_mapping(entry) for entry in entries[:MOST_GPUS]] if isinstance(entries, list) else []
    known = {index: entry for entry in listed if (index := whole_index(entry.get("index"))) is not None}
    seen = set(np.unique(samples["gpu"].to_numpy()).tolist())
    return tuple(_gpu(index, known.get(index, {})) for index in sorted(seen | set(known)))


def measured_interval(samples: pd.DataFrame) -> float | None:
    """Return the median distance in seconds of two rows of one GPU, None with fewer than two or where that is none.

    Rows are sorted by GPU and time.
    """
    gpus, t_s = samples["gpu"].to_numpy(), samples["t_s"].to_numpy(dtype=float)
    steps = np.diff(t_s)[gpus[1:] == gpus[:-1]]
    median_s = round(median_of(enough_of(steps)), 3) if len(steps) else 0.0
    return median_s if 0 < median_s <= LONGEST_INTERVAL_S else None


def whole_index(value: object) -> int | None:
    """Return a device index, None for what cannot be one."""
    index = _whole(value)
    return index if index is not None and 0 <= index <= LARGEST_INDEX and index == value else None


def _interval_s(info: Mapping[str, Any], measured_s: float | None) -> float | None:
    """Return the interval that was asked for, the measured one where that cannot be: a long one would hide gaps."""
    interval_s = finite(info.get("interval_s"))
    if interval_s is None or not SHORTEST_INTERVAL_S <= interval_s <= LONGEST_INTERVAL_S:
        return measured_s
    return measured_s if measured_s and interval_s > MOST_TIMES * measured_s else interval_s


def _gpu(index: int, entry: Mapping[str, Any]) -> Gpu:
    return Gpu(
        index=index,
        uuid=_text(entry.get("uuid")),
        name=_text(entry.get("name")),
        pci_bus_id=_text(entry.get("pci_bus_id")),
        memory_total_mib=_number(entry.get("memory_total_mib")),
        power_limit_w=_number(entry.get("power_limit_w")),
        power_limit_default_w=_number(entry.get("power_limit_default_w")),
        max_sm_clock_mhz=_number(entry.get("max_sm_clock_mhz")),
        max_memory_clock_mhz=_number(entry.get("max_memory_clock_mhz")),
        max_pcie_link_generation=_number(entry.get("max_pcie_link_generation")),
        max_pcie_link_width=_number(entry.get("max_pcie_link_width")),
        gpu_max_pcie_link_generation=_number(entry.get("gpu_max_pcie_link_generation")),
        health_start=_health(entry.get("health_start")),
        health_end=_health(entry.get("health_end")),
        parent_index=whole_index(entry.get("parent_index")),
        mig_index=whole_index(entry.get("mig_index")),
    )


def _health(entry: object) -> Mapping[str, int | str] | None:
    """Return what is known of schema.GPU_HEALTH: words for the recovery action, else counts; None for no object."""
    if not isinstance(entry, Mapping):
        return None
    known = {column.name: entry[column.name] for column in schema.GPU_HEALTH if column.name in entry}
    read = {name: _text(value) if name == "recovery_action" else _count(value) for name, value in known.items()}
    return {name: value for name, value in read.items() if value is not None}


def _count(value: object) -> int | None:
    return _whole(_number(value))


def _counts(value: object) -> Mapping[str, int]:
    """Return what was counted, by name; what is no count is not known."""
    read = {str(name): _count(count) for name, count in _mapping(value).items()}
    return {name: count for name, count in read.items() if count is not None}


def _mounts(value: object) -> tuple[Mount, ...]:
    """Return the filesystems of the machine; none at all where one makes no sense, for a folder may lie on that."""
    entries = value if isinstance(value, list) and len(value) <= MOST_MOUNTS else []
    found = [_mount(_mapping(entry)) for entry in entries]
    whole = [mount for mount in found if mount is not None]
    return tuple(whole) if len(whole) == len(found) else ()


def _mount(entry: Mapping[str, Any]) -> Mount | None:
    point, kind, rotational = _text(entry.get("point")), _text(entry.get("type")), entry.get("rotational")
    if point is None or kind is None:
        return None
    return Mount(
        point=point,
        type=kind,
        source=_text(entry.get("source")) or "",
        device=_text(entry.get("device")),
        rotational=rotational if isinstance(rotational, bool) else None,
        free_mib=_number(entry.get("free_mib")),
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _words(value: object) -> tuple[str, ...]:
    words = value if isinstance(value, list) else []
    return tuple(_text(word) or "" for word in words)


def _visible(value: object) -> str | None:
    """Return the devices that the command was given; an empty value gives none, and is not the same as no value."""
    return value if isinstance(value, str) else None


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return value or None
    number = finite(value)
    return None if number is None else str(value)


def _number(value: object) -> float | None:
    """Return an amount: finite, not negative, and no more than anything has."""
    number = finite(value)
    return number if number is not None and 0 <= number <= LARGEST_NUMBER else None


def _whole(value: object) -> int | None:
    number = finite(value)
    return int(number) if number is not None and abs(number) <= LARGEST_NUMBER else None

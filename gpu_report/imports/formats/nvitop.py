"""nvitop's ResourceMetricCollector, each of its results a row of a CSV, as pandas' `to_csv` writes them.

    <tag>/host/cpu_percent (%)/mean, <tag>/cuda:0 (gpu:3)/memory_used (MiB)/mean, <tag>/timestamp, <tag>/duration (s)

A mean is of all the time since the collector began or was cleared, not since the row before: nvitop's own loop never
clears it. What happened between two rows is the difference of mean times duration.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from gpu_report.errors import InputError
from gpu_report.imports.parsing.csv_file import read_columns
from gpu_report.imports.parsing.each_log import read_each
from gpu_report.imports.parsing.fields import MIB_PER_GIB, Field, converted, not_imported
from gpu_report.imports.parsing.readings import Device, Floats, Found, Readings
from gpu_report.imports.parsing.series import Series, host_of, readings_of
from gpu_report.imports.selection import Selection
from gpu_report.ordinary_file import LARGEST_INDEX

TOOL: Final = "nvitop"
HOW: Final = "log each result of nvitop's ResourceMetricCollector.collect() as a row of a CSV"
FIELDS: Final[Mapping[str, Field]] = {
    "gpu_utilization (%)": Field("gpu_util_pct"),
    "memory_utilization (%)": Field("memory_util_pct"),
    "memory_used (MiB)": Field("memory_used_mib"),
    "power_usage (W)": Field("power_w"),
    "temperature (C)": Field("temperature_c"),
}
HOST_FIELDS: Final[Mapping[str, Field]] = {
    "cpu_percent (%)": Field("cpu_pct"),
    "memory_used (GiB)": Field("memory_used_mib", MIB_PER_GIB),
}
_DEVICE: Final = {"memory_total (MiB)": "memory_total_mib", "power_limit (W)": "power_limit_w"}
_MEAN: Final = re.compile(
    r"(?P<tag>.+)/(?:(?P<host>host)|(?:cuda:\d+ \()?gpu:(?P<gpu>\d{1,5})\)?)/(?P<metric>[^/]+)/mean"
)
_PROCESS: Final = re.compile(r".*/pid:\d+(?:/.*)?")
_OTHER: Final = re.compile(r".*/(?:min|max|last|timestamp|last_timestamp|duration \(s\))|(?:Unnamed: )?\d*")
_BELOW_ZERO: Final = 1.0  # in any unit here: the duration is read up to 20 ms after the mean, which shifts a difference


def is_log(_: Path, head: str) -> bool:
    """Tell whether a file's first line is a header of nvitop's names."""
    header = head.partition("\n")[0]
    return "/timestamp" in header and "/duration (s)" in header and "gpu:" in header


@dataclass(frozen=True, eq=False)
class _NvitopLog:
    table: Readings
    host: pd.DataFrame | None
    unknown: frozenset[str]


def read(paths: Sequence[Path], _: Selection) -> Found:
    """Return all rows of all logs; InputError where none can be used."""
    logs, left_out = read_each(paths, _read, HOW)
    unknown = {name for log in logs for name in log.unknown}
    hosts = [log.host for log in logs if log.host is not None]
    host = pd.concat(hosts, ignore_index=True) if hosts else None
    return Found(TOOL, HOW, [log.table for log in logs], (*left_out, *not_imported(TOOL, unknown)), host=host)


def _read(path: Path) -> _NvitopLog:
    frame = read_columns(path, TOOL, HOW)
    tags = [name.removesuffix("/timestamp") for name in frame if name.endswith("/timestamp")]
    if not tags:
        raise InputError(f"{path} has no column that ends in /timestamp: {HOW}")
    tag = max(tags, key=lambda tag: int(np.isfinite(frame[f"{tag}/timestamp"]).sum()))
    stamp_s = frame[f"{tag}/timestamp"]
    length_s = frame.get(f"{tag}/duration (s)", np.full(len(stamp_s), np.nan))
    series: dict[tuple[int, str], Series] = {}
    host: dict[str, Series] = {}
    devices: dict[int, Device] = {}
    unknown = {name for name in frame if not _MEAN.fullmatch(name) and not _OTHER.fullmatch(name)}
    for name, values in frame.items():
        found = _MEAN.fullmatch(name)
        if found is None or found["tag"] != tag:
            unknown |= {found["tag"]} if found else set()
            continue
        metric, gpu = found["metric"], int(found["gpu"] or 0)
        field = (HOST_FIELDS if found["host"] else FIELDS).get(metric)
        if metric in _DEVICE and not found["host"]:
            devices[gpu] = {**devices.get(gpu, {}), _DEVICE[metric]: _last(values)}
        elif field is None or gpu > LARGEST_INDEX:
            unknown.add(f"{'host' if found['host'] else 'gpu'}/{metric}")
        elif found["host"]:
            host[field.column] = stamp_s, converted(_since_the_row_before(values, length_s), field)
        else:
            series[gpu, field.column] = stamp_s, converted(_since_the_row_before(values, length_s), field)
    if not series:
        raise InputError(f"{path} has no column of a GPU, as in {tag}/cuda:0 (gpu:0)/gpu_utilization (%)/mean: {HOW}")
    shown = {_PROCESS_NAME if _PROCESS.fullmatch(name) else name for name in unknown}
    return _NvitopLog(readings_of(series, devices), host_of(host), frozenset(shown))


_PROCESS_NAME: Final = "the columns of processes"


def _last(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return round(float(known[-1]), 1) if known.size else None


def _since_the_row_before(mean: Floats, length_s: Floats) -> Floats:
    """Return the mean since the row before; of the first row, and where the collector was cleared, as it is."""
    goes_on = np.zeros(len(mean), dtype=bool)
    goes_on[1:] = np.diff(length_s) > 0
    sums = mean * length_s
    apart = np.ones(len(mean))
    apart[1:] = np.where(goes_on[1:], np.diff(length_s), 1.0)
    between = np.zeros(len(mean))
    between[1:] = np.diff(sums)
    since = np.where(goes_on, between / apart, mean)
    return np.where(since > -_BELOW_ZERO, np.maximum(since, 0.0), since)

"""ClearML's scalars as `json.dump(task.get_reported_scalars(x_axis="timestamp"), file)` writes them.

{":monitor:gpu": {"gpu_0_utilization": {"name": ..., "x": [ms, ...], "y": [...]}}}. By its resource_monitor.py GPUs are
numbered in their order, memory is in GiB, utilisation is 100 where it cannot be read, and power 0.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from gpu_report.errors import InputError
from gpu_report.imports.parsing.fields import MIB_PER_GIB, Field
from gpu_report.imports.parsing.json_documents import Documents, damage, number
from gpu_report.imports.parsing.readings import Floats, Found
from gpu_report.imports.parsing.series import Gathered, SeriesPlace, gather_each
from gpu_report.imports.parsing.text_file import read_text
from gpu_report.imports.selection import Selection

TOOL: Final = "ClearML"
HOW: Final = 'save `task.get_reported_scalars(x_axis="timestamp")` as JSON'
FIELDS: Final[Mapping[str, Field]] = {
    "utilization": Field("gpu_util_pct"),
    "mem_used_gb": Field("memory_used_mib", MIB_PER_GIB),
    "power_draw": Field("power_w"),
    "temperature": Field("temperature_c"),
}
HOST_FIELDS: Final[Mapping[str, Field]] = {"cpu_usage": Field("cpu_pct")}
_GPU_TITLE, _HOST_TITLE = ":monitor:gpu", ":monitor:machine"
_NAME: Final = re.compile(r"gpu_(?P<gpu>\d{1,5})_(?P<metric>\w+)")
_UNREADABLE_PCT: Final = 100.0  # ClearML's monitor writes it where it could not read utilisation
_SCALARS: Final = re.compile(r'\s*\{\s*"[^"]*":\s*\{\s*"[^"]*":\s*\{\s*"(?:name|x|y)":')
_EARLIEST_MS: Final = 1e12  # 2001: what is smaller counts iterations, or seconds since the start
_MILLI: Final = 1e-3


def is_log(_: Path, head: str) -> bool:
    """Tell whether a file holds scalars of ClearML; those of its monitor may stand far behind losses."""
    return f'"{_GPU_TITLE}"' in head or _SCALARS.match(head) is not None


def read(paths: Sequence[Path], selection: Selection) -> Found:
    """Return the readings of all logs; InputError where none has any."""
    return gather_each(paths, _read, TOOL, HOW, selection)


def _read(path: Path, gathered: Gathered) -> tuple[str, ...]:
    documents = Documents(read_text(path, TOOL))
    for document in documents:
        gpus = _series(document, _GPU_TITLE, path)
        for name, (stamps, values) in gpus.items():
            found = _NAME.fullmatch(name)
            metric, gpu = (found["metric"], int(found["gpu"])) if found else (name, 0)
            readable = _readable(gpus, gpu, stamps, values) if metric == "utilization" else values
            gathered.add_all(
                SeriesPlace(f"gpu_N_{metric}", None, gpu, FIELDS.get(metric) if found else None), stamps, readable
            )
        for name, (stamps, values) in _series(document, _HOST_TITLE, path).items():
            gathered.add_all(SeriesPlace(name, None, None, HOST_FIELDS.get(name)), stamps, values)
    return damage(path, documents)


def _series(document: Mapping[str, Any], title: str, path: Path) -> dict[str, tuple[Floats, Floats]]:
    """Return the series of a title, by name; InputError where their x are no times."""
    found = document.get(title)
    series: dict[str, tuple[Floats, Floats]] = {}
    for name, each in found.items() if isinstance(found, dict) else ():
        if not isinstance(each, dict) or not isinstance(each.get("x"), list) or not isinstance(each.get("y"), list):
            continue
        pairs = np.array([(number(x), number(y)) for x, y in zip(each["x"], each["y"], strict=False)]).reshape(-1, 2)
        if (pairs[:, 0] < _EARLIEST_MS).any():
            raise InputError(f"{path} has iterations, and no times: {HOW}")
        series[str(name)] = pairs[:, 0] * _MILLI, pairs[:, 1]
    return series


def _readable(gpus: Mapping[str, tuple[Floats, Floats]], gpu: int, stamps: Floats, values: Floats) -> Floats:
    """Return utilisation without the 100 % that stands where it could not be read: nothing draws no power there."""
    power = gpus.get(f"gpu_{gpu}_power_draw")
    if power is None or not len(power[0]):
        return np.where(values == _UNREADABLE_PCT, np.nan, values) if (values == _UNREADABLE_PCT).all() else values
    order = np.argsort(power[0], kind="stable")
    at = np.clip(np.searchsorted(power[0][order], stamps), 0, len(order) - 1)
    watts = power[1][order][at]
    return np.where((values == _UNREADABLE_PCT) & ~(watts > 0), np.nan, values)

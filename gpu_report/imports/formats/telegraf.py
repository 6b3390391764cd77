r"""Telegraf's input nvidia_smi: line protocol or JSON of its `[[outputs.file]]`, or what InfluxDB exports as CSV.

    nvidia_smi,host=node1,index=0,name=NVIDIA\ H200,uuid=GPU-... utilization_gpu=97i,memory_used=4394i 17952...
    {"name": "nvidia_smi", "tags": {"host": ..., "index": ...}, "fields": {"power_draw": 97}, "timestamp": ...}
    ,result,table,_time,_value,_field,_measurement,host,index,...

Memory is in MiB, as nvidia-smi has it. Its inputs cpu and mem beside it are of the host, in % and bytes.
"""

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from gpu_report.imports.parsing.each_log import read_each
from gpu_report.imports.parsing.fields import BYTES_PER_MIB, Field, not_imported
from gpu_report.imports.parsing.json_documents import Documents, damage, number
from gpu_report.imports.parsing.readings import Device, Found
from gpu_report.imports.parsing.series import Gathered, SeriesPlace
from gpu_report.imports.parsing.text_file import read_text
from gpu_report.imports.selection import Selection
from gpu_report.imports.times import iso_wall_s

TOOL: Final = "Telegraf"
HOW: Final = "write Telegraf's nvidia_smi with [[outputs.file]], or export it from InfluxDB as CSV"
# plugins/inputs/nvidia_smi/README.md and schema_v13/parser.go
FIELDS: Final[Mapping[str, Field]] = {
    "utilization_gpu": Field("gpu_util_pct"),
    "utilization_memory": Field("memory_util_pct"),
    "memory_used": Field("memory_used_mib"),
    "memory_reserved": Field("memory_reserved_mib"),
    "power_draw": Field("power_w"),
    "power_limit": Field("power_limit_w"),
    "memory_total": Field("memory_total_mib"),
    "temperature_gpu": Field("temperature_c"),
    "temperature_memory": Field("memory_temperature_c"),
    "clocks_current_sm": Field("sm_clock_mhz"),
    "clocks_current_memory": Field("memory_clock_mhz"),
    "pstate": Field("performance_state"),
    "pcie_link_gen_current": Field("pcie_link_generation"),
    "pcie_link_width_current": Field("pcie_link_width"),
}
HOST_FIELDS: Final[Mapping[tuple[str, str], Field]] = {
    ("cpu", "usage_active"): Field("cpu_pct"),
    ("mem", "used"): Field("memory_used_mib", 1 / BYTES_PER_MIB),
    ("mem", "available"): Field("memory_available_mib", 1 / BYTES_PER_MIB),
}
_GPU: Final = "nvidia_smi"
_TAGS: Final = frozenset({"index", "uuid", "name", "host", "pstate", "arch", "compute_mode"})
_LINE: Final = re.compile(
    r"^(?P<name>nvidia_smi|cpu|mem)(?P<tags>(?:,(?:\\.|[^\\ \n])+)?) "
    r'(?P<fields>(?:[^" \n]|"(?:\\.|[^"\\\n])*")+) (?P<stamp>\d{1,20})$',
    re.MULTILINE,
)
_INDEX: Final = re.compile(r"[0-9]{1,5}")
_TAG: Final = re.compile(r",((?:\\.|[^\\=,])+)=((?:\\.|[^\\,])+)")
_NUMBER: Final = re.compile(r"(?:^|,)(\w+)=(-?\d[\d.eE+-]*)[iu]?(?=,|$)")
_QUOTED: Final = re.compile(r'"(?:\\.|[^"\\])*"')
_KNOWN_BY: Final = re.compile(r'^nvidia_smi,|"name": ?"nvidia_smi"', re.MULTILINE)
_PER_S: Final = (1e9, 1e6, 1e3, 1.0)  # a stamp is in ns, us, ms or s
_LATEST_S: Final = 1e11  # the year 5138: what is more counts something shorter than seconds


class _TelegrafMetric(NamedTuple):
    name: str
    tags: Mapping[str, Any]
    fields: Mapping[str, Any]
    stamp_s: float


def is_log(_: Path, head: str) -> bool:
    """Tell whether a file has metrics of Telegraf's nvidia_smi, in any of its forms."""
    return _KNOWN_BY.search(head) is not None or ("_measurement" in head and ",nvidia_smi," in head)


def read(paths: Sequence[Path], selection: Selection) -> Found:
    """Return the metrics of all logs; InputError where none is of a GPU, or where they are of several hosts."""
    gathered = Gathered(TOOL, selection)
    node = dict(selection.labels).get("node")
    devices: dict[int, Device] = {}

    def of_log(path: Path) -> tuple[str, ...]:
        metrics, said = _metrics(path)
        for metric in metrics:
            if metric.name == _GPU:
                _add_gpu(gathered, metric, devices, node)
            else:
                _add_host(gathered, metric)
        return said

    said, left_out = read_each(paths, of_log, HOW)
    problems = (*left_out, *(one for each in said for one in each), *not_imported(TOOL, gathered.unknown))
    return gathered.found(HOW, problems, devices)


def _metrics(path: Path) -> tuple[Iterator[_TelegrafMetric], tuple[str, ...]]:
    """Return the metrics of a log in whichever form, and what of it could not be read."""
    text = read_text(path, TOOL)
    begins = text.lstrip()
    if begins[0] in "{[":
        documents = Documents(text)
        return iter(list(_of_documents(documents))), damage(path, documents)
    is_csv = begins[0] in "#," or "_measurement" in begins.partition("\n")[0]
    return (_of_csv(text) if is_csv else _of_lines(text)), ()


def _of_lines(text: str) -> Iterator[_TelegrafMetric]:
    for line in _LINE.finditer(text):
        tags = {_plain(key): _plain(value) for key, value in _TAG.findall(line["tags"])}
        fields = dict(_NUMBER.findall(_QUOTED.sub("", line["fields"])))
        yield _TelegrafMetric(line["name"], tags, fields, _seconds(float(line["stamp"])))


def _plain(escaped: str) -> str:
    return re.sub(r"\\(.)", r"\1", escaped)


def _of_documents(documents: Documents) -> Iterator[_TelegrafMetric]:
    for document in documents:
        metrics = document.get("metrics", [document])
        for metric in metrics if isinstance(metrics, list) else ():
            each = metric if isinstance(metric, dict) else {}
            tags, fields = each.get("tags"), each.get("fields")
            if isinstance(tags, dict) and isinstance(fields, dict):
                yield _TelegrafMetric(str(each.get("name")), tags, fields, _seconds(number(each.get("timestamp"))))


def _of_csv(text: str) -> Iterator[_TelegrafMetric]:
    """Yield the rows of InfluxDB's tables, each with a header of its own; one row has one field, or all of them."""
    header: list[str] = []
    for row in csv.reader(text.split("\n")):
        if not row or row[0].startswith("#"):
            continue
        if "_time" in row:
            header = row
            continue
        cells = dict(zip(header, row, strict=False))
        fields = {cells["_field"]: cells.get("_value")} if "_field" in cells else cells
        stamp_s = iso_wall_s(cells.get("_time", ""), UTC)
        if stamp_s is not None:
            yield _TelegrafMetric(cells.get("_measurement", _GPU), cells, fields, stamp_s)


def _seconds(stamp: float) -> float:
    return next((stamp / per_s for per_s in reversed(_PER_S) if stamp / per_s < _LATEST_S), float("nan"))


def _add_gpu(gathered: Gathered, metric: _TelegrafMetric, devices: dict[int, Device], node: str | None) -> None:
    index = str(metric.tags.get("index", ""))
    host = str(metric.tags["host"]) if metric.tags.get("host") else None
    if not _INDEX.fullmatch(index):
        return
    gpu = int(index)
    fields = {**metric.fields, "pstate": str(metric.tags.get("pstate", "")).removeprefix("P")}
    for name, value in fields.items():
        if name in FIELDS:
            gathered.add(SeriesPlace(name, host, gpu, FIELDS[name]), metric.stamp_s, number(value))
        elif name not in _TAGS and not name.startswith("_") and np.isfinite(number(value)):
            gathered.unknown.add(name)
    if node in {None, host}:
        named = {name: str(metric.tags[name]) for name in ("uuid", "name") if metric.tags.get(name)}
        devices[gpu] = {**devices.get(gpu, {}), **named}


def _add_host(gathered: Gathered, metric: _TelegrafMetric) -> None:
    """Add what Telegraf says of the host's processors together, and of its memory."""
    if metric.name == "cpu" and metric.tags.get("cpu") not in {None, "cpu-total"}:
        return
    fields = dict(metric.fields)
    if metric.name == "cpu" and "usage_idle" in fields:
        fields["usage_active"] = 100.0 - number(fields["usage_idle"])
    host = str(metric.tags["host"]) if metric.tags.get("host") else None
    for name, value in fields.items():
        if field := HOST_FIELDS.get((metric.name, name)):
            gathered.add(SeriesPlace(name, host, None, field), metric.stamp_s, number(value))

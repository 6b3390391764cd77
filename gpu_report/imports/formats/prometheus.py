"""dcgm-exporter's or nvidia_gpu_exporter's metrics as Prometheus answers `query_range`, from a server or as JSON.

What `promtool query range -o json` prints and `/api/v1/export` of VictoriaMetrics answers is the same without a frame.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

import numpy as np

from gpu_report import schema
from gpu_report.errors import InputError
from gpu_report.imports.formats import nvidia_gpu_exporter_names as smi
from gpu_report.imports.formats.dcgm_names import ENGINE, FIELDS, XID, value_of
from gpu_report.imports.formats.prometheus_api import fetch, series_in, short
from gpu_report.imports.parsing.each_log import read_each
from gpu_report.imports.parsing.fields import PERCENT, Field, converted, first_of, not_imported
from gpu_report.imports.parsing.json_documents import Documents, damage
from gpu_report.imports.parsing.readings import Device, Floats, Found
from gpu_report.imports.parsing.series import readings_of
from gpu_report.imports.parsing.text_file import read_text
from gpu_report.imports.selection import Selection
from gpu_report.ordinary_file import LARGEST_INDEX

TOOL: Final = schema.SOURCE_OF_DCGM
HOW: Final = (
    "save what Prometheus answers to /api/v1/query_range for DCGM_FI_... or nvidia_smi_... metrics, or name its address"
)
_UTILISATION: Final = "gpu_util_pct"
_OF_A_MOMENT: Final = ("vector", "scalar")  # kinds of answers
_MIG: Final = "GPU_I_ID"
_REFUSED: Final = re.compile(r'"status"\s*:\s*"error"')
_GPU: Final = re.compile(r"\d{1,5}")
_MOST_SHOWN: Final = 8  # hosts in an error


@dataclass
class _SeriesPieces:
    """What series said so far: pieces of stamps and values by GPU and metric, and whose they are."""

    pieces: defaultdict[tuple[int, str], list[Floats]] = field(default_factory=lambda: defaultdict(list))
    by_uuid: defaultdict[tuple[str, str], list[Floats]] = field(default_factory=lambda: defaultdict(list))
    index_of: dict[str, int] = field(default_factory=dict)
    device_of: dict[str, Device] = field(default_factory=dict)
    uuids: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    instances: dict[str, None] = field(default_factory=dict)
    devices: dict[int, Device] = field(default_factory=dict)
    hosts: dict[str, None] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    unwanted: int = 0


def is_log(_: Path, head: str) -> bool:
    """Tell whether a file begins as an answer of Prometheus, or as series that promtool or VictoriaMetrics wrote."""
    is_series = '"metric"' in head and '"__name__"' in head and '"values"' in head
    return head.lstrip(" \n[").startswith("{") and ('"resultType"' in head or is_series or bool(_REFUSED.search(head)))


def read(paths: Sequence[Path], selection: Selection) -> Found:
    """Return the series of saved answers and of a server; InputError where there are none of a GPU."""
    seen = _SeriesPieces()
    said, left_out = read_each(paths, lambda path: _read(path, selection, seen), HOW) if paths else ([], [])
    damaged = [one for each in said for one in each]
    if selection.server is not None:
        for answer in fetch(selection):
            _add_answer(answer, selection, seen)
    _number(seen)
    if not seen.pieces:
        chosen = ", ".join(f"{label}={value}" for label, value in selection.labels)
        which = f" with {chosen}" if chosen else ""
        raise InputError(
            f"no series of dcgm-exporter or nvidia_gpu_exporter{which} was found{_of_which(seen, damaged)}: {HOW}"
        )
    _refuse_several_hosts(seen)
    series = {key: _series(pieces) for key, pieces in seen.pieces.items()}
    tool = schema.SOURCE_OF_SMI_EXPORTER if all(name in smi.FIELDS for _, name in series) else TOOL
    happenings, older = _xids(series)
    table = readings_of(_by_column(series), seen.devices)
    problems = (*left_out, *damaged, *not_imported(tool, seen.unknown), *older)
    host = next(iter(seen.hosts), None)
    has_xids = any(name == XID for _, name in series)
    return Found(tool, HOW, [table], problems, host_name=host, keeps_last_xid=has_xids, happenings=happenings)


def _of_which(seen: _SeriesPieces, damaged: Sequence[str]) -> str:
    unwanted = f" among {seen.unwanted} series" if seen.unwanted else ""
    unknown = f" (found: {first_of(seen.unknown)})" if seen.unknown else ""
    return unwanted + unknown + (f"; {damaged[0].removesuffix('.')}" if damaged else "")


def _read(path: Path, selection: Selection, seen: _SeriesPieces) -> tuple[str, ...]:
    documents = Documents(read_text(path, "Prometheus"))
    refused = ""
    for document in documents:
        data = document.get("data")
        if isinstance(data, dict) and data.get("resultType") in _OF_A_MOMENT:
            raise InputError(f"{path} has the values of one moment: save what /api/v1/query_range answers, not /query")
        _add_answer(document, selection, seen)
        refused = refused or (short(document.get("error")) if document.get("status") == "error" else "")
    if refused and not seen.pieces:
        raise InputError(f"{path} is an error that Prometheus answered ({refused}): mend the query, and save it again")
    return (
        *damage(path, documents),
        *([f"{path} holds an error that Prometheus answered: {refused}."] if refused else []),
    )


def _add_answer(answer: Mapping[str, Any], selection: Selection, seen: _SeriesPieces) -> None:
    for labels, points in series_in(answer):
        _add(labels, points, selection, seen)


def _add(
    labels: Mapping[str, Any], points: list[tuple[float, float]], selection: Selection, seen: _SeriesPieces
) -> None:
    """Add a series where it is of a GPU that was asked for; a GPU has several where its pod changed."""
    name, gpu = str(labels.get("__name__", "a series without a name")), _index(labels)
    if any(value_of(labels, label) != value for label, value in selection.labels):
        seen.unwanted += 1
        return
    if labels.get(_MIG):
        seen.unknown.add("MIG devices")
        return
    values = np.array(points, dtype=float).reshape(-1, 2)
    if name in smi.WANTED and labels.get("uuid"):
        _add_by_uuid(name, labels, values, seen)
    elif gpu is not None and (name in FIELDS or name in {ENGINE, XID}):
        seen.devices.setdefault(gpu, _device(labels))
        seen.uuids[gpu].add(str(labels.get("UUID", "")))
        seen.pieces[gpu, name].append(values)
    else:
        seen.unknown.add(name)
        return
    if (host := value_of(labels, "Hostname")) is not None:
        seen.hosts[host] = None
    if labels.get("instance"):
        seen.instances[str(labels["instance"])] = None


def _add_by_uuid(name: str, labels: Mapping[str, Any], values: Floats, seen: _SeriesPieces) -> None:
    """Add a series of nvidia_gpu_exporter, whose index another one knows."""
    uuid = smi.uuid_of(str(labels["uuid"]))
    if name in smi.FIELDS:
        seen.by_uuid[uuid, name].append(values)
        return
    known = values[np.isfinite(values[:, 1]), 1]
    index = str(labels.get("index", "")) if name == smi.INFO else f"{known[-1]:.0f}" if known.size else ""
    if _GPU.fullmatch(index):
        seen.index_of[uuid] = int(index)
    if name == smi.INFO:
        names = {"name": "name", "driver": "driver_version", "pci_bus_id": "pci_bus_id"}
        seen.device_of[uuid] = {ours: str(labels[theirs]) for ours, theirs in names.items() if labels.get(theirs)}


def _number(seen: _SeriesPieces) -> None:
    """Give the series that have a UUID alone the index of their GPU, the next free one where nothing says it."""
    of_dcgm = {uuid: gpu for gpu, uuids in seen.uuids.items() for uuid in uuids}
    for uuid, name in seen.by_uuid:
        seen.index_of |= {uuid: of_dcgm[uuid]} if uuid in of_dcgm else {}
        free = next(index for index in count() if index not in seen.uuids and index not in seen.index_of.values())
        gpu = seen.index_of.setdefault(uuid, free)
        seen.uuids[gpu].add(uuid)
        seen.devices.setdefault(gpu, {**seen.device_of.get(uuid, {}), "uuid": uuid})
        seen.pieces[gpu, name] += seen.by_uuid[uuid, name]


def _refuse_several_hosts(seen: _SeriesPieces) -> None:
    """Raise InputError where series are of several machines, by their names, or by an index of several UUIDs."""
    label, names = ("Hostname", seen.hosts) if seen.hosts else ("instance", seen.instances)
    if len(names) > 1 and (seen.hosts or any(len(uuids) > 1 for uuids in seen.uuids.values())):
        hosts = ", ".join(list(names)[:_MOST_SHOWN])
        raise InputError(f"the series are of {len(names)} hosts: choose one with --label {label}=NAME ({hosts})")


def _index(labels: Mapping[str, Any]) -> int | None:
    text = str(labels.get("gpu") or str(labels.get("device", "")).removeprefix("nvidia"))
    return int(text) if _GPU.fullmatch(text) and int(text) <= LARGEST_INDEX else None


def _device(labels: Mapping[str, Any]) -> Device:
    names = {"uuid": "UUID", "name": "modelName", "pci_bus_id": "pci_bus_id", "driver": "DCGM_FI_DRIVER_VERSION"}
    return {ours: str(labels[name]) if labels.get(name) else None for ours, name in names.items()}


def _series(pieces: Iterable[Floats]) -> tuple[Floats, Floats]:
    """Return the pieces of a series as one, in order of time; pieces of an answer overlap by a point."""
    together = np.concatenate(list(pieces))
    stamps, first = np.unique(together[:, 0], return_index=True)
    return stamps, together[first, 1]


def _by_column(series: Mapping[tuple[int, str], tuple[Floats, Floats]]) -> dict[tuple[int, str], tuple[Floats, Floats]]:
    found = {
        (gpu, FIELDS[name].column): (stamps, converted(values, FIELDS[name]))
        for (gpu, name), (stamps, values) in series.items()
        if name in FIELDS
    }
    for (gpu, name), (stamps, values) in series.items():  # of both exporters, dcgm-exporter's
        if name in smi.FIELDS:
            found.setdefault((gpu, smi.FIELDS[name].column), (stamps, converted(values, smi.FIELDS[name])))
        if name == ENGINE and (gpu, _UTILISATION) not in found:
            found[gpu, _UTILISATION] = stamps, converted(values, Field(_UTILISATION, PERCENT))
    return found


def _xids(
    series: Mapping[tuple[int, str], tuple[Floats, Floats]],
) -> tuple[list[tuple[str, float, Mapping[str, object]]], tuple[str, ...]]:
    """Return an event where the last error's code changed; what stood there at first may be of any time before."""
    happenings: list[tuple[str, float, Mapping[str, object]]] = []
    older = []
    for (gpu, name), (stamps, values) in sorted(series.items()):
        codes = converted(values, Field("")) if name == XID else np.zeros(0)
        known = np.flatnonzero(np.isfinite(codes))
        changed = known[1:][np.diff(codes[known]) != 0]
        happenings += [
            ("xid", float(stamps[at]), {"gpu": gpu, "code": int(codes[at])}) for at in changed if codes[at] > 0
        ]
        if known.size and codes[known[0]] > 0:
            older.append(f"GPU {gpu} had Xid {int(codes[known[0]])} at some time before the log begins.")
    return happenings, tuple(older)

"""From series of readings, one a GPU and quantity, to rows."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from gpu_report.errors import InputError
from gpu_report.imports.machines import refuse_several_nodes
from gpu_report.imports.parsing.each_log import read_each
from gpu_report.imports.parsing.fields import Field, converted, failures, not_imported
from gpu_report.imports.parsing.readings import DEVICE_FIELDS, Device, Floats, Found, Readings
from gpu_report.imports.selection import Selection
from gpu_report.ordinary_file import LARGEST_INDEX, MOST_GPUS

Series = tuple[Floats, Floats]  # stamps in seconds and values, of one length


def readings_of(series: Mapping[tuple[int, str], Series], devices: Mapping[int, Device] | None = None) -> Readings:
    """Return the rows of series by GPU and column of samples.csv: one a moment at which any of a GPU's has a reading.

    Of more than MOST_GPUS, which no machine has, those with the lowest numbers are taken.
    """
    gpus = sorted({gpu for gpu, _ in series})[:MOST_GPUS]
    columns = sorted({column for _, column in series})
    moments = {gpu: _moments([stamps for (of, _), (stamps, _) in series.items() if of == gpu]) for gpu in gpus}
    rows = np.concatenate([np.zeros(0, dtype=np.int64), *(np.full(len(moments[gpu]), gpu) for gpu in gpus)])
    quantities = {
        column: np.concatenate([np.zeros(0), *(_placed(moments[gpu], series.get((gpu, column))) for gpu in gpus)])
        for column in columns
    }
    stamp_s = np.concatenate([np.zeros(0), *(moments[gpu] for gpu in gpus)])
    return Readings(stamp_s, rows, quantities, failures(quantities, rows), devices or {})


def host_of(series: Mapping[str, Series]) -> pd.DataFrame | None:
    """Return rows of host.csv from series by its columns, None where there are none."""
    if not series:
        return None
    moments = _moments([stamps for stamps, _ in series.values()])
    return pd.DataFrame({"stamp_s": moments, **{name: _placed(moments, each) for name, each in series.items()}})


class SeriesPlace(NamedTuple):
    """Where a value belongs: their name for it, the node (None: they name none), GPU (None: the host), and field.

    Without a field a run has no place for it.
    """

    name: str
    node: str | None
    gpu: int | None
    field: Field | None


class Gathered:
    """What is said of GPUs and host, one value after the other, by whatever names; then all of it as rows.

    `unknown` are names that have no column. `node` is a machine of several that log into one run, or one of several
    runs: where there are more, one must be chosen with --label node=NAME.
    """

    def __init__(self, tool: str, selection: Selection) -> None:
        self.unknown: set[str] = set()
        self._tool = tool
        self._node = dict(selection.labels).get("node")
        self._nodes: dict[str, None] = {}
        self._pieces: defaultdict[tuple[int | None, Field], list[tuple[Floats, Floats]]] = defaultdict(list)
        self._single: defaultdict[tuple[int | None, Field], list[tuple[float, float]]] = defaultdict(list)

    def add(self, place: SeriesPlace, stamp_s: float, value: float) -> None:
        """Add a value at a moment (s)."""
        if self._is_wanted(place) and place.field is not None:
            self._single[place.gpu, place.field].append((stamp_s, value))

    def add_all(self, place: SeriesPlace, stamps: Floats, values: Floats) -> None:
        """Add many values of one series."""
        if self._is_wanted(place) and place.field is not None:
            self._pieces[place.gpu, place.field].append((stamps, values))

    def _is_wanted(self, place: SeriesPlace) -> bool:
        if place.field is None or (place.gpu is not None and place.gpu > LARGEST_INDEX):
            self.unknown.add(place.name)
            return False
        if place.node is not None:
            self._nodes[place.node] = None
        return self._node is None or place.node == self._node

    def found(self, how: str, problems: tuple[str, ...], devices: Mapping[int, Device] | None = None) -> Found:
        """Return all of it; InputError where no GPU has a reading, or where several nodes have.

        Of what does not change (DEVICE_FIELDS) the last value is kept.
        """
        if self._node is None:
            refuse_several_nodes(list(self._nodes))
        for key, pairs in self._single.items():
            together = np.array(pairs, dtype=float).reshape(-1, 2)
            self._pieces[key].append((together[:, 0], together[:, 1]))
        series: dict[tuple[int, str], Series] = {}
        host: dict[str, Series] = {}
        known = {gpu: dict(device) for gpu, device in (devices or {}).items()}
        for (gpu, field), pieces in self._pieces.items():
            stamps, raw = (np.concatenate([piece[part] for piece in pieces]) for part in (0, 1))
            values = converted(raw, field)
            if gpu is None:
                host[field.column] = stamps, values
            elif field.column not in DEVICE_FIELDS:
                series[gpu, field.column] = stamps, values
            elif np.isfinite(values).any():
                known.setdefault(gpu, {})[field.column] = float(values[np.isfinite(values)][-1])
        if not series:
            which = "" if self._node is None else f" of the node {self._node}"
            raise InputError(f"no reading of a GPU{which} was found: {how}")
        node = self._node or next(iter(self._nodes), None)
        table = readings_of(series, known)
        return Found(self._tool, how, [table], problems, host=host_of(host), host_name=node)


def gather_each(
    paths: Iterable[Path], read: Callable[[Path, Gathered], tuple[str, ...]], tool: str, how: str, selection: Selection
) -> Found:
    """Return what `read` gathers of each log, in a table of its own: those of two runs may have the same GPUs.

    InputError where none has a reading of a GPU, and where they are of several nodes.
    """

    def gather(path: Path) -> tuple[Found, set[str]]:
        gathered = Gathered(tool, selection)
        said = read(path, gathered)
        return gathered.found(how, said), gathered.unknown

    logs, left_out = read_each(paths, gather, how)
    found = sorted((each for each, _ in logs), key=lambda each: float(each.tables[0].stamp_s[:1].sum()))
    nodes = list(dict.fromkeys(each.host_name for each in found if each.host_name))
    refuse_several_nodes(nodes)
    unknown = not_imported(tool, {name for _, names in logs for name in names})
    problems = (*left_out, *(problem for each in found for problem in each.problems), *unknown)
    hosts = [each.host for each in found if each.host is not None]
    host = pd.concat(hosts, ignore_index=True) if hosts else None
    tables = [table for each in found for table in each.tables]
    return Found(tool, how, tables, problems, host=host, host_name=next(iter(nodes), None))


def _moments(stamps: list[Floats]) -> Floats:
    together = np.concatenate([np.zeros(0), *stamps])
    return np.unique(together[np.isfinite(together)])


def _placed(moments: Floats, series: Series | None) -> Floats:
    """Return a series' values at moments, NaN where it has none; of two of one moment the later one."""
    placed = np.full(len(moments), np.nan)
    if series is not None and len(moments):
        stamps, values = series
        known = np.isfinite(stamps)
        placed[np.searchsorted(moments, stamps[known])] = values[known]
    return placed

"""From the text rows of nvidia-smi logs to one typed table, and what it says of each GPU."""

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from gpu_report.errors import InputError
from gpu_report.imports.formats.nvidia_smi.columns import (
    DEVICE_NUMBERS,
    DEVICE_TEXTS,
    QUANTITY_COLUMNS,
    QUERY,
    read_cell,
    read_text,
)
from gpu_report.imports.formats.nvidia_smi.file import LogSection
from gpu_report.imports.machines import refuse_two_uuids
from gpu_report.imports.parsing.readings import EVERYTHING, Device, Failure, Floats, Readings
from gpu_report.ordinary_file import LARGEST_INDEX, MOST_GPUS

# Rows of several GPUs are written one right after the other: within so much of a tick, and so many seconds.
_CLOSE_TICKS: Final = 0.1
_CLOSE_S: Final = 0.2
_SEVERAL_SHARE: Final = 0.1  # of the rows: fewer that are close are a hiccup
_TICK_PERCENTILE: Final = 95  # of the steps between rows: of 16 GPUs one step in 16 is from tick to tick
# nvidia-smi's own, and those of pandas where it wrote a log anew.
_STAMP_FORMATS: Final = ("%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%d %H:%M:%S")
_MOST_REASONS: Final = 1000  # why cells hold no number: N/A, ERR!, Unknown Error ... on each of many GPUs
_LONGEST_REASON: Final = 200  # characters
# What nvidia-smi writes into a cell for NVML's errors of a whole GPU.
_NAMES_LOSS: Final = frozenset({"GPU is lost", "GPU requires reset", "GPU requires restart"})
_GONE: Final = _NAMES_LOSS | {"Unknown Error", "ERR!"}
_PCI: Final = re.compile(r"GPU ?([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9])")
_PCI_DIGITS: Final = len("0000:00:00.0")
_MICROSECONDS: Final = 1e6  # of a second


class Numbering:
    """Device indices across sections: nvidia-smi's own where it wrote them, else one for each UUID or PCI address."""

    def __init__(self) -> None:
        self._index: dict[str, int] = {}
        self._next = 0

    def learn(self, keys: Sequence[str], indices: npt.NDArray[np.float64]) -> None:
        """Remember which index nvidia-smi gave to each key."""
        for key, index in zip(keys, indices, strict=True):
            if np.isfinite(index):
                self._next = max(self._next, self._index.setdefault(key, int(index)) + 1)

    def index_of(self, key: str) -> int:
        """Return the index of `key`, the next free one where it has none yet."""
        if key not in self._index:
            self._index[key], self._next = self._next, self._next + 1
        return self._index[key]


def read_section(section: LogSection, power_column: str | None, numbering: Numbering) -> Readings:
    """Return the section as numbers; `power_column` is the one column that power is taken from.

    InputError where it has rows of several GPUs and no column tells them apart.
    """
    cells = _cells(section)
    local_s = _local_s(cells["timestamp"])
    gpu = _gpu_indices(cells, local_s, section, numbering)
    keep = np.isfinite(local_s) & (gpu <= LARGEST_INDEX)
    if len(known := np.unique(gpu[keep])) > MOST_GPUS:
        keep &= gpu < known[MOST_GPUS]
    cells = cells[keep]
    indices = gpu[keep].astype(np.int64)
    quantities: dict[str, Floats] = {}
    failures: list[Failure] = []
    for quantity, names in QUANTITY_COLUMNS.items():
        wanted = [power_column] if quantity == "power_w" else names
        column = next((name for name in wanted if name in cells), None)
        if column is not None:
            quantities[quantity] = numbers(quantity, cells[column])
            failures += _failures(quantity, cells[column], quantities[quantity], indices)
    devices = _devices(cells, indices)
    _refuse_two_machines(cells, indices, section.path)
    failures += [*_gone(failures, len(quantities)), *_printed_losses(section, keep, devices)]
    return Readings(
        stamp_s=local_s[keep],
        gpu=indices,
        quantities=quantities,
        failures=tuple(failures),
        devices=devices,
        dropped=int((~keep).sum()),
        names_gpus="index" in cells or _keys(cells) is not None,
    )


def power_column(sections: Sequence[LogSection]) -> str | None:
    """Return the one power column to use: the first in order of preference that most sections have readings of."""
    readings = {name: sum(_has_numbers(section, name) for section in sections) for name in QUANTITY_COLUMNS["power_w"]}
    best = max(readings, key=lambda name: readings[name])  # the first of equals, which is the preferred one
    return best if readings[best] else None


def numbers(quantity: str, column: pd.Series) -> Floats:
    """Return a categorical column of cells as float64, NaN where a cell holds no number."""
    values = [read_cell(quantity, str(cell)) for cell in column.cat.categories]
    # one more for the code -1, which pandas gives to what is in no category
    known = np.array([np.nan if value is None else value for value in values] + [np.nan], dtype=np.float64)
    taken: Floats = known[column.cat.codes.to_numpy()]
    return taken


def _has_numbers(section: LogSection, name: str) -> bool:
    if name not in section.columns:
        return False
    position = section.columns.index(name)
    cells = (row.split(",")[position : position + 1] for row in section.rows)  # none where the row is too short
    return any(read_cell("power_w", cell) is not None for found in cells for cell in found)


def _cells(section: LogSection) -> pd.DataFrame:
    """Return the section's cells, each column as categories: there are far fewer values than rows."""
    known = {
        name for names in (QUANTITY_COLUMNS, DEVICE_NUMBERS, DEVICE_TEXTS) for each in names.values() for name in each
    }
    positions = {
        name: position
        for position, name in reversed(list(enumerate(section.columns)))
        if name in known or name in ("timestamp", "index")
    }
    frame = pd.read_csv(
        io.BytesIO("\n".join([*section.rows, ""]).encode("utf-8", "replace")),  # a StringIO would take 4 times as much
        header=None,
        names=[str(position) for position in range(len(section.columns))],  # pandas stumbles over numbers without rows
        usecols=[str(position) for position in sorted(positions.values())],
        dtype={str(position): "str" if name == "timestamp" else "category" for name, position in positions.items()},
        na_filter=False,
        quoting=csv.QUOTE_NONE,
        skipinitialspace=True,
        skip_blank_lines=False,
    )
    return frame.rename(columns={str(position): name for name, position in positions.items()})


def _local_s(stamps: pd.Series) -> Floats:
    seconds = np.full(len(stamps), np.nan)
    for written in _STAMP_FORMATS:
        missing = np.isnan(seconds)
        if missing.any():
            moments = pd.to_datetime(stamps[missing], format=written, errors="coerce").to_numpy()
            microseconds = moments.astype("datetime64[us]")  # nanoseconds reach no further than the year 2262
            seconds[missing] = np.where(np.isnat(microseconds), np.nan, microseconds.astype(np.int64) / _MICROSECONDS)
    return seconds


def is_time(stamp: str) -> bool:
    """Tell whether a stamp is one that is read."""
    return bool(np.isfinite(_local_s(pd.Series([stamp]))).all())


def _gpu_indices(cells: pd.DataFrame, local_s: Floats, section: LogSection, numbering: Numbering) -> Floats:
    keys = _keys(cells)
    if keys is None and "index" not in cells and _are_several(cells, local_s):
        keys = _model_names(cells, local_s, section)
    if "index" in cells:
        indices = numbers("index", cells["index"])
        if keys is not None:
            first = ~keys.duplicated().to_numpy()
            numbering.learn([str(key) for key in keys[first]], indices[first])
        return indices
    if keys is None:
        return np.zeros(len(cells))
    for key in map(read_text, map(str, keys.unique())):  # in the order of the file, which is that of the indices
        if key is not None:
            numbering.index_of(key)
    named = [read_text(str(key)) for key in keys.cat.categories]
    order = [np.nan if name is None else float(numbering.index_of(name)) for name in named] + [np.nan]
    taken: Floats = np.array(order, dtype=np.float64)[keys.cat.codes.to_numpy()]
    return taken


def _are_several(cells: pd.DataFrame, local_s: Floats) -> bool:
    """Tell whether rows come several a tick, as nvidia-smi writes those of several GPUs.

    Stamps in whole seconds cannot tell: of one GPU, read twice a second, every other step is 0 s. Nor does a row that
    stands there twice.
    """
    steps = np.diff(local_s[np.isfinite(local_s) & ~_repeats(cells)])
    if not steps.size or not (local_s[np.isfinite(local_s)] % 1).any():
        return False
    tick_s = float(np.percentile(steps, _TICK_PERCENTILE))
    close = (steps >= 0) & (steps <= min(_CLOSE_TICKS * tick_s, _CLOSE_S))
    return bool(close.mean() > _SEVERAL_SHARE)


def _repeats(cells: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Tell which rows are the same in every cell as the one before."""
    same = np.ones(len(cells), dtype=bool)
    same[:1] = False
    for name in cells.columns:
        values = cells[name].to_numpy() if name == "timestamp" else cells[name].cat.codes.to_numpy()
        same[1:] &= values[1:] == values[:-1]
    return same


def _model_names(cells: pd.DataFrame, local_s: Floats, section: LogSection) -> pd.Series:
    """Return the column of models where it tells GPUs apart; InputError where nothing does."""
    column = next((cells[name] for name in DEVICE_TEXTS["name"] if name in cells), None)
    if (
        column is None
        or len(column.cat.categories) > MOST_GPUS
        or any(_are_several(cells[column == name], local_s[(column == name).to_numpy()]) for name in column.unique())
    ):
        raise InputError(
            f"{section.path} has rows of several GPUs, and no column says which is whose: "
            f"add index (or uuid, or pci.bus_id) to --query-gpu, as in `{QUERY}`"
        )
    return column


def _keys(cells: pd.DataFrame) -> pd.Series | None:
    """Return the column that tells GPUs apart where there is no index."""
    names = (*DEVICE_TEXTS["uuid"], *DEVICE_TEXTS["pci_bus_id"])
    return next((cells[name] for name in names if name in cells), None)


def _refuse_two_machines(cells: pd.DataFrame, gpu: npt.NDArray[np.int64], path: Path) -> None:
    column = next((cells[name] for name in DEVICE_TEXTS["uuid"] if name in cells), None)
    if column is None or "index" not in cells:
        return
    named = np.array([read_text(str(uuid)) is not None for uuid in column.cat.categories] + [False])
    codes = column.cat.codes.to_numpy()
    for index in np.unique(gpu):
        mine = codes[(gpu == index) & named[codes]]
        if len(np.unique(mine)) > 1:
            refuse_two_uuids(int(index), [str(column.cat.categories[code]) for code in mine], path)


def _failures(quantity: str, column: pd.Series, values: Floats, gpu: npt.NDArray[np.int64]) -> list[Failure]:
    """Return which cells hold no number, by GPU and by what they hold instead; of very many reasons some."""
    missing = np.flatnonzero(np.isnan(values))
    if not missing.size:
        return []
    codes = column.cat.codes.to_numpy()[missing]
    pairs = np.unique(np.stack([gpu[missing], codes]), axis=1).T[:_MOST_REASONS]
    return [
        Failure(
            int(index),
            quantity,
            str(column.cat.categories[code])[:_LONGEST_REASON].strip("[] ") or "empty",
            missing[(gpu[missing] == index) & (codes == code)],
        )
        for index, code in pairs
    ]


def _gone(failures: Sequence[Failure], quantities: int) -> list[Failure]:
    """Return where a driver's error stood in all cells of a GPU: then it was gone.

    Of a single cell only what names the loss says so: a query that failed once is one reading less.
    """
    alike: dict[tuple[int, str], list[Failure]] = {}
    for failure in failures:
        if failure.reason in _GONE:
            alike.setdefault((failure.gpu, failure.reason), []).append(failure)
    found = []
    for (gpu, reason), mine in alike.items():
        rows = reduce(np.intersect1d, [failure.rows for failure in mine])
        if len(mine) == quantities and len(rows) and (quantities > 1 or reason in _NAMES_LOSS):
            found.append(Failure(gpu, EVERYTHING, lost(reason), rows))
    return found


def _printed_losses(section: LogSection, keep: npt.NDArray[np.bool_], devices: Mapping[int, Device]) -> list[Failure]:
    """Return the losses that were printed in place of rows: of the GPU that is named, of an only one, or of all."""
    found: dict[tuple[int, int], Failure] = {}
    for row, line in section.lost:
        before = int(keep[: row + 1].sum()) - 1
        for gpu in gpus_lost(line, devices) if before >= 0 else ():
            found.setdefault((gpu, before), Failure(gpu, EVERYTHING, lost(line), np.array([before])))
    return list(found.values())


def gpus_lost(line: str, devices: Mapping[int, Device]) -> list[int]:
    """Return the GPUs that are gone by what was printed in place of rows: the one it names, an only one, or all."""
    named = _PCI.search(line)
    mine = [gpu for gpu, device in devices.items() if named and _is_at(device.get("pci_bus_id"), named[1])]
    return mine or (list(devices) if len(devices) == 1 or not named else [])


def lost(said: str) -> str:
    """Return the reason that stands for a lost GPU."""
    return "GPU is lost" if said == "GPU is lost" else f"GPU is lost: nvidia-smi wrote {said}"


def _is_at(address: object, other: str) -> bool:
    """Tell whether two PCI addresses are the same, whose domains are of four or eight digits."""
    return isinstance(address, str) and address.lower()[-_PCI_DIGITS:] == other.lower()[-_PCI_DIGITS:]


def _devices(cells: pd.DataFrame, gpu: npt.NDArray[np.int64]) -> dict[int, dict[str, str | float | None]]:
    """Return what the first rows of each GPU say of the device itself."""
    devices: dict[int, dict[str, str | float | None]] = {}
    for index in np.unique(gpu):
        rows = cells[gpu == index]
        devices[int(index)] = {
            **{field: _first(rows, names, read_text) for field, names in DEVICE_TEXTS.items()},
            **{field: _first(rows, names, partial(read_cell, field)) for field, names in DEVICE_NUMBERS.items()},
        }
    return devices


def _first(rows: pd.DataFrame, names: Sequence[str], read: Callable[[str], str | float | None]) -> str | float | None:
    cells = (str(cell) for name in names if name in rows for cell in rows[name].unique())
    return next((value for cell in cells if (value := read(cell)) is not None), None)

"""The columns of a run as the page holds them: packed, one after the other in one text, and where each of them lies."""

from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gpu_report import schema
from gpu_report.model import Run
from gpu_report.render.quantity_labels import CORRELATED_QUANTITIES, Quantity, gpu_quantities, host_quantities
from gpu_report.render.samples.coarse_timeline import edges_of, gpu_overview, host_overview
from gpu_report.render.samples.column_codec import (
    MILLISECOND_DECIMALS,
    Floats,
    PackedColumn,
    Scale,
    pack_column,
    pack_frame,
)
from gpu_report.render.samples.quantity_series import gpu_indexes, with_value
from gpu_report.usable_cores import threads

Json = dict[str, Any]
Packed = tuple[PackedColumn, ...]
LONG_STEP_S = 0.1  # of readings of so long (0.2 s on an H200) the times are kept to 10 ms: at most a twentieth off
HUNDREDTH_DECIMALS = 2


@dataclass(frozen=True, eq=False)
class GpuColumns:
    """The packed columns of one GPU: of its samples, and by quantity of what the driver kept, each on its own times.

    `overview` is what long ones of them are drawn from at first (overview.py).
    """

    samples: Packed
    rings: Mapping[str, Packed]
    overview: Packed = ()


class Blob:
    """Packed columns one after the other."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._characters = 0
        self._described: dict[int, Json] = {}

    def put(self, columns: Iterable[PackedColumn]) -> list[Json]:
        """Put columns behind those that there are already, and return what a reader must know of each."""
        return [self._put(column) for column in columns]

    def characters(self) -> int:
        """Return where in the text the next column will begin."""
        return self._characters

    def take(self) -> str:
        """Return those since the last time as text (base128.py), each of `length` characters from `offset` on."""
        text = "".join(self._texts)
        self._texts.clear()
        return text

    def _put(self, column: PackedColumn) -> Json:
        described: Json = {"name": column.name, "offset": self._characters, "length": len(column.text)}
        described |= {"count": column.count, "dtype": column.dtype, "decimals": column.scale.decimals}
        described |= _unusual(column)
        self._texts.append(column.text)
        self._characters += len(column.text)
        if column.rows is not None:
            described["rows"] = self._put(column.rows)
        if (line := column.line) is not None:
            over = {"slope": line.slope, "add": line.add, "dtype": line.dtype, "gap": line.gap}
            column_of_line = {} if line.column is None else {"column": self._described[id(line.column)]}
            described["line"] = {**column_of_line, **over}
        self._described[id(column)] = described
        return described


def _unusual(column: PackedColumn) -> Json:
    """Return what most columns do without."""
    some = {"digits": column.scale.digits, "least": column.least, "low": column.low, "delta": column.delta}
    gap = {} if column.gap is None else {"gap": column.gap}
    return {**{name: value for name, value in some.items() if value}, **gap}


class Packing:
    """The columns of a run, being packed by other threads: zlib and numpy let something else go on meanwhile."""

    def __init__(self, run: Run, pool: Executor | None = None) -> None:
        """Begin with it, in the threads of a pool; None for one a core."""
        pool, edges = pool or threads("packing"), edges_of(run)
        self._gpus = {index: pool.submit(_pack_gpu, run, index, edges) for index in gpu_indexes(run)}
        self._host = pool.submit(pack_host, run)
        self._host_overview = pool.submit(host_overview, run, edges)

    def gpus(self) -> dict[int, GpuColumns]:
        """Return the columns of each GPU that is known or has rows, by its index, as soon as they are there."""
        return {index: packed.result() for index, packed in self._gpus.items()}

    def host(self) -> Packed:
        """Return the columns of the host, as soon as they are there."""
        return self._host.result()

    def host_overview(self) -> Packed:
        """Return what long columns of the host are drawn from at first, as soon as it is there."""
        return self._host_overview.result()


def _pack_gpu(run: Run, index: int, edges: Floats) -> GpuColumns:
    samples = pack_frame(run.samples_of(index), _scales(gpu_quantities()), CORRELATED_QUANTITIES)
    return GpuColumns(samples, _pack_rings(run.ring_of(index)), gpu_overview(run, index, edges))


def pack_host(run: Run) -> Packed:
    """Return the packed columns of the host."""
    return pack_frame(run.host, _scales(host_quantities()), CORRELATED_QUANTITIES)


def pack_table(columns: Mapping[str, tuple[Iterable[float | None], Scale]]) -> Packed:
    """Return packed columns of a table that has nothing to do with ticks; None is missing."""
    return tuple(
        pack_column(name, np.array(list(values), dtype=np.float64), scale) for name, (values, scale) in columns.items()
    )


def _pack_rings(ring: pd.DataFrame) -> dict[str, Packed]:
    """Return what the driver kept of each quantity of a GPU, each on its own times."""
    kept = ((column, with_value(ring, column.name)) for column in schema.RING_QUANTITIES)
    return {
        column.name: pack_frame(frame, {column.name: Scale(column.decimals)}, time_decimals=_time_decimals(frame))
        for column, frame in kept
        if not frame.empty
    }


def _time_decimals(ring: pd.DataFrame) -> int:
    """Return how finely the moments of the driver's readings mean something: each is of all the time since the last."""
    long = np.count_nonzero(np.diff(ring["t_s"].to_numpy(dtype=float)) >= LONG_STEP_S)
    return HUNDREDTH_DECIMALS if 2 * long > len(ring) - 1 else MILLISECOND_DECIMALS


def _scales(quantities: Iterable[Quantity]) -> dict[str, Scale]:
    return {quantity.name: Scale(quantity.decimals, quantity.digits) for quantity in quantities}

"""samples.csv while it grows: the end of it at once, what came before it in pieces, and from then on each row."""

import os
from collections.abc import Sequence
from pathlib import Path

from gpu_report import schema
from gpu_report.live.reading.gpu_readings import DRAWN, GAP_AT_LEAST_S, GAP_INTERVALS, GpuReadings
from gpu_report.live.reading.tail import FileTail
from gpu_report.ordinary_file import LARGEST_HEADER, LARGEST_INDEX, MIB, MOST_GPUS, open_ordinary
from gpu_report.run_folder import finite, stamp

END_BYTES = MIB  # of a file that is there already: 20 minutes of eight GPUs
WALL, MONO = (column.name for column in schema.TIME_COLUMNS)
CLOCK_SET_S = 2.0  # by less than this a clock is disciplined all the time
Place = tuple[float | None, int | None]  # of a row: its time (wall seconds) and its GPU
LARGEST_READING = 1e15  # a board that takes 1 kW has used 1e12 J after thirty years


class LiveSamples:
    """The GPUs of a recording by their index. Times are wall seconds."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / schema.SAMPLES_CSV
        self.interval_s = 1.0
        self._begin()

    def _begin(self) -> None:
        self.gpus: dict[int, GpuReadings] = {}
        self._newest_mono_s: dict[int, float | None] = {}
        self.start_s: float | None = None  # when the first row was written
        self._columns: _ColumnPlaces | None = None
        self._end: _SampleRows | None = None
        self._before: _SampleRows | None = None

    @property
    def is_behind(self) -> bool:
        """Tell whether there is more to be read at once."""
        return any(rows is not None and rows.tail.is_behind for rows in (self._end, self._before))

    def look(self) -> bool:
        """Take in what has come, and a piece of what came before; return whether there is a newer row.

        OSError where the file cannot be read.
        """
        if self._end is None and not self._open():
            return False
        end, columns = self._end, self._columns
        if end is None or columns is None:
            return False
        came = [self._take(cells, columns, end) for cells in end.cells()]
        if end.tail.was_made_anew:
            self._begin()
        if self._before is not None and self._before.tail.is_behind:
            for cells in self._before.cells():
                self._draw(columns.place(cells), columns.drawn_of(cells), self._before)
        return any(came)

    def _open(self) -> bool:
        """Find the columns and where to begin; False while there is not yet a row."""
        try:
            with open_ordinary(self._path) as file:
                size = os.fstat(file.fileno()).st_size
                head = file.read(LARGEST_HEADER).split(b"\n")
        except FileNotFoundError:
            return False
        columns = _ColumnPlaces(head[0])
        times = (columns.place(line.split(b","))[0] for line in head[1:-1])
        self.start_s = start_s = next((at_s for at_s in times if at_s is not None), None)
        if start_s is None:
            return False
        begin = max(size - END_BYTES, 0)
        self._columns = columns
        self._end = _SampleRows(FileTail(self._path, begin), start_s)
        self._before = _SampleRows(FileTail(self._path, 0, begin), start_s) if begin else None
        return True

    def _take(self, cells: Sequence[bytes], columns: "_ColumnPlaces", rows: "_SampleRows") -> bool:
        """Take in a row at the end; return whether it is a newer one."""
        place, values = columns.place(cells), columns.all_of(cells)
        gpu = self._draw(place, {name: values[name] for name in DRAWN if name in values}, rows)
        at_s, mono_s = place[0], columns.mono_s(cells)
        if gpu is None or at_s is None:
            return False
        if self._was_set(gpu, at_s, mono_s):
            gpu.restart(at_s)
        elif at_s <= gpu.at_s:
            return False  # a row that stands there twice
        self._newest_mono_s[gpu.index] = mono_s
        gpu.take(at_s, values)
        return True

    def _was_set(self, gpu: GpuReadings, at_s: float, mono_s: float | None) -> bool:
        """Tell whether the wall clock was set since the row before, or the machine slept: it went on differently."""
        before_s = self._newest_mono_s.get(gpu.index)
        if mono_s is None or before_s is None or mono_s <= before_s:
            return mono_s is not None and before_s is not None and mono_s < before_s  # a recorder after a restart
        return abs((at_s - gpu.at_s) - (mono_s - before_s)) > CLOCK_SET_S

    def _draw(self, place: Place, drawn: dict[str, float], rows: "_SampleRows") -> GpuReadings | None:
        """Draw a row, whose time and GPU are its `place`; return the GPU, None where it has none."""
        at_s, index = place
        if at_s is None or index is None or (index not in self.gpus and len(self.gpus) >= MOST_GPUS):
            return None
        gpu = self.gpus.setdefault(index, GpuReadings(index, rows.start_s))
        since_s, most_s = rows.since_before(index, at_s), max(GAP_INTERVALS * self.interval_s, GAP_AT_LEAST_S)
        gpu.draw(at_s, drawn, since_s if since_s is None or since_s <= most_s else None)
        return gpu


class _SampleRows:
    """Rows in the order of a file, from somewhere on."""

    def __init__(self, tail: FileTail, start_s: float) -> None:
        self.tail, self.start_s = tail, start_s
        self._at_s: dict[int, float] = {}

    def cells(self) -> list[list[bytes]]:
        """Return the cells of the rows that have come."""
        return [line.split(b",") for line in self.tail.lines()]

    def since_before(self, gpu: int, at_s: float) -> float | None:
        """Return the time since the row of a GPU before this one, None where there is none, or it is none."""
        before_s, self._at_s[gpu] = self._at_s.get(gpu), at_s
        return at_s - before_s if before_s is not None and at_s > before_s else None


class _ColumnPlaces:
    """Where the columns of a table of samples are."""

    def __init__(self, header: bytes) -> None:
        names = [name.strip() for name in header.decode("utf-8-sig", "replace").strip("\r").split(",")]
        at = {name: place for place, name in enumerate(names)}
        self._wall, self._mono, self._gpu = at.get(WALL, 0), at.get(MONO), at.get("gpu")
        known = [column.name for column in schema.GPU_QUANTITIES if column.name in at]
        self._all = [(name, at[name]) for name in known]
        self._drawn = [(name, at[name]) for name in DRAWN if name in at]

    def place(self, cells: Sequence[bytes]) -> Place:
        """Return the time and the GPU of a row, None for what is none."""
        at_s = stamp(_number(cells[self._wall])) if self._wall < len(cells) else None
        index = 0.0 if self._gpu is None else _number(cells[self._gpu]) if self._gpu < len(cells) else None
        is_one = index is not None and 0 <= index <= LARGEST_INDEX and index == int(index)
        return at_s, int(index) if index is not None and is_one else None

    def mono_s(self, cells: Sequence[bytes]) -> float | None:
        """Return the time of a row on the recorder's own clock, None where it has none."""
        return stamp(_number(cells[self._mono])) if self._mono is not None and self._mono < len(cells) else None

    def drawn_of(self, cells: Sequence[bytes]) -> dict[str, float]:
        """Return the readings that are drawn, without those that failed."""
        return _values(cells, self._drawn)

    def all_of(self, cells: Sequence[bytes]) -> dict[str, float]:
        """Return all readings of a row, without those that failed."""
        return _values(cells, self._all)


def _values(cells: Sequence[bytes], columns: Sequence[tuple[str, int]]) -> dict[str, float]:
    there = len(cells)
    read = {name: _number(cells[at]) for name, at in columns if at < there}
    return {name: value for name, value in read.items() if value is not None}


def _number(cell: bytes) -> float | None:
    try:
        number = finite(float(cell)) if cell else None
    except ValueError:
        return None
    return number if number is not None and abs(number) <= LARGEST_READING else None

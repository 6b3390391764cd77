"""Where a process stood while its GPUs were idle: idle GPU seconds by stack, from its notes and GPU readings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_report.analyse.signals.code.stack_kinds import (
    called_by_yolo,
    calls_convolution,
    kind_of,
    launches,
    line_of,
    of_worker_alone,
    own_within_call,
    reads_image,
    reads_npy,
    stacks_waiting_for_loader,
    waits_for_gpu,
    waits_for_lock,
    waits_for_process,
    waits_for_step,
    works_by_image,
)
from gpu_report.analyse.timeseries.distinct import PlaceOf, Places, distinct
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats, GpuSeries
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.analyse.timeseries.intervals import Span, mask_of_ranges, parts, union, union_of_rows
from gpu_report.model import Frame, ProcessStacks, Run, Stack

Rows = npt.NDArray[np.int64]

# Each round moves idle time to lines at which a GPU is seen idle; on drawn steps the share of a line that waits for the
# GPU falls little after 20 of them, and noise takes over after 100.
ROUNDS = 20
# Of the time that a main process waits for its GPU (`.item()`): from the end of the GPU's work to the next note.
# Without this a line that waits would keep half of the idle time of short steps that are all alike.
IDLE_WHILE_WAITED_FOR = 0.05
RANK = "rank "


@dataclass(frozen=True, eq=False)
class IdleStacks:
    """One process, cut where its stack or a GPU's reading changed, in order of time.

    From `start_s` to `end_s` (s) it stood in the stack of that `number`; of this time its GPUs were idle for `idle_s`
    (GPU seconds: with two GPUs up to twice the time). `seconds` add up to the time that was noted. `gpus` are those
    that it fed; of a worker those of the main processes that waited for it.
    """

    process: ProcessStacks
    gpus: tuple[int, ...]
    start_s: Floats
    end_s: Floats
    number: npt.NDArray[np.int32]
    idle_s: Floats

    def seconds(self, rows: Rows | slice = slice(None)) -> Floats:
        """Return the time that some pieces stand for: worked out anew, which takes less than to keep it."""
        lengths = self.end_s[rows] - self.start_s[rows]
        return lengths if self.process.is_worker else lengths / max(len(self.gpus), 1)

    def middle_s(self, rows: Rows | slice = slice(None)) -> Floats:
        """Return the middles of some pieces."""
        return (self.start_s[rows] + self.end_s[rows]) / 2

    def by_line(self, rows: Rows, weights: Floats) -> dict[Frame, float]:
        """Return the sum of a weight of some pieces by line of code; of a worker only while it was at work."""
        lines, line_of = self.lines
        sums = np.bincount(line_of[rows], weights, minlength=len(lines)).tolist()
        return {line: total for line, total in zip(lines, sums, strict=True) if line is not None and total > 0}

    def seconds_by_stack(self, spans: Sequence[Span]) -> dict[int, float]:
        """Return for how many seconds of some spans it stood in each stack, by its number."""
        rows, share = self.within(spans)
        return self._by_number(rows, self.seconds(rows) * share)

    def _by_number(self, rows: Rows, weights: Floats) -> dict[int, float]:
        sums = np.bincount(self.number[rows], weights).tolist()
        return {number: total for number, total in enumerate(sums) if total > 0}

    def stood(self, spans: Sequence[Span]) -> list[tuple[Stack, float]]:
        """Return the stacks in which it stood in some spans, each with its seconds; one may come more than once."""
        rows, share = self.within(spans)
        return self.by_stack(rows, self.seconds(rows) * share)

    def by_stack(self, rows: Rows, weights: Floats) -> list[tuple[Stack, float]]:
        """Return the stacks of some pieces, each with the sum of a weight; one may come more than once."""
        return [(self.process.stacks.get(at, ()), total) for at, total in self._by_number(rows, weights).items()]

    def within(self, spans: Sequence[Span]) -> tuple[Rows, Floats]:
        """Return the pieces that lie in some spans, and which share of each does (0 to 1)."""
        apart = union(spans)
        first = np.searchsorted(self._latest_s, [start for start, _ in apart], side="right")
        last = np.searchsorted(self.start_s, [end for _, end in apart])
        # of one stretch without a look at all of them: a long run has a million pieces and a thousand ends of epochs
        one = len(apart) == 1
        rows = np.arange(first[0], last[0]) if one else np.flatnonzero(mask_of_ranges(len(self.start_s), first, last))
        cover, share = interval_cover(apart), np.zeros(len(rows))
        for part in parts(len(rows)):
            pieces = self.spans(rows[part])
            lengths = pieces[:, 1] - pieces[:, 0]
            np.divide(cover.seconds_in_each(pieces), lengths, out=share[part], where=lengths > 0)
        return rows, share

    @cached_property
    def _latest_s(self) -> Floats:
        """Return the latest end up to each piece: their ends, where they do not overlap."""
        latest = np.maximum.accumulate(self.end_s)
        return self.end_s if np.array_equal(latest, self.end_s) else latest

    @cached_property
    def waits(self) -> Bools:
        """Return the pieces in which a main process waited for its loader."""
        return np.isin(self.number, stacks_waiting_for_loader(self.process))

    @cached_property
    def launches(self) -> Bools:
        """Return the pieces in which a main process launched the kernels of a training step (see `launches`)."""
        return np.isin(self.number, [number for number, stack in self.process.stacks.items() if launches(stack)])

    @cached_property
    def convolves(self) -> Bools:
        """Return the pieces in which a main process stood in the call of a convolution."""
        mine = [number for number, stack in self.process.stacks.items() if calls_convolution(stack)]
        return np.isin(self.number, mine)

    @cached_property
    def waits_for_step(self) -> Bools:
        """Return the pieces in which a main process waits for its GPU after a step's passes (see `waits_for_step`)."""
        mine = [number for number, stack in self.process.stacks.items() if waits_for_step(stack)]
        return np.isin(self.number, mine)

    def busy_s(self, rows: Rows) -> Floats:
        """Return the time of some pieces in which their GPU worked, as a share of what they stand for (`seconds`)."""
        return np.maximum(self.seconds(rows) - self.idle_s[rows] / max(len(self.gpus), 1), 0.0)

    @cached_property
    def by_image(self) -> Bools:
        """Return the pieces of a main process that take longer the more images a batch has (see `works_by_image`)."""
        mine = [n for n, stack in self.process.stacks.items() if works_by_image(stack) or _is_own(self.process, n)]
        return np.isin(self.number, mine)

    def spans(self, rows: Rows) -> Floats:
        """Return some pieces as rows of (start, end)."""
        return np.column_stack([self.start_s[rows], self.end_s[rows]])

    def together(self, rows: Rows) -> Floats:
        """Return what some pieces take together, as rows of (start, end)."""
        return union_of_rows(np.concatenate([union_of_rows(self.spans(rows[part])) for part in parts(len(rows))]))

    @cached_property
    def lines(self) -> tuple[list[Frame | None], PlaceOf]:
        """Return the lines of code that the process stood in, and which of them each piece is of (its place).

        None is a worker that waits for work, and a stack of which nothing is known.
        """
        return distinct(self.number, lambda number: line_of(self.process, number))

    @cached_property
    def work(self) -> tuple[list[WorkKind], PlaceOf]:
        """Return what kinds of work a worker does (see `WorkKind`), and which of them each piece is."""
        return distinct(self.number, lambda number: _work_kind(self.process.stacks.get(number, ())))

    @cached_property
    def calls(self) -> tuple[list[Frame | None], PlaceOf]:
        """Return the user's functions that YOLO called (see `called_by_yolo`), and which of them each piece is of."""
        return distinct(self.number, lambda number: called_by_yolo(self.process.stacks.get(number, ())))

    @cached_property
    def own_within_calls(self) -> tuple[list[Stack], PlaceOf]:
        """Return the user's functions within YOLO's calls (see `own_within_call`), and those of each piece."""
        return distinct(self.number, lambda number: own_within_call(self.process.stacks.get(number, ())))


class WorkKind(NamedTuple):
    """Whether a worker is at work at all, reads an image, waits for a lock, for a manager's process, reads a .npy."""

    at_work: bool
    reads: bool
    in_lock: bool
    asks: bool
    reads_npy: bool


def _is_own(process: ProcessStacks, number: int) -> bool:
    line = line_of(process, number)
    return line is not None and kind_of(line) == "own"


def _work_kind(stack: Stack) -> WorkKind:
    inner = of_worker_alone(stack)
    return WorkKind(bool(inner), reads_image(inner), waits_for_lock(inner), waits_for_process(inner), reads_npy(inner))


def idle_stacks(run: Run, used: Sequence[GpuSeries]) -> tuple[IdleStacks, ...]:
    """Return where every process of a run stood while its GPUs were idle, main processes and ranks first.

    `used` are the readings of the GPUs that the run used. Where something trained, a process that only predicts
    or validates is none of them.
    """
    trained = {each.pid for each in run.inside if any(phase.name == "train" for phase in each.phases)}
    besides = {each.pid for each in run.inside} - trained if trained else set()
    mine = [each for each in run.stacks if each.pid not in besides and each.parent not in besides]
    mains = [main_idle_stacks(each, *_fed_by(run, each, used)) for each in mine if not each.is_worker]
    workers = [each for each in mine if each.is_worker]
    return (*mains, *(each for mine, theirs in _loaders(workers, mains) for each in worker_idle_stacks(mine, theirs)))


def _loaders(
    workers: Sequence[ProcessStacks], mains: Sequence[IdleStacks]
) -> Iterator[tuple[list[ProcessStacks], list[IdleStacks]]]:
    """Yield the workers of each main process with it; those of which it is not known whose they are with all."""
    pids = {each.process.pid for each in mains}
    if not all(worker.parent in pids for worker in workers):
        yield list(workers), list(mains)
        return
    for main in mains:
        mine = [worker for worker in workers if worker.parent == main.process.pid]
        if mine:
            yield mine, [main]


def main_idle_stacks(process: ProcessStacks, all_series: Sequence[GpuSeries], share: float = 1.0) -> IdleStacks:
    """Return where a main process stood, and for how long its GPUs were idle meanwhile.

    `share` (0 to 1) is what of them is its own, where several processes feed the same and nobody knows which.
    """
    readings = [_looks_back(series) for series in all_series] or [(np.empty(0), np.empty(0), np.empty(0))]
    start, end, number, idle = _in_order([_pieces(process, *each) for each in readings])
    return IdleStacks(process, tuple(series.gpu for series in all_series), start, end, number, share * idle)


def _in_order(tables: Sequence[tuple[npt.NDArray[Any], ...]]) -> tuple[npt.NDArray[Any], ...]:
    """Return the columns of tables, each of which is in order of its first, put together in that order."""
    if len(tables) == 1:
        return tables[0]
    order = np.argsort(np.concatenate([table[0] for table in tables]), kind="stable")
    return tuple(np.concatenate(column)[order] for column in zip(*tables, strict=True))


def worker_idle_stacks(workers: Sequence[ProcessStacks], mains: Sequence[IdleStacks]) -> list[IdleStacks]:
    """Return what loaders' workers did, with the idle GPU seconds in which main processes waited for their loader.

    Each such second is shared out among the workers that were at work in it: one that waits for work holds up nobody.
    """
    at_work = [_is_working(worker) for worker in workers]
    waited = [_waits(main) for main in mains]
    edges = _edges_of_waits(waited, [each for worker in workers for each in (worker.start_s, worker.end_s)])
    rate = sum((_heights(edges, *wait[:2], wait[2] / (wait[1] - wait[0])) for wait in waited), np.zeros(len(edges)))
    busy = np.zeros(len(edges))
    for worker, mine in zip(workers, at_work, strict=True):
        busy += _heights(edges, worker.start_s[mine], worker.end_s[mine], 1.0)
    of_each = np.divide(rate, busy, out=np.zeros_like(rate), where=busy > 0.5)  # a count, with dust of sums
    so_far = np.concatenate([[0.0], np.cumsum(of_each[:-1] * np.diff(edges))])[: len(edges)]
    gpus = tuple(sorted({gpu for main in mains for gpu in main.gpus}))
    return [
        _of_worker(worker, gpus, np.where(mine, _between(worker, edges, so_far), 0.0))
        for worker, mine in zip(workers, at_work, strict=True)
    ]


def share_out(
    reading: Places, place: Places, length_s: Floats, idle_s: Floats, at_most: Floats | None = None
) -> Floats:
    """Return for how much of each piece a GPU was idle, of what its readings say of all pieces within each.

    `reading` and `place` (n) number the reading and the line of code of each piece, `length_s` (n) its length, `idle_s`
    the idle time of each reading. A reading does not say when within it the GPU was idle; but where it mixes lines
    otherwise than its siblings it says at which of them: the Richardson-Lucy iteration (Richardson 1972, Lucy 1974)
    from no preference, stopped early. Where all readings have the same mix, each line keeps its share of the time.
    `at_most` says how idle a GPU may be at each line (0 to 1), as long as the others can have been idle in its place.
    """
    at_most = np.ones(int(place.max(initial=-1)) + 1) if at_most is None else at_most
    total, usual = np.bincount(place, length_s, minlength=len(at_most)), at_most
    given = np.zeros_like(length_s)
    for _ in range(ROUNDS):
        for part in parts(len(given)):
            given[part] = length_s[part] * usual[place[part]]  # what each wants
        of_reading = np.bincount(reading, given, minlength=len(idle_s))
        scale = np.divide(idle_s, of_reading, out=np.zeros_like(of_reading), where=of_reading > 0)
        for part in parts(len(given)):
            given[part] = np.minimum(given[part] * scale[reading[part]], length_s[part])
        idle = np.bincount(place, given, minlength=len(total))
        usual = np.minimum(np.divide(idle, total, out=np.zeros_like(total), where=total > 0), at_most)
    _give_rest(reading, length_s, idle_s, given)
    return given


def _give_rest(reading: Places, length_s: Floats, idle_s: Floats, given: Floats) -> None:
    """Give what no piece has taken, to each in proportion to what it has left: no piece is idle longer than it is."""
    missing = np.maximum(idle_s - np.bincount(reading, given, minlength=len(idle_s)), 0.0)
    room = np.bincount(reading, length_s - given, minlength=len(idle_s))
    scale = np.divide(missing, room, out=np.zeros_like(room), where=room > 0)
    for part in parts(len(given)):
        left = length_s[part] - given[part]
        given[part] += np.maximum(np.minimum(left * scale[reading[part]], left), 0.0)


def _fed_by(run: Run, process: ProcessStacks, used: Sequence[GpuSeries]) -> tuple[list[GpuSeries], float]:
    """Return the readings of the GPUs that a main process feeds, and what share of them is its own.

    They are known by its pid. Where that of no process is known, as in a container, ranks feed a GPU each, in order,
    where there are as many, else all of them together. One that only started the ranks feeds none.
    """
    read, mains = [series for series in used if len(series.t_s)], [each for each in run.stacks if not each.is_worker]
    table = run.processes
    if table["pid"].isin([each.pid for each in mains]).any():
        mine = set(table[table["pid"] == process.pid]["gpu"].tolist())
        return [series for series in read if series.gpu in mine], 1.0
    ranks = sorted({int(each.role.removeprefix(RANK)) for each in mains if each.role.startswith(RANK)})
    if not ranks:
        return read, 1 / max(sum(_overlap(process, each) for each in mains), 1)
    if not process.role.startswith(RANK):
        return [], 1.0
    place = ranks.index(int(process.role.removeprefix(RANK)))
    return ([read[place]], 1.0) if len(ranks) == len(read) else (read, 1 / len(ranks))


def _overlap(process: ProcessStacks, other: ProcessStacks) -> bool:
    """Tell whether another process, or the same, was there for most of the time that a process was."""
    start, end = (max(process.start_s[0], other.start_s[0]), min(process.end_s[-1], other.end_s[-1]))
    return bool(end - start > (process.end_s[-1] - process.start_s[0]) / 2)


def _looks_back(series: GpuSeries) -> tuple[Floats, Floats, Floats]:
    """Return from when to when each reading was, and its idle share: a driver's reading is of the time before it."""
    steps = np.diff(series.t_s, prepend=-np.inf)
    starts = series.t_s - np.where(series.after_gap, series.interval_s, steps)
    return starts, series.t_s, 1 - series.util_pct.astype(float) / 100


def _pieces(process: ProcessStacks, starts: Floats, ends: Floats, idle: Floats) -> tuple[npt.NDArray[Any], ...]:
    """Return start, end, stack and idle seconds of the pieces of one process against one GPU."""
    edges = _distinct(np.concatenate([process.start_s, process.end_s, starts, ends]))
    stay, is_stay = _holding(process.start_s, process.end_s, (edges[:-1] + edges[1:]) / 2)
    start, end, number = edges[:-1][is_stay], edges[1:][is_stay], process.number[stay[is_stay]]
    del edges, stay  # of a day each has 15 MB
    return start, end, number, _idle_of(process, (start, end, number), (starts, ends, idle))


def _idle_of(
    process: ProcessStacks, pieces: tuple[Floats, Floats, npt.NDArray[Any]], readings: tuple[Floats, Floats, Floats]
) -> Floats:
    """Return the idle seconds of pieces (start, end, stack), each of which lies in one reading (start, end, share)."""
    (start, end, number), (starts, ends, idle) = pieces, readings
    reading, is_reading = _holding(starts, ends, (start + end) / 2)
    if not is_reading.any():
        return np.zeros(len(start))
    reading, length = reading[is_reading], (end - start)[is_reading]
    places, at_most = _places(process, number[is_reading])
    shared_out = share_out(reading, places, length, np.bincount(reading, length, minlength=len(starts)) * idle, at_most)
    spent = np.zeros(len(start))
    spent[is_reading] = shared_out
    return spent


def _distinct(values: Floats) -> Floats:
    """Return values in order, each once, and put them in order: np.unique takes twenty times as long for a million."""
    values.sort(kind="stable")  # of columns in order: half the time
    distinct: Floats = values[np.append(True, values[1:] > values[:-1])[: len(values)]]
    return distinct


def _holding(starts: Floats, ends: Floats, at: Floats) -> tuple[Places, Bools]:
    """Return which of many stretches, in order of their starts, holds each moment, and whether any does."""
    if not len(starts):
        return np.zeros(len(at), dtype=np.int64), np.zeros(len(at), dtype=bool)
    which = np.searchsorted(starts, at, side="right") - 1
    is_after = which >= 0
    np.maximum(which, 0, out=which)
    return which, is_after & (at < ends[which])


def _places(process: ProcessStacks, numbers: npt.NDArray[Any]) -> tuple[Places, Floats]:
    """Return the place that each of some stacks is of, and how idle a GPU may be in each place (0 to 1).

    A place is a line of code, in which the process waits for its GPU or not.
    """
    known, places = distinct(numbers, lambda number: (line_of(process, number), _waits_for_gpu(process, number)))
    return places[:], np.array([IDLE_WHILE_WAITED_FOR if waits else 1.0 for _, waits in known])


def _waits_for_gpu(process: ProcessStacks, number: int) -> bool:
    return waits_for_gpu(process.stacks.get(number, ()))


def _edges_of_waits(waited: Sequence[tuple[Floats, Floats, Floats]], moments: Sequence[Floats]) -> Floats:
    """Return 0, where waits begin and end, and those of some moments that lie in them: else nobody is waited for."""
    rows = np.concatenate([np.empty((0, 2)), *(np.column_stack(wait[:2]) for wait in waited)])
    cover = interval_cover(rows)
    return _distinct(np.concatenate([np.zeros(1), rows.ravel(), *(each[cover.holds(each)] for each in moments)]))


def _heights(edges: Floats, starts: Floats, ends: Floats, heights: Floats | float) -> Floats:
    """Return the sum of the heights of the stretches that hold each edge."""
    steps = np.zeros(len(edges) + 1)  # one that begins after the last edge holds none
    np.add.at(steps, np.searchsorted(edges, starts), heights)
    np.add.at(steps, np.searchsorted(edges, ends), -heights)
    sums: Floats = np.cumsum(steps[:-1])
    return sums


def _waits(main: IdleStacks) -> tuple[Floats, Floats, Floats]:
    """Return start, end and idle GPU seconds of the pieces in which a main process waited for its loader."""
    rows = main.waits & (main.idle_s > 0)
    return main.start_s[rows], main.end_s[rows], main.idle_s[rows]


def _is_working(worker: ProcessStacks) -> Bools:
    lines, places = distinct(worker.number, lambda number: line_of(worker, number))
    return np.array([line is not None for line in lines], dtype=np.bool_)[places[:]]


def _between(worker: ProcessStacks, edges: Floats, so_far: Floats) -> Floats:
    mine: Floats = np.interp(worker.end_s, edges, so_far) - np.interp(worker.start_s, edges, so_far)
    return mine


def _of_worker(worker: ProcessStacks, gpus: tuple[int, ...], idle_s: Floats) -> IdleStacks:
    return IdleStacks(worker, gpus, worker.start_s, worker.end_s, worker.number, idle_s)

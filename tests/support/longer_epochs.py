"""A recorded training with many times as many batches an epoch: what its steady part recorded is repeated.

Steps take as long as they did, so that a report of it begins as that of the recording, where the cause lasts all the
time. What happened once in an epoch does not: its end, and a stall that lies in the repeated part, which lasts longer.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pandas as pd

from gpu_report.model import InsideEpoch, InsideRun, ProcessStacks, Run

COUNTERS = "energy_j", "power_cap_s", "sw_thermal_slowdown_s", "hw_thermal_slowdown_s", "power_brake_s"
OF_AN_EPOCH = "batches", "images", "data_mib", "npy_mib"  # settings that grow with the data set
SETTLED_SHARE = 0.15  # of an epoch's training: workers have prefetched batches at its beginning


class Repeats:
    """Copies of stretches of a recording: `((start_s, end_s), copies, at_s)`, inserted at a moment each."""

    def __init__(self, stretches: Sequence[tuple[tuple[float, float], int, float]]) -> None:
        self.stretches = sorted(stretches, key=lambda each: each[2])
        self.at = [at_s for *_, at_s in self.stretches]
        self.added = np.concatenate([[0.0], np.cumsum([n * (end - start) for (start, end), n, _ in self.stretches])])

    def moved(self, t_s: Any) -> Any:
        """Return the new times of moments that are not repeated."""
        return np.asarray(t_s, float) + self.added[np.searchsorted(self.at, t_s, side="right")]

    def moment(self, t_s: float | None) -> Any:
        return None if t_s is None else float(self.moved(t_s))

    def copies(self) -> Iterator[tuple[float, float, float]]:
        """Yield the stretch of each copy, and by how much it is later."""
        for number, ((start, end), copies, at_s) in enumerate(self.stretches):
            for copy in range(copies):
                yield start, end, at_s + self.added[number] + copy * (end - start) - start

    def points(self, t_s: Any) -> tuple[Any, Any]:
        """Return the index of each moment and copy of it, and its new time, in order of that."""
        t_s = np.asarray(t_s, float)
        index, new = [np.arange(len(t_s))], [self.moved(t_s)]
        for start, end, later in self.copies():
            inside = np.flatnonzero((t_s >= start) & (t_s < end))
            index.append(inside)
            new.append(t_s[inside] + later)
        every, times = np.concatenate(index), np.concatenate(new)
        order = np.argsort(times, kind="stable")
        return every[order], times[order]

    def pieces(self, starts: Any, ends: Any) -> tuple[Any, Any, Any]:
        """Return the index, start and end of the pieces of some intervals, cut where a copy comes in, and of copies."""
        found = [
            piece
            for at, (start, end) in enumerate(zip(starts, ends, strict=True))
            for piece in self._cut(at, start, end)
        ]
        for start, end, later in self.copies():
            inside = np.flatnonzero((np.asarray(starts) < end) & (np.asarray(ends) > start))
            found += [(int(at), max(starts[at], start) + later, min(ends[at], end) + later) for at in inside]
        found.sort(key=lambda piece: piece[1])
        index, new_starts, new_ends = zip(*found, strict=True) if found else ((), (), ())
        return np.array(index, int), np.array(new_starts, float), np.array(new_ends, float)

    def _cut(self, at: int, start: float, end: float) -> Iterator[tuple[int, float, float]]:
        number = bisect_right(self.at, start)
        while number < len(self.at) and self.at[number] < end:
            yield at, start + self.added[number], self.at[number] + self.added[number]
            start, number = self.at[number], number + 1
        yield at, start + self.added[number], end + self.added[number]


def longer(run: Run, times: int) -> Run:
    """Return a recorded training, of one run of YOLO, whose epochs have so many times as many batches.

    The part that is repeated in a first epoch is that of the second: it has no warm-up.
    """
    main = next(each for each in run.inside if each.rank == 0 and each.task == "train")
    sources = {epoch.epoch: source for epoch, source in _sources(main)}
    stretches = [(_settled(source), times - 1, epoch.end_t_s) for epoch, source in _sources(main)]
    repeats = Repeats([each for each in stretches if each[2] is not None])
    processes = run.processes.assign(t_s=repeats.moved(run.processes["t_s"].to_numpy(float)))
    return replace(
        run,
        duration_s=run.duration_s + float(repeats.added[-1]),
        samples=_table(repeats, run.samples),
        ring=_table(repeats, run.ring),
        host=_table(repeats, run.host),
        processes=processes,
        yolo_runs=tuple(replace(each, started_t_s=repeats.moment(each.started_t_s)) for each in run.yolo_runs),
        epoch_rows=tuple(_moved(repeats, each) for each in run.epoch_rows),
        kernel=replace(run.kernel, events=tuple(_moved(repeats, each) for each in run.kernel.events)),
        events=tuple(_moved(repeats, each) for each in run.events),
        inside=tuple(_inside(repeats, each, times, sources) for each in run.inside),
        stacks=tuple(_stacks(repeats, each) for each in run.stacks),
        waits=_spans(repeats, run.waits),
        other_programs=_spans(repeats, run.other_programs),
    )


def _sources(main: InsideRun) -> list[tuple[InsideEpoch, InsideEpoch]]:
    whole = [epoch for epoch in main.epochs if epoch.end_t_s is not None]
    return [(epoch, whole[min(1, len(whole) - 1)] if at == 0 else epoch) for at, epoch in enumerate(whole)]


def _settled(epoch: InsideEpoch) -> tuple[float, float]:
    start_s, end_s = epoch.start_t_s + epoch.first_wait_s, epoch.end_t_s or 0.0
    return start_s + SETTLED_SHARE * (end_s - start_s), end_s


def _moved(repeats: Repeats, each: Any) -> Any:
    """Return what has moments (`t_s`, `..._t_s`) with their new times."""
    names = [field.name for field in fields(each) if field.name == "t_s" or field.name.endswith("_t_s")]
    return replace(each, **{name: repeats.moment(getattr(each, name)) for name in names})


def _inside(repeats: Repeats, run: InsideRun, times: int, sources: Mapping[int, InsideEpoch]) -> InsideRun:
    grown = {
        name: run.settings[name] * times for name in OF_AN_EPOCH if isinstance(run.settings.get(name), int | float)
    }
    phases = [
        replace(_moved(repeats, each), validated=each.validated and _moved(repeats, each.validated))
        for each in run.phases
    ]
    epochs = [_epoch(repeats, each, times, sources) for each in run.epochs]
    # between the ends of epochs, nothing is reported of them: as in a recording of their ends alone
    return replace(run, settings={**run.settings, **grown}, phases=tuple(phases), epochs=tuple(epochs), progress=())


def _epoch(repeats: Repeats, epoch: InsideEpoch, times: int, sources: Mapping[int, InsideEpoch]) -> InsideEpoch:
    if epoch.end_t_s is None:
        return _moved(repeats, epoch)
    source = sources[epoch.epoch]
    waits_s = epoch.data_wait_s + (times - 1) * (source.data_wait_s - source.first_wait_s)
    images = None if epoch.images is None else epoch.images * times
    return replace(_moved(repeats, epoch), images=images, batches=epoch.batches * times, data_wait_s=waits_s)


def _table(repeats: Repeats, table: pd.DataFrame) -> pd.DataFrame:
    groups = [group for _, group in table.groupby("gpu")] if "gpu" in table else [table]
    return pd.concat([_rows(repeats, group) for group in groups], ignore_index=True) if len(table) else table


def _rows(repeats: Repeats, rows: pd.DataFrame) -> pd.DataFrame:
    index, new = repeats.points(rows["t_s"].to_numpy())
    found = rows.iloc[index].assign(t_s=new)
    for name in (name for name in COUNTERS if name in rows and rows[name].notna().any()):
        known = rows[name].notna().to_numpy()
        counted = rows[name].to_numpy(float)[known]
        at, when = repeats.points(rows["t_s"].to_numpy()[known])
        totals = counted[0] + np.cumsum(np.diff(counted, prepend=counted[0])[at])
        found[name] = np.interp(new, when, totals)
    return found


def _spans(repeats: Repeats, items: Sequence[Any]) -> tuple[Any, ...]:
    index, starts, ends = repeats.pieces([each.start_t_s for each in items], [each.end_t_s for each in items])
    return tuple(
        _scaled(
            items[at], end - start, items[at].end_t_s - items[at].start_t_s, start_t_s=float(start), end_t_s=float(end)
        )
        for at, start, end in zip(index, starts, ends, strict=True)
    )


def _scaled(item: Any, seconds: float, of_s: float, **times: float) -> Any:
    more = {"cpu_s": item.cpu_s * seconds / of_s} if hasattr(item, "cpu_s") and of_s > 0 else {}
    return replace(item, **times, **more)


def _intervals(repeats: Repeats, each: Any, *, summed: Sequence[str] = ()) -> Any:
    """Return arrays of intervals, cut and copied; what was summed over one goes by its length."""
    if each is None:
        return None
    index, starts, ends = repeats.pieces(each.start_s, each.end_s)
    lengths = np.maximum(each.end_s - each.start_s, 1e-9)
    arrays = {
        field.name: getattr(each, field.name)[index] * ((ends - starts) / lengths[index] if field.name in summed else 1)
        for field in fields(each)
        if isinstance(getattr(each, field.name), np.ndarray)
    }
    kept = {name: values.astype(getattr(each, name).dtype) for name, values in arrays.items()}
    return replace(each, **{**kept, "start_s": starts, "end_s": ends})


def _stacks(repeats: Repeats, process: ProcessStacks) -> ProcessStacks:
    probes, collections = process.probes, process.collections
    if probes is not None:
        index, at_s = repeats.points(probes.at_s)
        probes = replace(probes, at_s=at_s, ran=probes.ran[index])
    if collections is not None:
        counts = _intervals(repeats, collections, summed=("count", "seconds"))
        collections = replace(counts, long=_intervals(repeats, collections.long))
    return replace(
        _intervals(repeats, process),
        threads=tuple(_intervals(repeats, each) for each in process.threads),
        lock_held=_spans(repeats, process.lock_held),
        busy_threads=_intervals(repeats, process.busy_threads, summed=("cpu_s", "main_cpu_s")),
        probes=probes,
        collections=collections,
    )

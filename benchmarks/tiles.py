"""Run folders of any length, tiled from real recordings: the report is measured on runs that nobody has waited for.

    python benchmarks/tiles.py --hours 24 --gpus 8 OUTPUT       (other options: --interval 0.1, --ring, --epoch-s 300)

The training is that of `sample_runs/m-ddp` (more than one GPU) or `s-healthy` (one), its epochs of 5 to 6 s one after
the other for as long as is wanted; once an hour comes an epoch in which a rank was stopped, or the loader stood still.
Each tick takes a whole real row, drawn from those that lie within half a second of the same place of an epoch: what an
epoch looks like is real, and no epoch is the copy of another. A few hundred real rows cannot fill the last digits of a
day, so that values with decimals are moved by up to 1 %: else the file would compress better than a real one. All else
is tiled likewise: host, the driver's readings, processes, events, `results.csv`, and what each rank's callbacks told.
With `--epoch-s` the middle of each epoch's training goes on, with rows of any moment of it, until it has that length.
"""

import argparse
import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt
import pandas as pd

from gpu_report import schema
from gpu_report.inside.on_path.gpu_report_inside.batches import PROGRESS_EVERY_S, PROGRESS_SHARE
from gpu_report.load import load_run
from gpu_report.model import Run

RUNS = Path(__file__).resolve().parent.parent / "sample_runs"
ONE_GPU = (("s-healthy",), "s-loader-stall")  # recordings of ordinary epochs, and one with faults
SEVERAL_GPUS = (("m-ddp", "m-ddp-stopped"), "m-ddp-stopped")

NEAR_S = 0.5  # how far from a place in an epoch the rows lie that it is drawn from
DITHER = 0.01  # of a value with decimals: as many different ones then come up as in as many real rows
WHOLE = "nvlink_"  # traffic of whole batches: real values come up again and again, and both directions are alike
FAULT_EVERY_S = 3600.0
COUNTERS_EVERY_S = 10.0  # how often the recorder reads energy and throttle counters
PROCESSES_EVERY_S = 60.0  # how often a process on a GPU changes so much that it is written
CHUNK_TICKS = 20_000
RING_STEP_S = 0.2
FINEST = 3  # decimals of any column
START_WALL_S = 1_795_000_000.0
START_MONO_S = 1000.0
COUNTERS = ("power_cap_s", "sw_thermal_slowdown_s", "hw_thermal_slowdown_s", "power_brake_s")
AVERAGED_PERCENT = "_pct"

Floats = npt.NDArray[np.float64]
Json = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Pool:
    """Real rows to draw from, by their place: seconds from the beginning of their epoch's validation."""

    place_s: Floats
    rows: pd.DataFrame

    def draw(self, places_s: Floats, near_s: float, random: np.random.Generator) -> pd.DataFrame:
        """Return a row for each place: any of those near it, else the nearest one."""
        first = np.searchsorted(self.place_s, places_s - near_s)
        last = np.searchsorted(self.place_s, places_s + near_s, side="right")
        nearest = np.clip(np.searchsorted(self.place_s, places_s), 0, len(self.place_s) - 1)
        drawn = first + (random.random(len(places_s)) * (last - first)).astype(int)
        return self.rows.take(np.where(last > first, drawn, nearest))


@dataclass(frozen=True)
class Epoch:
    """An epoch of a recording: when it began, when its validation began, when the next one began."""

    number: int
    start_s: float
    validation_s: float
    end_s: float


class Recording:
    """A real recording, cut at its epochs."""

    def __init__(self, name: str) -> None:
        self.folder = RUNS / name
        self.run: Run = load_run(self.folder)
        self.mono_0 = float(pd.read_csv(self.folder / schema.SAMPLES_CSV)["mono_s"].min())
        process = next(process for process in self.run.inside if process.rank == 0)
        train = [p for p in process.phases if p.name == "train"]
        begun = {p.epoch: p.start_t_s for p in process.phases if p.name == "validation"}
        self.epochs = [
            Epoch(a.epoch, a.start_t_s, begun[a.epoch], b.start_t_s)
            for a, b in pairwise(train[1:])  # not the first, which waits, nor the last
        ]
        usual_s = float(np.median([epoch.end_s - epoch.start_s for epoch in self.epochs]))
        self.ordinary = [e for e in self.epochs if e.end_s - e.start_s < 1.5 * usual_s]
        self.faulty = [e for e in self.epochs if e.end_s - e.start_s >= 1.5 * usual_s]
        self.events = self._lines(self.folder / schema.EVENTS_JSONL)
        paths = sorted((self.folder / schema.INSIDE_DIR).glob("*.jsonl"))
        told = [self._lines(path) for path in paths]
        self.told = sorted(told, key=lambda lines: lines[0]["rank"])

    def _lines(self, path: Path) -> list[Json]:
        """Return JSON lines, each with its seconds from the run's start as `t_s`."""
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        return [{**line, "t_s": line["mono_s"] - self.mono_0} for line in lines]


@dataclass(frozen=True)
class Piece:
    """A stretch of the made run: taken from `recording`, moved by `shift_s`; `epoch` is the real one, None beside them.

    `number` is its epoch in the made run, `pool` where its rows are drawn from, by seconds from `origin_s`. In the
    middle of its training, at `cut_s` of the recording, `longer_s` seconds of training are put in.
    """

    recording: Recording
    start_s: float
    shift_s: float
    pool: str
    origin_s: float
    epoch: Epoch | None = None
    number: int = 0
    longer_s: float = 0.0

    @property
    def train_s(self) -> float:
        """Return how long the real epoch trained."""
        return self.epoch.validation_s - self.epoch.start_s if self.epoch else 0.0

    @property
    def cut_s(self) -> float:
        return self.epoch.start_s + self.train_s / 2 if self.epoch else np.inf

    @property
    def factor(self) -> float:
        """Return how many times as long as the real one the epoch trains."""
        return (self.train_s + self.longer_s) / self.train_s if self.longer_s else 1.0

    def shift_of(self, t_s: float) -> float:
        """Return by how much a moment of the recording is moved."""
        return self.shift_s + (self.longer_s if t_s >= self.cut_s else 0.0)


@dataclass(frozen=True)
class Shape:
    """How long, wide and fine a run is; `ring` says whether it has the driver's readings between ticks."""

    hours: float
    gpus: int
    interval_s: float = 1.0
    ring: bool = False
    epoch_s: float | None = None  # of training; None: as the real ones

    @property
    def duration_s(self) -> float:
        return self.hours * 3600


class Tiling:
    """What a made run is put together from."""

    def __init__(self, shape: Shape, seed: int = 1) -> None:
        ordinary, faulty = SEVERAL_GPUS if shape.gpus > 1 else ONE_GPU
        self.shape, self.random = shape, np.random.default_rng(seed)
        self.recordings = [Recording(name) for name in ordinary]
        self.faults = next((r for r in self.recordings if r.folder.name == faulty), None) or Recording(faulty)
        self.pieces = list(self._pieces())
        self.starts = np.array([piece.start_s for piece in self.pieces])

    def _pieces(self) -> Iterator[Piece]:
        """Yield the beginning of a real run, epochs for as long as is wanted, and the end of the real run."""
        first = self.recordings[0]
        yield Piece(first, 0.0, 0.0, "head", 0.0)
        after = first.epochs[-1].end_s
        at, until = first.epochs[0].start_s, self.shape.duration_s - (first.run.duration_s - after)
        number, fault_at = 2, FAULT_EVERY_S / 2
        while at < until:
            faulty = at >= fault_at
            fault_at += FAULT_EVERY_S * faulty
            piece = self._epoch(at, number, faulty=faulty)
            yield piece
            assert piece.epoch is not None
            at, number = at + piece.epoch.end_s - piece.epoch.start_s + piece.longer_s, number + 1
        yield Piece(first, at, at - after, "tail", at - after, number=number)

    def _epoch(self, at: float, number: int, *, faulty: bool) -> Piece:
        recording = self.faults if faulty else self.recordings[int(self.random.integers(len(self.recordings)))]
        epochs = recording.faulty if faulty else recording.ordinary
        epoch = epochs[int(self.random.integers(len(epochs)))]
        shift = at - epoch.start_s
        pool = f"fault-{epoch.number}" if faulty else recording.folder.name
        train_s = epoch.validation_s - epoch.start_s
        longer = max((self.shape.epoch_s or 0.0) - train_s, 0.0) if not faulty else 0.0
        return Piece(recording, at, shift, pool, epoch.validation_s + shift + longer, epoch, number, longer)

    @property
    def epochs(self) -> list[Piece]:
        return [piece for piece in self.pieces if piece.epoch is not None]

    @property
    def end_s(self) -> float:
        tail = self.pieces[-1]
        return tail.recording.run.duration_s + tail.shift_s

    def pools(self, table: str, gpu: int | None) -> dict[str, Pool]:
        """Return the pools of a table (samples, ring, host); of GPUs, those beyond the recorded ones begin anew."""
        first = self.recordings[0]
        ends = {"head": (-1.0, first.epochs[0].start_s), "tail": (first.epochs[-1].end_s, first.run.duration_s)}
        pools = {name: _pool(first, table, gpu, [(*span, 0.0)]) for name, span in ends.items()}
        for recording in self.recordings:
            spans = [(e.start_s, e.end_s, e.validation_s) for e in recording.ordinary]
            pools[recording.folder.name] = _pool(recording, table, gpu, spans)
        for e in self.faults.faulty:
            pools[f"fault-{e.number}"] = _pool(self.faults, table, gpu, [(e.start_s, e.end_s, e.validation_s)])
        return pools

    def rows(self, pools: Mapping[str, Pool], t_s: Floats, near_s: float = NEAR_S) -> pd.DataFrame:
        """Return a row for each moment, drawn from the pool of its piece."""
        at = np.clip(np.searchsorted(self.starts, t_s, side="right") - 1, 0, None)
        names = np.array([piece.pool for piece in self.pieces])[at]
        places = self._places(t_s - np.array([piece.origin_s for piece in self.pieces])[at], at)
        parts = []
        for name in np.unique(names):
            mine = np.flatnonzero(names == name)
            parts.append(pools[name].draw(places[mine], near_s, self.random).set_axis(mine))
        return pd.concat(parts).sort_index()

    def _places(self, places_s: Floats, at: npt.NDArray[np.intp]) -> Floats:
        """Return places in real epochs for those in made ones: for what was put in, any but the edges of training."""
        longer = np.array([piece.longer_s for piece in self.pieces])[at]
        half = np.array([piece.train_s for piece in self.pieces])[at] / 2
        anywhere = -half + (half - 1.0) * (2 * self.random.random(len(places_s)) - 1)
        begun = np.where(places_s < -half - longer, places_s + longer, anywhere)
        return np.where((longer == 0) | (places_s >= -half), places_s, begun)


def _pool(recording: Recording, table: str, gpu: int | None, spans: Sequence[tuple[float, float, float]]) -> Pool:
    frame: pd.DataFrame = getattr(recording.run, table)
    if gpu is not None:
        frame = frame[frame["gpu"] == gpu % len(recording.run.gpus)]
    parts = [
        frame[(frame["t_s"] >= a) & (frame["t_s"] < b)].assign(place_s=lambda f, o=o: f["t_s"] - o) for a, b, o in spans
    ]
    rows = pd.concat(parts).sort_values("place_s", kind="stable")
    return Pool(rows["place_s"].to_numpy(), rows.drop(columns=["t_s", "place_s"]))


def make_run(shape: Shape, folder: Path) -> None:
    """Write a run folder of this shape."""
    folder.mkdir(parents=True)
    tiling = Tiling(shape)
    _write_ticks(tiling, folder)
    if shape.ring:
        _write_ring(tiling, folder)
    _write_processes(tiling, folder)
    _write_told(tiling, folder)
    _write_yolo(tiling, folder)
    _write_info(tiling, folder)


# --- samples, host, ring -----------------------------------------------------------------------------------------


def _write_ticks(tiling: Tiling, folder: Path) -> None:
    shape, random = tiling.shape, tiling.random
    gpus = [_Gpu(tiling, gpu) for gpu in range(shape.gpus)]
    host = tiling.pools("host", None)
    count = int(tiling.end_s / shape.interval_s)
    with (folder / schema.SAMPLES_CSV).open("w") as samples, (folder / schema.HOST_CSV).open("w") as of_host:
        for begin in range(0, count, CHUNK_TICKS):
            ticks = np.arange(begin, min(begin + CHUNK_TICKS, count))
            t_s = np.round(
                ticks * shape.interval_s + random.choice([0.0, 0.0, 0.0, 0.001, 0.001, 0.004], len(ticks)), 3
            )
            frames = [gpu.rows(t_s) for gpu in gpus]
            merged = pd.concat(frames).sort_values(["tick", "gpu"], kind="stable")
            _append(samples, merged, schema.SAMPLES_COLUMNS, header=not begin)
            drawn = _dithered(tiling.rows(host, t_s), schema.HOST_QUANTITIES, random)
            _append(of_host, drawn.assign(t_s=t_s), schema.HOST_COLUMNS, header=not begin)


class _Gpu:
    """One GPU's rows, with counters that go on where they were."""

    def __init__(self, tiling: Tiling, gpu: int) -> None:
        self.tiling, self.gpu = tiling, gpu
        self.pools = tiling.pools("samples", gpu)
        self.joules, self.capped_s, self.due_s = 3e5, 1.0, 0.0

    def rows(self, t_s: Floats) -> pd.DataFrame:
        random = self.tiling.random
        own_t = np.round(t_s + random.choice([0.0, 0.0, 0.001], len(t_s)), 3)
        frame = _dithered(self.tiling.rows(self.pools, own_t), schema.GPU_QUANTITIES, random)
        return self._counted(frame.assign(t_s=own_t, gpu=self.gpu, tick=t_s))

    def _counted(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return rows with energy and throttle counters at every COUNTERS_EVERY_S, and none between."""
        step = self.tiling.shape.interval_s
        joules = self.joules + np.cumsum(frame["power_w"].fillna(0).to_numpy()) * step
        capped = self.capped_s + np.cumsum(np.where(frame["clock_event_reasons"] == 4, step, 0.0))
        self.joules, self.capped_s = float(joules[-1]), float(capped[-1])
        every = round(COUNTERS_EVERY_S / step)
        read = np.arange(len(frame)) % every == 0
        empty = dict.fromkeys(COUNTERS, np.where(read, 0.0, np.nan))
        counted = {
            "energy_j": np.where(read, joules.round(1), np.nan),
            "power_cap_s": np.where(read, capped.round(2), np.nan),
        }
        return frame.assign(**{**empty, **counted})


def _dithered(frame: pd.DataFrame, columns: Sequence[schema.Column], random: np.random.Generator) -> pd.DataFrame:
    moved = {}
    for column in columns:
        if column.decimals and column.name in frame and not column.name.startswith(WHOLE):
            values = frame[column.name].to_numpy() * (1 + DITHER * (2 * random.random(len(frame)) - 1))
            most = 100.0 if column.name.endswith(AVERAGED_PERCENT) else np.inf
            moved[column.name] = np.minimum(values, most).round(column.decimals)
    return frame.assign(**moved)


def _write_ring(tiling: Tiling, folder: Path) -> None:
    count = int(tiling.end_s / RING_STEP_S)
    pools = [tiling.pools("ring", gpu) for gpu in range(tiling.shape.gpus)]
    with (folder / schema.RING_CSV).open("w") as file:
        for begin in range(0, count, CHUNK_TICKS):
            ticks = np.arange(begin, min(begin + CHUNK_TICKS, count))
            frames = []
            for gpu, pool in enumerate(pools):
                t_s = np.round(ticks * RING_STEP_S + tiling.random.choice([-0.001, 0.0, 0.0, 0.001], len(ticks)), 3)
                frames.append(tiling.rows(pool, t_s, RING_STEP_S).assign(t_s=t_s, gpu=gpu, power_w=np.nan))
            _append(file, pd.concat(frames).sort_values("t_s", kind="stable"), schema.RING_COLUMNS, header=not begin)


def _append(file: TextIO, frame: pd.DataFrame, columns: Sequence[schema.Column], *, header: bool) -> None:
    t_s = frame["t_s"].to_numpy()
    times = {"wall_s": _texts(t_s + START_WALL_S, "%.3f"), "mono_s": _texts(t_s + START_MONO_S, "%.3f")}
    cells = frame.reindex(columns=[column.name for column in columns if column.name not in times])
    texts = [*times.values(), *(_texts(cells[name].to_numpy()) for name in cells)]
    if header:
        file.write(",".join([*times, *cells]) + "\n")
    file.writelines(line + "\n" for line in map(",".join, zip(*texts, strict=True)))


def _texts(values: npt.NDArray[Any], form: str = "%.10g") -> list[str]:
    """Return the cells of a column, each different value formatted once, which `to_csv` does for every cell."""
    if not np.issubdtype(values.dtype, np.number):
        return ["" if pd.isna(value) else str(value) for value in values]
    # of what was read in 32 bits, 592.4 would be 592.4000244 here
    different, places = np.unique(np.round(values.astype(np.float64), FINEST), return_inverse=True)
    texts = np.array([form % value if np.isfinite(value) else "" for value in different.tolist()], dtype=object)
    return list(texts[places])


def _write_processes(tiling: Tiling, folder: Path) -> None:
    """Write that a rank is on each GPU, and now and then how busy it keeps it."""
    real = tiling.recordings[0].run.processes
    busy = real.loc[real["change"] == "changed", "gpu_util_pct"].dropna().to_numpy()
    memory = real["memory_used_mib"].dropna().to_numpy()
    appears_s = float(real["t_s"].min())
    rows = []
    for gpu in range(tiling.shape.gpus):
        who = {"gpu": gpu, "pid": _pid(gpu), "name": "python3", "owner": "trainer"}
        times = np.arange(appears_s + gpu / 10, tiling.end_s - 2, PROCESSES_EVERY_S)
        for number, t_s in enumerate(times):
            seen = {"gpu_util_pct": tiling.random.choice(busy), "memory_used_mib": tiling.random.choice(memory)}
            rows.append({**who, **seen, "t_s": t_s, "change": "changed" if number else "appeared"})
        rows.append({**who, "t_s": tiling.end_s - 1, "change": "gone"})
    frame = pd.DataFrame(rows).sort_values("t_s", kind="stable")
    with (folder / schema.PROCESSES_CSV).open("w") as file:
        _append(file, frame, schema.PROCESSES_COLUMNS, header=True)


def _pid(gpu: int) -> int:
    return 4000 + gpu


# --- events, callbacks, YOLO's files, run.json -------------------------------------------------------------------


def _write_told(tiling: Tiling, folder: Path) -> None:
    """Write events.jsonl, and what the callbacks of each rank told."""
    with (folder / schema.EVENTS_JSONL).open("w") as file:
        for piece in tiling.pieces:
            _copy(file, piece, piece.recording.events, _event)
    (folder / schema.INSIDE_DIR).mkdir()
    for rank in range(tiling.shape.gpus):
        told = _LoadProblems(rank, len(tiling.epochs) + 2, float(np.median([piece.factor for piece in tiling.epochs])))
        with (folder / schema.INSIDE_DIR / f"{_pid(rank)}.jsonl").open("w") as file:
            for piece in tiling.pieces:
                _copy(file, piece, piece.recording.told[rank % len(piece.recording.told)], told.line)


def _copy(file: TextIO, piece: Piece, lines: Sequence[Json], changed: Any) -> None:
    """Write the lines of a recording that lie in a piece, moved to where the piece lies."""
    first, last = _span(piece)
    times = [line["t_s"] for line in lines]
    mine = lines[bisect_right(times, first - 1e-9) : bisect_right(times, last - 1e-9)]
    for line in _longer(piece, mine):
        t_s = line["t_s"] + _shift(piece, line)
        stamps = {"wall_s": round(t_s + START_WALL_S, 6), "mono_s": round(t_s + START_MONO_S, 6)}
        new = changed({**line, **stamps}, piece, t_s - line["t_s"])
        if new is not None:
            del new["t_s"]
            new.pop("made", None)
            file.write(json.dumps(new) + "\n")


def _longer(piece: Piece, lines: Sequence[Json]) -> Sequence[Json]:
    """Return what was told of an epoch with as much more of it as it is longer, and its progress told anew."""
    ends = [line for line in lines if line["kind"] == "epoch" and "batches" in line]
    if not piece.longer_s or not ends:
        return lines
    end = {**ends[0], **{name: round(ends[0][name] * piece.factor) for name in ("images", "batches")}}
    end["data_wait_s"] = round(ends[0]["data_wait_s"] * piece.factor, 6)
    others = [line for line in lines if line["kind"] not in {"batches", "progress", "epoch"}]
    return sorted([*others, *_progress(piece, end), end], key=lambda line: line["t_s"] + _shift(piece, line))


def _progress(piece: Piece, end: Json) -> Iterator[Json]:
    """Yield progress every PROGRESS_EVERY_S; `shift_of` a line is that of the beginning of its epoch."""
    whole_s = piece.train_s + piece.longer_s
    for at in np.arange(PROGRESS_EVERY_S, whole_s, PROGRESS_EVERY_S):
        share = float(at) / whole_s
        t_s = piece.epoch.start_s + at if piece.epoch else 0.0
        done = {"batches": int(end["batches"] * share), "data_wait_s": round(end["data_wait_s"] * share, 6)}
        begun = {name: end[name] for name in ("epoch", "attempt", "start_wall_s", "start_mono_s", "first_wait_s")}
        first = {"kind": "batches", **begun, "longest_wait_s": end["longest_wait_s"]}
        yield {**(first if at == PROGRESS_EVERY_S else {"kind": "progress"}), **done, "t_s": t_s, "made": True}


def _shift(piece: Piece, line: Json) -> float:
    """Return by how much a line is moved; one that was made lies where it is by the beginning of its epoch."""
    return piece.shift_s if line.get("made") else piece.shift_of(line["t_s"])


def _span(piece: Piece) -> tuple[float, float]:
    """Return the part of its recording that a piece is."""
    if piece.epoch is not None:
        return piece.epoch.start_s, piece.epoch.end_s
    epochs = piece.recording.epochs
    return (-1e3, epochs[0].start_s) if piece.pool == "head" else (epochs[-1].end_s, 1e9)


def _event(line: Json, piece: Piece, shift_s: float) -> Json:
    if line["kind"] == "epoch":
        number = piece.number or 1
        began_s = next(e["t_s"] - e["time_s"] for e in piece.recording.events if e["kind"] == "epoch")
        line = {**line, "epoch": number, "time_s": round(line["t_s"] + shift_s - began_s, 4)}
    return line


class _LoadProblems:
    """What one rank tells: its epochs with the numbers of the made run, and progress as seldom as in a long one."""

    def __init__(self, rank: int, epochs: int, factor: float) -> None:
        self.rank, self.epochs, self.factor = rank, epochs, factor
        self.due_s = self.began_s = 0.0

    def line(self, line: Json, piece: Piece, shift_s: float) -> Json | None:
        t_s = line["t_s"] + shift_s
        self.began_s = self.began_s or t_s
        if line["kind"] in {"progress", "batches"}:
            if t_s < self.due_s:
                return None
            self.due_s = t_s + max(PROGRESS_EVERY_S, PROGRESS_SHARE * (t_s - self.began_s))
        new = dict(line)
        if isinstance(line.get("epoch"), int):
            new["epoch"] = piece.number or line["epoch"]
        for name, start in (("start_wall_s", START_WALL_S), ("start_mono_s", START_MONO_S)):
            if name in line:
                mono_t = line["start_mono_s"] - piece.recording.mono_0 + piece.shift_s
                new[name] = round(mono_t + start, 6)
        if line["kind"] == "run":
            new |= {"pid": _pid(self.rank), "rank": self.rank}
        if line["kind"] == "settings":
            new |= {"epochs": self.epochs, **{name: round(line[name] * self.factor) for name in ("images", "batches")}}
        return new


def _write_yolo(tiling: Tiling, folder: Path) -> None:
    source = tiling.recordings[0].folder / schema.YOLO_DIR
    (folder / schema.YOLO_DIR).mkdir()
    args = (source / schema.YOLO_ARGS).read_text().splitlines()
    told = [f"epochs: {len(tiling.epochs) + 2}" if line.startswith("epochs:") else line for line in args]
    (folder / schema.YOLO_DIR / schema.YOLO_ARGS).write_text("\n".join(told) + "\n")
    events = [json.loads(line) for line in (folder / schema.EVENTS_JSONL).read_text().splitlines()]
    rows = [{"epoch": e["epoch"], "time": e["time_s"], **e["metrics"]} for e in events if e["kind"] == "epoch"]
    pd.DataFrame(rows).to_csv(folder / schema.YOLO_DIR / schema.YOLO_RESULTS, index=False)


def _write_info(tiling: Tiling, folder: Path) -> None:
    shape, first = tiling.shape, tiling.recordings[0]
    info = json.loads((first.folder / schema.RUN_JSON).read_text())
    gpus = [{**info["gpus"][gpu % len(info["gpus"])], "index": gpu, "uuid": f"GPU-{gpu}"} for gpu in range(shape.gpus)]
    stamps = {
        name: {"wall_s": START_WALL_S + t_s, "mono_s": START_MONO_S + t_s, "boot_s": START_MONO_S + t_s}
        for name, t_s in (("start", -0.1), ("end", tiling.end_s))
    }
    made = {**info, **stamps, "gpus": gpus, "interval_s": shape.interval_s}
    (folder / schema.RUN_JSON).write_text(json.dumps(made, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--interval", type=float, default=1.0)
    parser.add_argument("--ring", action="store_true")
    parser.add_argument("--epoch-s", type=float)
    parser.add_argument("output", type=Path)
    args = parser.parse_args()
    make_run(Shape(args.hours, args.gpus, args.interval, args.ring, args.epoch_s), args.output)


if __name__ == "__main__":
    main()

"""When a GPU had work to do at all: outside startup and outside the time in which no YOLO run was going on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.track import Bools, Floats, Track
from gpu_report.model import EpochRow, Run

Span = tuple[float, float]


@dataclass(frozen=True)
class Activity:
    """The run's startups and idle spans, in seconds from its start, and the GPUs that it used."""

    startups: tuple[Span, ...]
    idle: tuple[Span, ...]
    used_gpus: frozenset[int]

    def usable(self, track: Track) -> Bools:
        """Return which readings of a track lie outside startup and idle; none of a GPU that was never used."""
        if track.gpu not in self.used_gpus:
            return np.zeros(len(track.t_s), dtype=bool)
        return outside(track, (*self.startups, *self.idle))


def outside(track: Track, spans: Sequence[Span]) -> Bools:
    """Return which readings of a track lie outside all spans."""
    left = np.ones(len(track.t_s), dtype=bool)
    for start, end in spans:
        left[track.between(start, end)] = False
    return left


def find_activity(run: Run, tracks: Sequence[Track]) -> Activity:
    """Return when the run worked, from its epochs, its processes or their memory, and utilisation itself."""
    presence = _presence(run)
    used = _used(tracks, presence)
    idle = _idle_spans(run, used, presence)
    begins = _train_starts(run)
    startups = [span for begin in begins if (span := _startup(begin, used, idle, run.duration_s))]
    return Activity(tuple(startups), tuple(_outside(idle, startups)), frozenset(track.gpu for track in used))


def _used(tracks: Sequence[Track], presence: dict[int, list[Span]]) -> list[Track]:
    """Return the GPUs that the run worked on: where it has processes, if processes are known, and busy more than once.

    Where no GPU was ever busy for long, those that did anything at all.
    """
    candidates = [track for track in tracks if len(track.t_s) and (not presence or track.gpu in presence)]
    worked = [track for track in candidates if work_begins(track, 0.0, th.LOW_PCT) is not None]
    return worked or [track for track in candidates if track.mean_pct(0.0, np.inf) >= th.UNUSED_PCT]


# --- startup --------------------------------------------------------------------------------------------------


def _train_starts(run: Run) -> list[Span]:
    """Return, for each training process (a run, or a resume of it), (end of the one before, start of its training).

    A process that was training already when the recording began has no startup. Where no epochs are known the first
    work anywhere ends the only one.
    """
    rows = sorted(run.epoch_rows, key=lambda row: row.row_t_s)
    firsts: dict[tuple[int, int], EpochRow] = {}
    for row in rows:
        firsts.setdefault((row.run, row.segment), row)
    if not firsts:
        return [(0.0, 0.0)]
    begins = []
    for first in firsts.values():
        before = max((row.row_t_s for row in rows if row.row_t_s <= first.start_t_s), default=0.0)
        if first.start_t_s >= 0.0:
            begins.append((before, first.start_t_s))
    return begins


def _startup(begin: Span, used: Sequence[Track], idle: Sequence[Span], duration_s: float) -> Span | None:
    """Return the span from the start of a YOLO run (or of the recording) to its first work on any GPU."""
    earliest, train_start = begin
    works = [t for track in used if (t := first_work(track, train_start)) is not None]
    first = min(works, default=duration_s)
    quiet = [end for start, end in idle if start >= earliest > 0 and end <= first]
    # between two runs the GPU is idle until the second one's process appears on it; before the first all is startup
    starts_at = max(quiet, default=earliest)
    return (starts_at, first) if first > starts_at else None


def first_work(track: Track, after_s: float) -> float | None:
    """Return when a GPU first worked after a moment, None if it never did.

    Busy is LOW_PCT, or half of what the GPU reaches where that is less.
    """
    util = track.util_pct[track.between(after_s, np.inf)]
    if not len(util) or util.max() < th.UNUSED_PCT:
        return None
    bar = max(min(th.LOW_PCT, float(np.percentile(util, 95)) / 2, float(util.max()) / 2), th.UNUSED_PCT)
    begun = work_begins(track, after_s, bar)
    return begun if begun is not None else float(track.t_s[track.between(after_s, np.inf)][np.argmax(util >= bar)])


def work_begins(track: Track, after_s: float, bar_pct: float) -> float | None:
    """Return from when on a GPU was busy WORK_SECONDS out of WORK_WITHIN_S (and WORK_READINGS times), None if never."""
    part = track.between(after_s, np.inf)
    busy = track.t_s[part][track.util_pct[part] >= bar_pct]
    ahead = max(th.WORK_READINGS, round(th.WORK_SECONDS / track.interval_s)) - 1
    if len(busy) <= ahead:
        return None
    within = max(th.WORK_WITHIN_S, (ahead + 1) * track.interval_s)
    close = busy[ahead:] - busy[: len(busy) - ahead] <= within
    return float(busy[np.argmax(close)]) if close.any() else None


# --- idle -----------------------------------------------------------------------------------------------------


def _presence(run: Run) -> dict[int, list[Span]]:
    """Return, for each GPU, when a process of this run was on it; empty where processes are not known.

    A process that was there at the first look belongs to somebody else, unless none came later: then the recording
    began in the middle of the training.
    """
    table = run.processes
    if not len(table):
        return {}
    appeared = table[table["change"] == "appeared"]
    late = appeared[appeared["t_s"] > th.FIRST_LOOK_S]
    own = set((late if len(late) else appeared)["pid"])
    spans: dict[int, list[Span]] = {}
    open_since: dict[tuple[int, int], float] = {}
    mine = table[table["pid"].isin(own)]
    columns = (mine[name].tolist() for name in ("t_s", "gpu", "pid", "change"))
    for t_s, gpu, pid, change in zip(*columns, strict=True):
        if change == "gone":
            spans.setdefault(gpu, []).append((open_since.pop((gpu, pid), 0.0), t_s))
        else:
            open_since.setdefault((gpu, pid), t_s)
    for (gpu, _), since in open_since.items():
        spans.setdefault(gpu, []).append((since, run.duration_s))
    return spans


def _idle_spans(run: Run, used: Sequence[Track], presence: dict[int, list[Span]]) -> list[Span]:
    """Return when no process of the run was on any GPU that it used, and what follows the end of the command."""
    per_gpu = [_absent(track, presence, run.duration_s) for track in used]
    spans = per_gpu[0] if per_gpu else []
    for other in per_gpu[1:]:
        spans = _intersect(spans, other)
    ended = [event.t_s for event in run.events if event.kind == "command_ended"]
    if ended:
        spans = [*spans, (max(ended), run.duration_s)]
    return [(a, b) for a, b in _union(spans) if b - a >= th.IDLE_AT_LEAST_S]


def _absent(track: Track, presence: dict[int, list[Span]], duration_s: float) -> list[Span]:
    """Return when the run had no process on a GPU: as its processes tell, else as the GPU's memory does."""
    if not presence:
        return _empty_spans(track)
    # the list of processes is read every few seconds: one may have come, and its memory been seen, a little before
    present = [(start - th.PROCESSES_EVERY_S, end) for start, end in presence[track.gpu]]
    return _outside([(0.0, duration_s)], present)


def _empty_spans(track: Track) -> list[Span]:
    """Return when a GPU's memory was as empty as it ever was; nothing where that cannot be told."""
    memory = track.rows["memory_used_mib"].to_numpy(dtype=float)
    times = track.rows["t_s"].to_numpy(dtype=float)
    busy = memory[track.rows["gpu_util_pct"].to_numpy(dtype=float) >= th.LOW_PCT]
    if not np.isfinite(memory).any() or not np.isfinite(busy).any():
        return []
    least = float(np.nanmin(memory))
    if least > th.IDLE_MEMORY_SHARE * float(np.nanmedian(busy)):
        return []
    empty = memory <= least + th.IDLE_MEMORY_SLACK_MIB
    edges = np.flatnonzero(np.diff(np.concatenate([[False], empty, [False]]).astype(np.int8)))
    ends: Floats = times + track.row_hold_s
    return [(float(times[a]), float(ends[b - 1])) for a, b in zip(edges[::2], edges[1::2], strict=True)]


# --- spans ----------------------------------------------------------------------------------------------------


def _intersect(left: Sequence[Span], right: Sequence[Span]) -> list[Span]:
    both = [(max(a, c), min(b, d)) for a, b in left for c, d in right]
    return sorted((a, b) for a, b in both if a < b)


def _union(spans: Sequence[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _outside(spans: Sequence[Span], cuts: Sequence[Span]) -> list[Span]:
    """Return `spans` without `cuts`."""
    rest = list(spans)
    for a, b in cuts:
        rest = [piece for s, e in rest for piece in ((s, min(e, a)), (max(s, b), e)) if piece[0] < piece[1]]
    return sorted(rest)

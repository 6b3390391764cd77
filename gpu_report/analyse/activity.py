"""When a GPU had work to do at all: outside startup and outside the time in which no YOLO run was going on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.track import Bools, Floats, Track
from gpu_report.model import Run

Span = tuple[float, float]


@dataclass(frozen=True)
class Activity:
    """The run's startups and idle spans, in seconds from its start, and which GPUs were ever used."""

    startups: tuple[Span, ...]
    idle: tuple[Span, ...]
    used_gpus: frozenset[int]

    def usable(self, track: Track) -> Bools:
        """Return which readings of a track lie outside startup and idle; none of a GPU that was never used."""
        if track.gpu not in self.used_gpus:
            return np.zeros(len(track.t_s), dtype=bool)
        outside = np.ones(len(track.t_s), dtype=bool)
        for start, end in (*self.startups, *self.idle):
            outside[track.between(start, end)] = False
        return outside


def find_activity(run: Run, tracks: Sequence[Track]) -> Activity:
    """Return when the run worked, from its epochs, its processes' memory, and utilisation itself."""
    used = [track for track in tracks if len(track.util_pct) and track.util_pct.max() >= th.UNUSED_PCT]
    idle = _idle_spans(run, used)
    startups = [span for begin in _train_starts(run) if (span := _startup(begin, used, idle, run.duration_s))]
    return Activity(tuple(startups), tuple(_outside(idle, startups)), frozenset(track.gpu for track in used))


def _train_starts(run: Run) -> list[Span]:
    """Return, for each YOLO run, from where its startup is looked for and the start of its first epoch.

    Where no epochs are known the first work anywhere ends the only startup.
    """
    rows = [
        min((r for r in run.epoch_rows if r.run == y.number), key=lambda r: r.row_t_s, default=None)
        for y in run.yolo_runs
    ]
    firsts = sorted((row.start_t_s, row.row_t_s) for row in rows if row is not None)
    if not firsts:
        return [(0.0, 0.0)]
    ends = [
        max(r.row_t_s for r in run.epoch_rows if r.row_t_s < start) if n else 0.0 for n, (start, _) in enumerate(firsts)
    ]
    return [(min(end, start), max(start, 0.0)) for end, (start, _) in zip(ends, firsts, strict=True)]


def _startup(begin: Span, used: Sequence[Track], idle: Sequence[Span], duration_s: float) -> Span | None:
    """Return the span from the start of a YOLO run (or of the recording) to its first work on any GPU."""
    earliest, train_start = begin
    if train_start <= 0.0 < earliest:
        return None
    works = [t for track in used if (t := first_work(track, train_start)) is not None]
    first = min(works, default=duration_s)
    quiet = [end for start, end in idle if start > earliest and end <= train_start]
    # between two runs the GPU is idle until the second one's process appears on it; before the first all is startup
    starts_at = max(quiet, default=earliest) if earliest > 0 else 0.0
    return (starts_at, first) if first > starts_at else None


def first_work(track: Track, after_s: float) -> float | None:
    """Return when a GPU first worked: WORK_READINGS busy readings within WORK_WITHIN_S; None if it never did.

    Busy is LOW_PCT, or half of what the GPU reaches where that is less.
    """
    util = track.util_pct[track.between(after_s, np.inf)]
    if not len(util) or util.max() < th.UNUSED_PCT:
        return None
    bar = min(th.LOW_PCT, float(np.percentile(util, 95)) / 2, float(util.max()) / 2)
    busy = track.t_s[track.between(after_s, np.inf)][util >= max(bar, th.UNUSED_PCT)]
    ahead = th.WORK_READINGS - 1
    close = busy[ahead:] - busy[: len(busy) - ahead] <= th.WORK_WITHIN_S
    return float(busy[np.argmax(close)]) if close.any() else float(busy[0])


def _idle_spans(run: Run, used: Sequence[Track]) -> list[Span]:
    """Return when no process held memory on any used GPU, and what follows the end of the command."""
    per_gpu = [spans for track in used if (spans := _empty_spans(track)) is not None]
    spans = per_gpu[0] if per_gpu and len(per_gpu) == len(used) else []
    for other in per_gpu[1:]:
        spans = _intersect(spans, other)
    ended = [event.t_s for event in run.events if event.kind == "command_ended"]
    if ended:
        spans = [*spans, (max(ended), run.duration_s)]
    return [(a, b) for a, b in _union(spans) if b - a >= th.IDLE_AT_LEAST_S]


def _empty_spans(track: Track) -> list[Span] | None:
    """Return when a GPU's memory was as empty as it ever was; None where that cannot be told."""
    memory = track.rows["memory_used_mib"].to_numpy(dtype=float)
    times = track.rows["t_s"].to_numpy(dtype=float)
    busy = memory[np.isin(times, track.t_s[track.util_pct >= th.LOW_PCT])]
    if not np.isfinite(memory).any():
        return None
    least = float(np.nanmin(memory))
    typical = float(np.nanmedian(busy)) if np.isfinite(busy).any() else least
    if least > th.IDLE_MEMORY_SHARE * typical:
        return []
    empty = memory <= least + th.IDLE_MEMORY_SLACK_MIB
    edges = np.flatnonzero(np.diff(np.concatenate([[False], empty, [False]]).astype(np.int8)))
    ends: Floats = times + track.row_hold_s
    return [(float(times[a]), float(ends[b - 1])) for a, b in zip(edges[::2], edges[1::2], strict=True)]


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

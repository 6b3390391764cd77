"""When a GPU had work to do at all: outside startup and outside the time in which no YOLO run was going on."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

import numpy as np

from gpu_report.analyse.timeline import thresholds as th
from gpu_report.analyse.timeline.device_argument import CPU
from gpu_report.analyse.timeline.process_samples import ProcessSample, process_samples_of
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats, GpuSeries, Percents
from gpu_report.analyse.timeseries.intervals import (
    ROWS_AT_ONCE,
    Span,
    Spans,
    intersect,
    mask_in_any,
    minus,
    runs_of,
    union,
)
from gpu_report.median import median_of
from gpu_report.model import EpochRow, InsideRun, Run

# Who a process on a GPU belongs to (schema.PROCESS_OWNERS): the training, or certainly somebody else.
REACHED_SHARE = 0.95  # of readings: what a GPU reaches is what so many are at most
OWN = "trainer"
FOREIGN = ("other", "not visible")


@dataclass(frozen=True)
class Activity:
    """The run's startups and idle spans, in seconds from its start, and the GPUs that it used.

    On `others_gpus` something else worked: they were busy, and the run was not on them.
    """

    startups: tuple[Span, ...]
    idle: tuple[Span, ...]
    used_gpus: frozenset[int]
    others_gpus: frozenset[int] = frozenset()

    def usable(self, series: GpuSeries) -> Bools:
        """Return which readings of a series lie outside startup and idle; none of a GPU that was never used."""
        if series.gpu not in self.used_gpus:
            return np.zeros(len(series.t_s), dtype=bool)
        return outside(series, (*self.startups, *self.idle))


def outside(series: GpuSeries, spans: Spans) -> Bools:
    """Return which readings of a series lie outside all spans."""
    return ~mask_in_any(series.t_s, spans)


def find_activity(run: Run, all_series: Sequence[GpuSeries]) -> Activity:
    """Return when the run worked, from its epochs, its processes or their memory, and utilisation itself."""
    on_cpu, trained = _all_on_cpu(run), _trained_on(run)
    presence = {} if on_cpu else _presence(run)
    there = set(presence) or (trained if _all_said_where(run, trained) else set())
    used = [] if on_cpu else _used(all_series, there)
    said = {calls.gpu for calls in run.calls} | trained  # however seldom: who used it says so
    used += [series for series in all_series if series.gpu in said - {each.gpu for each in used}]
    idle = _idle_spans(run, used, presence)
    commanded = run.began_command
    startups: list[Span] = []
    for begin in _begins(run):
        first = _first_work(begin, used, run.duration_s)
        start = 0.0 if commanded and begin.after_s <= 0 else _starts_at(begin, first, idle)
        idle = union([*idle, (begin.after_s, start)]) if start > begin.after_s == 0 else idle
        startups += [(start, first)] if first > start else []
    used_gpus = frozenset(series.gpu for series in used)
    is_known = on_cpu or bool(used and there)
    of_others = _busy(series for series in all_series if is_known and series.gpu not in used_gpus | there)
    return Activity(tuple(startups), tuple(minus(idle, startups)), used_gpus, of_others)


def _busy(not_ours: Iterable[GpuSeries]) -> frozenset[int]:
    """Return the GPUs, of some that the run was not on, that were busy."""
    return frozenset(each.gpu for each in not_ours if each.mean_util_pct(0.0, np.inf) >= th.UNUSED_PCT)


def _used(all_series: Sequence[GpuSeries], there: Set[int]) -> list[GpuSeries]:
    """Return the GPUs that the run worked on: where it was (`there`), if that is known, and busy more than once.

    Where no GPU was ever busy for long, those that did anything at all, else those that it was on. One that does not
    report utilisation was used where the run has processes on it, or where nothing says that it has none.
    """
    present = [series for series in all_series if not there or series.gpu in there]
    candidates = [series for series in present if len(series.t_s)]
    if not candidates:
        return [series for series in present if len(series.samples)]
    worked = [series for series in candidates if work_begins(series, 0.0, th.LOW_PCT) is not None]
    barely = [series for series in candidates if series.mean_util_pct(0.0, np.inf) >= th.UNUSED_PCT]
    return worked or barely or [series for series in candidates if series.gpu in there]


def _trained_on(run: Run) -> set[int]:
    """Return the GPUs on which a training worked on batches, as its own callbacks say."""
    named = {run.gpu_of_uuid(each.settings.get("gpu_uuid")) for each in _that_trained(run)}
    return {gpu for gpu in named if gpu is not None}


def _that_trained(run: Run) -> list[InsideRun]:
    return [each for each in run.inside if any(phase.name == "train" for phase in each.phases)]


def _all_on_cpu(run: Run) -> bool:
    """Tell whether all that trained said that it was on the CPU: a GPU that was busy meanwhile was another's."""
    ranks = _that_trained(run)
    return (
        bool(ranks) and len(ranks) >= len(run.yolo_runs) and all(each.settings.get("device") == CPU for each in ranks)
    )


def _all_said_where(run: Run, trained: Set[int]) -> bool:
    """Tell whether callbacks name the GPU of each rank of each training."""
    ranks = _that_trained(run)
    sizes = [size for each in ranks if isinstance(size := each.settings.get("world_size"), int)]
    named = all(run.gpu_of_uuid(each.settings.get("gpu_uuid")) is not None for each in ranks)
    is_whole = len(sizes) == len(ranks) >= len(run.yolo_runs) and len(trained) >= max(sizes, default=1)
    return bool(ranks) and named and is_whole


# --- startup --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Begin:
    """A training process: the end of the one before (or of nothing), and from when on it may have trained.

    `args_s` is when it wrote its args.yaml, the first that YOLO does, `row_s` when its first epoch ended; None where
    that is not known. `logged` says that YOLO's own TensorBoard events date its epochs.
    """

    after_s: float
    train_start_s: float
    args_s: float | None = None
    row_s: float | None = None
    logged: bool = False


def _begins(run: Run) -> list[_Begin]:
    """Return the training processes of the recording: runs, and resumes of them.

    A process that was training already when the recording began has no startup. Where no epochs are known the first
    work anywhere ends the only one.
    """
    rows = sorted(run.epoch_rows, key=lambda row: row.row_t_s)
    ends = [row.row_t_s for row in rows]
    firsts: dict[tuple[int, int], EpochRow] = {}
    for row in rows:
        firsts.setdefault((row.run, row.segment), row)
    begins = []
    for first in firsts.values():
        at = bisect_right(ends, first.start_t_s)
        after = ends[at - 1] if at else 0.0
        reported = [y.started_t_s for y in run.yolo_runs if y.number == first.run and y.started_t_s is not None]
        args_s = next((t for t in reported if after <= t <= first.start_t_s), None)
        if first.start_t_s >= 0.0:
            logged = first.trained_t_s is not None
            begins.append(_Begin(after, first.start_t_s, args_s, first.row_t_s, logged))
    begins += [
        _Begin(max((end for end in ends if end <= args_s), default=0.0), args_s, args_s)
        for args_s in unfinished(run).values()
    ]
    return sorted(begins, key=lambda begin: begin.train_start_s) if begins or firsts else [_Begin(0.0, 0.0)]


def unfinished(run: Run) -> dict[int, float]:
    """Return when each YOLO run began that never came to the end of an epoch: number -> time of its args.yaml."""
    return {
        yolo.number: yolo.started_t_s
        for yolo in run.yolo_runs
        if yolo.anchor == "no-epoch" and yolo.started_t_s is not None and 0 <= yolo.started_t_s < run.duration_s
    }


def _first_work(begin: _Begin, used: Sequence[GpuSeries], duration_s: float) -> float:
    """Return when a process first worked on any GPU, the end of the recording if it never did.

    Where no reading shows work, but YOLO's own TensorBoard events do, it is when its first epoch began.
    """
    found = [t for series in used if (t := _first_on(series, begin)) is not None]
    return min(found, default=begin.train_start_s if begin.logged else duration_s)


def _first_on(series: GpuSeries, begin: _Begin) -> float | None:
    """Return when a process first worked on a GPU, by utilisation or by power; None if it never did.

    A rank that waits for another spins at full utilisation, but draws next to nothing: there power has the say. It has
    not where utilisation, too, is higher then: training may be less work than the validation after it.
    """
    by_util = first_work(series, begin.train_start_s)
    by_power = _first_power(series, begin.train_start_s, begin.row_s) if begin.row_s is not None else None
    if by_util is None or by_power is None:
        return by_power if by_util is None else by_util
    late = by_power - by_util > th.BUSY_WITHOUT_POWER_S and not _works(series, by_util, by_power, begin.row_s)
    return by_power if late else min(by_util, by_power)


def _works(series: GpuSeries, start_t_s: float, then_t_s: float, end_t_s: float | None) -> bool:
    """Tell whether a GPU that was busy before a moment worked: it did not spin, as busy as after it with less power."""
    spans = (start_t_s, then_t_s), (then_t_s, end_t_s or math.inf)
    before, after = (_medians(series, span) for span in spans)
    if before is None or after is None or before[0] < th.LOW_PCT:
        return False
    return before[0] < th.SPINS_FROM * after[0] or before[1] > th.SPINS_UP_TO * after[1]


def _medians(series: GpuSeries, span: Span) -> tuple[float, float] | None:
    """Return median utilisation (%) and power above the least (W) in a span, None without readings."""
    util = series.util_pct[series.between(*span)]
    every = series.samples["power_w"].to_numpy(dtype=float)
    power = every[series.between_rows(*span)]
    power = power[np.isfinite(power)]
    return (median_of(util), median_of(power) - float(np.nanmin(every))) if len(util) and len(power) else None


def _first_power(series: GpuSeries, after_s: float, row_s: float) -> float | None:
    """Return when a GPU first drew the power of work after training began, None where power does not tell.

    What it draws with a process on it that waits is the lower quarter of the first epoch, which waits much.
    """
    power = series.samples["power_w"].to_numpy(dtype=float)
    rows = series.between_rows(after_s, row_s)
    known = power[rows][np.isfinite(power[rows])]
    if not len(known):
        return None
    waiting, most = float(np.percentile(known, 25)), float(np.nanpercentile(power, 95))
    at = np.flatnonzero(power[rows] >= waiting + th.WORK_POWER * (most - waiting))
    return float(series.samples["t_s"].to_numpy(dtype=float)[rows][at[0]]) if len(at) and most > waiting else None


def _starts_at(begin: _Begin, first_work_s: float, idle: Sequence[Span]) -> float:
    """Return when a startup began: as its process appears on the GPU, or writes args.yaml, whichever is earlier."""
    quiet = [end for start, end in idle if start >= begin.after_s and end <= first_work_s]
    reported = [max(quiet)] if quiet else []
    return min([*reported, *([begin.args_s] if begin.args_s is not None else [])], default=begin.after_s)


def first_work(series: GpuSeries, after_s: float) -> float | None:
    """Return when a GPU first worked after a moment, None if it never did.

    Busy is LOW_PCT, or half of what the GPU reaches where that is less.
    """
    util = series.util_pct[series.between(after_s, np.inf)]
    if not len(util) or util.max() < th.UNUSED_PCT:
        return None
    bar = max(min(th.LOW_PCT, _reached_pct(util) / 2), th.UNUSED_PCT)
    begun = work_begins(series, after_s, bar)
    return begun if begun is not None else float(series.t_s[series.between(after_s, np.inf)][np.argmax(util >= bar)])


def _reached_pct(util: Percents) -> float:
    """Return what a GPU reaches (%), of what is over twice LOW_PCT only that: to count takes less than a percentile."""
    enough_pct = 2 * th.LOW_PCT
    reaches = np.count_nonzero(util >= enough_pct) > (1 - REACHED_SHARE) * len(util) + 1
    return enough_pct if reaches else float(np.percentile(util, 100 * REACHED_SHARE))


def work_begins(series: GpuSeries, after_s: float, bar_pct: float) -> float | None:
    """Return from when on a GPU was busy WORK_SECONDS out of WORK_WITHIN_S (and WORK_READINGS times), None if never."""
    first, last = series.between(after_s, np.inf).indices(len(series.t_s))[:2]
    ahead = max(th.WORK_READINGS, round(th.WORK_SECONDS / series.interval_s)) - 1
    within = max(th.WORK_WITHIN_S, (ahead + 1) * series.interval_s)
    looked_at = 0
    while looked_at < last - first:  # work begins early, nearly always: what comes first is looked at first
        looked_at = min(max(ROWS_AT_ONCE, 8 * looked_at), last - first)
        part = slice(first, first + looked_at)
        busy = series.t_s[part][series.util_pct[part] >= bar_pct]
        close = busy[ahead:] - busy[: max(len(busy) - ahead, 0)] <= within
        if close.any():
            return float(busy[np.argmax(close)])
    return None


# --- idle -----------------------------------------------------------------------------------------------------


def _presence(run: Run) -> dict[int, list[Span]]:
    """Return, for each GPU, when a process of this run was on it; empty where processes are not known."""
    if run.processes.empty:
        return {}
    own = _own_pids(run)
    spans: dict[int, list[Span]] = {}
    open_since: dict[tuple[int, int], float] = {}
    for look in process_samples_of(run):
        if look.pid in own and look.change == "gone":
            spans.setdefault(look.gpu, []).append((open_since.pop((look.gpu, look.pid), 0.0), look.t_s))
        elif look.pid in own:
            open_since.setdefault((look.gpu, look.pid), look.t_s)
    for (gpu, _), since in open_since.items():
        spans.setdefault(gpu, []).append((since, run.duration_s))
    return spans


def _own_pids(run: Run) -> set[int]:
    """Return the processes of this run: the training's, and those that nobody knows the owner of.

    Where no owner is known at all, a process that was there at the first look belongs to somebody else, unless none
    came later: then the recording began in the middle of the training.
    """
    trains: set[int] = set()
    appeared: list[ProcessSample] = []
    for look in process_samples_of(run):
        if look.owner == OWN:
            trains.add(look.pid)
        if look.change == "appeared":
            appeared.append(look)
    candidates = [look for look in appeared if look.t_s > th.FIRST_LOOK_S] or appeared
    if not trains:
        return {look.pid for look in candidates}
    return trains | {look.pid for look in candidates if look.owner not in {OWN, *FOREIGN}}


def _idle_spans(run: Run, used: Sequence[GpuSeries], presence: dict[int, list[Span]]) -> list[Span]:
    """Return when no process of the run was on any GPU that it used, and what follows the end of the command."""
    per_gpu = [_absent(series, presence, run.duration_s) for series in used]
    spans = per_gpu[0] if per_gpu else []
    for other in per_gpu[1:]:
        spans = intersect(spans, other)
    begun = [event.t_s for event in run.events if event.kind == "recording_started"]
    for ended_s in (event.t_s for event in run.command_ends):
        # a later recording into the same folder watches something else
        spans = [*spans, (ended_s, min((t_s for t_s in begun if t_s > ended_s), default=run.duration_s))]
    return [(a, b) for a, b in union(spans) if b - a >= th.IDLE_AT_LEAST_S]


def _absent(series: GpuSeries, presence: dict[int, list[Span]], duration_s: float) -> list[Span]:
    """Return when the run had no process on a GPU: as its processes tell, else as the GPU's memory does."""
    if series.gpu not in presence:  # none is known, or only who used it says that it was
        return _empty_spans(series)
    # the list of processes is read every few seconds: one may have come, and its memory been seen, a little before
    present = [(start - th.PROCESSES_EVERY_S, end) for start, end in presence[series.gpu]]
    return minus([(0.0, duration_s)], present)


def _empty_spans(series: GpuSeries) -> list[Span]:
    """Return when a GPU's memory was as empty as it ever was; nothing where that cannot be reported."""
    memory = series.samples["memory_used_mib"].to_numpy(dtype=float)
    times = series.samples["t_s"].to_numpy(dtype=float)
    busy = memory[series.samples["gpu_util_pct"].to_numpy(dtype=float) >= th.LOW_PCT]
    if not np.isfinite(memory).any() or not np.isfinite(busy).any():
        return []
    least = float(np.nanmin(memory))
    if least > th.IDLE_MEMORY_SHARE * float(np.nanmedian(busy)):
        return []
    empty = memory <= least + th.IDLE_MEMORY_SLACK_MIB
    ends: Floats = times + series.sample_weight_s
    return [(float(times[a]), float(ends[b - 1])) for a, b in zip(*runs_of(empty), strict=True)]

"""What calls had to share: Python and the GPU with other calls, the GPU with another process, a few CPU cores.

Each part of a call then contains waiting for that, so that no part of it is what makes the call slow.
"""

from typing import NamedTuple

import numpy as np

from gpu_report.analyse.causes import thresholds as causes_th
from gpu_report.analyse.context import Context
from gpu_report.analyse.inference.call_time import MS, call_spans, seconds_of
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.signals.host.other_processes import OtherProcess, share_of_others
from gpu_report.analyse.timeseries.columns import column_mean
from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.analyse.timeseries.intervals import Span, mask_in_any
from gpu_report.model import ModelCalls, ServedModel


class FullCores(NamedTuple):
    """The cores that a program may use and fills, of those of the machine, and how much of a core it uses (%).

    `pinned`: it may use fewer than the recorder, so that it, or what starts it, has set its affinity.
    """

    usable: float
    there: int
    pinned: bool
    cpu_pct: float
    pressure_pct: float


def cpu_is_its_own(context: Context, served: ServedModel) -> bool:
    """Tell whether what calls do on the CPU is as long as it need be: no other call runs Python, no core is lacking."""
    alone = context.cached(calls_at_once, served.calls.pid, served) < th.CALLS_AT_ONCE
    return alone and context.cached(full_cores, served) is None


def parts_are_its_own(context: Context, served: ServedModel) -> bool:
    """Tell whether all parts of a model's calls are their own work: nothing that they share makes them longer."""
    if not cpu_is_its_own(context, served) or context.cached(calls_at_once, None, served) >= th.CALLS_AT_ONCE:
        return False
    taken = max(context.cached(taken_by_others, served), context.cached(busy_without_calls, served))
    return taken < th.CALLS_LOST_SHARE


def calls_at_once(context: Context, pid: int | None, served: ServedModel) -> float:
    """Return how many calls of a process went on at once, on average, while a model was called.

    Of no process in particular (None): how many on its GPU.
    """
    called = call_spans(served.steady_calls)
    cover, length_s = interval_cover(called), seconds_of(called)
    mine = [c for c in context.run.calls if (c.pid == pid if pid is not None else c.gpu == served.calls.gpu)]
    seconds = sum(float(cover.seconds_in_each(np.column_stack([c.start_s, c.end_s])).sum()) for c in mine)
    return seconds / length_s if length_s > 0 else 0.0


def others_on_its_gpu(context: Context, served: ServedModel) -> list[OtherProcess]:
    """Return the other processes that worked on a model's GPU while it was called."""
    begin_s, end_s = served.start_s, served.end_s
    there = [each for each in context.used_by_others if each.gpu == served.calls.gpu]
    return [each for each in there if each.span[0] < end_s and each.span[1] > begin_s]


def taken_by_others(context: Context, served: ServedModel) -> float:
    """Return which share (0 to 1) of the time of a model's calls its GPU worked for other processes."""
    series = context.series_if_read(served.calls.gpu)
    others = others_on_its_gpu(context, served)
    if series is None or not others:
        return 0.0
    there = mask_in_any(series.t_s, [(served.start_s, served.end_s)])
    seconds = series.weight_s[there]
    work = share_of_others(context.run, series, others)[there] * series.util_pct[there].astype(float) / 100
    return float((seconds * work).sum() / seconds.sum()) if seconds.sum() > 0 else 0.0


def busy_without_calls(context: Context, served: ServedModel) -> float:
    """Return for which share (0 to 1) of the time in which no call can use a model's GPU it was busy all the same.

    The driver may hide another process, as in a container. Calls may use it from the end of their pre-processing on,
    which is the CPU's work, and your own code between calls may. 0 where others are seen to work there, or YOLO did
    something else than predict, or that time is too short to tell.
    """
    series = context.series_if_read(served.calls.gpu)
    begin_s, end_s = served.start_s, served.end_s
    length_s = end_s - begin_s
    only_calls = all(run.task == "predict" for run in context.run.inside)
    if series is None or not len(series.t_s) or not only_calls or others_on_its_gpu(context, served):
        return 0.0
    busy_s = min(series.mean_util_pct(begin_s, end_s) / 100, 1.0) * length_s
    mine = [each for each in context.run.calls if each.gpu == served.calls.gpu]
    may_use = interval_cover(np.concatenate([_may_use_gpu(each) for each in mine])).seconds_in((begin_s, end_s))
    own_code_s = sum(part.seconds for part in served.gap_parts if part.kind == "own code")
    rest_s, beyond_s = length_s - may_use - own_code_s, busy_s - may_use - own_code_s
    if not np.isfinite(beyond_s) or beyond_s < th.TAKEN_FROM_CALLS * length_s:
        return 0.0
    return min(beyond_s / rest_s, 1.0)


def _may_use_gpu(calls: ModelCalls) -> Floats:
    """Return when calls may use the GPU, as rows of (start, end): after pre-processing, where that is known."""
    begin_s = calls.start_s + np.nan_to_num(calls.preprocess_ms) / MS
    return np.column_stack([np.minimum(begin_s, calls.end_s), calls.end_s])


def full_cores(context: Context, served: ServedModel) -> FullCores | None:
    """Return the cores that a program fills while its threads wait for them, None where it may use all there are.

    Of several processes that call models nobody knows whose readings these are.
    """
    span, recording = (served.start_s, served.end_s), context.run.recording
    there, cpu_pct = recording.cores_online or recording.cores, _cpu_pct(context, span)
    own, allowed = _mean(context, "main_cores", span), recording.usable_cores
    usable = min((cores for cores in (own, allowed) if cores), default=None)
    pressure = _pressure_pct(context, span)
    alone = len({each.pid for each in context.run.calls}) == 1
    if not alone or there is None or usable is None or cpu_pct is None or pressure is None or usable >= there:
        return None
    full = cpu_pct >= causes_th.OWN_CORES_PCT * usable and pressure >= causes_th.CPU_PRESSURE_PCT
    pinned = own is not None and allowed is not None and own < allowed
    return FullCores(usable, there, pinned, cpu_pct, pressure) if full else None


def _cpu_pct(context: Context, span: Span) -> float | None:
    main = _mean(context, "main_cpu_pct", span)
    return None if main is None else main + (_mean(context, "workers_cpu_pct", span) or 0.0)


def _pressure_pct(context: Context, span: Span) -> float | None:
    """Return how much of the time a process waited for a core: in its cgroup where that is known, else anywhere."""
    own = _mean(context, "cgroup_cpu_pressure_pct", span)
    return _mean(context, "cpu_pressure_pct", span) if own is None else own


def _mean(context: Context, column: str, span: Span) -> float | None:
    return column_mean(context.run.host, column, [span])

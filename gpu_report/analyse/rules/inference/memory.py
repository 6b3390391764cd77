"""Rule: memory grows from call to call: something of each result is kept."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gpu_report.analyse.causes.confidence import LIKELY
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.inference.served import judged_models
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.analyse.timeseries.growth_fit import fit_growth
from gpu_report.gpu_words import gpu_words
from gpu_report.model import Advice, Cause, Finding, ServedModel
from gpu_report.wording import gib, length, memory_words

POINTS = 60  # medians of memory over all calls: enough for a line, few enough for all pairs of corners
FEWEST = 12  # readings: of fewer no line can be told from a step
ON_GPU = "Find what keeps tensors of each call (a list of results, a callback), or take them off the GPU: `.cpu()`"
ON_HOST = "Keep no list of results: `stream=True` returns them one by one, and each is freed when you are done with it"
LONGER = f"Record {th.LIMITED_CALLS:,} calls or more: a leak goes on, and a buffer with a limit is full by then"
WHY = "memory rises with the calls and is not given back"


class _RiseOverCalls(NamedTuple):
    """A rise over the calls of some models (MiB), and when it was looked for."""

    models: list[ServedModel]
    before_mib: float
    rise_mib: float
    start_s: float
    end_s: float


def growing_memory_of_calls(context: Context) -> list[Finding]:
    """Report GPUs, and the host, whose memory rises over the calls of models and goes on rising at their end.

    Of the host it is the memory of the processes that call; in recordings without it, that of all programs.
    """
    served = context.cached(judged_models)
    if any(run.task == "train" for run in context.run.inside):
        return []  # growth over epochs is another rule's
    gpus = sorted({each.calls.gpu for each in served if each.calls.gpu is not None})
    found = [finding for gpu in gpus for finding in _of_gpu(context, gpu, served)]
    return found or list(_of_host(context, served))


def _of_gpu(context: Context, gpu: int, served: tuple[ServedModel, ...]) -> Iterator[Finding]:
    series = context.series_if_read(gpu)
    mine = [each for each in served if each.calls.gpu == gpu]
    if series is None:
        return
    memory = context.gpu_memory(series)
    rise = _rise(memory.t_s, memory.used_mib, mine)
    if rise is None or rise.rise_mib < max(th.GROWN_MIB, th.GROWN_SHARE * rise.before_mib):
        return
    left = None if memory.capacity_mib is None else memory.capacity_mib - rise.before_mib - rise.rise_mib
    yield _finding(context, rise, left, gpu)


def _of_host(context: Context, served: tuple[ServedModel, ...]) -> Iterator[Finding]:
    host = context.run.host
    if not len(host):
        return
    used = host["trainer_memory_mib"].to_numpy(dtype=float)
    used = used if np.isfinite(used).any() else host["memory_used_mib"].to_numpy(dtype=float)
    rise = _rise(host["t_s"].to_numpy(dtype=float), used, list(served))
    if rise is not None and rise.rise_mib >= max(th.GROWN_HOST_MIB, th.GROWN_SHARE * rise.before_mib):
        left = float(host["memory_available_mib"].to_numpy(dtype=float)[-1])
        yield _finding(context, rise, left if np.isfinite(left) else None, None)


def _rise(t_s: Floats, mib: Floats, mine: list[ServedModel]) -> _RiseOverCalls | None:
    """Return the rise of memory over some models' calls, None where it does not rise, or has stopped."""
    start_s, end_s = min(each.start_s for each in mine), max(each.end_s for each in mine)
    rows = (t_s >= start_s) & (t_s <= end_s) & np.isfinite(mib)
    if int(rows.sum()) < FEWEST:
        return None
    blocks = np.array_split(np.flatnonzero(rows), min(POINTS, int(rows.sum())))
    x = np.array([float(np.median(t_s[block])) for block in blocks])
    y = np.array([float(np.median(mib[block])) for block in blocks])
    fit = fit_growth(x, y)
    third = len(y) - max(len(y) // 3, 2)
    if fit is None or fit.fit < th.GROWTH_FIT or y[-1] - y[third] < th.GROWTH_GOES_ON * fit.rise:
        return None
    return _RiseOverCalls(mine, fit.before, fit.rise, start_s, end_s)


def _finding(context: Context, rise: _RiseOverCalls, left_mib: float | None, gpu: int | None) -> Finding:
    calls = sum(each.latency.calls for each in rise.models)
    what = "The host's memory" if gpu is None else f"{gpu_words(gpu)}'s memory"
    full_s = None if left_mib is None else max(left_mib, 0.0) * (rise.end_s - rise.start_s) / rise.rise_mib
    unsure = _may_be_bounded(rise, calls, full_s)
    fix = LONGER if unsure else ON_HOST if gpu is None else ON_GPU
    soon = full_s is not None and full_s < th.FULL_SOON_S
    return context.finding(
        "host-memory-growth" if gpu is None else "memory-growth",
        "info" if unsure else "critical" if soon else "warning",
        (rise.start_s, rise.end_s),
        f"{what} grew by {_growth(rise, calls, full_s, unsure=unsure)}",
        gpu=gpu,
        evidence=evidence(
            ("memory before", gib(rise.before_mib), "GiB"),
            ("growth in all", gib(rise.rise_mib), "GiB"),
            ("growth per call", rise.rise_mib / calls, "MiB"),
            ("calls", calls, ""),
            ("full after the last call, at this rate", full_s, "s"),
        ),
        cause=Cause("memory-growth", LIKELY, WHY),
        advice=(Advice(fix, short=fix),),
    )


def _may_be_bounded(rise: _RiseOverCalls, calls: int, full_s: float | None) -> bool:
    """Tell whether what grew may be a container with a limit, such as `deque(maxlen=100)`, that has not filled.

    Nobody sees a limit that was not reached. After many calls it should have been; and where memory is full soon, by
    what was seen, it hardly comes before that.
    """
    seen_s = rise.end_s - rise.start_s
    return calls < th.LIMITED_CALLS and (full_s is None or full_s > th.FULL_TIMES_SEEN * seen_s)


def _growth(rise: _RiseOverCalls, calls: int, full_s: float | None, *, unsure: bool) -> str:
    """Return by how much memory grew, and what comes of it."""
    if unsure:
        return f"{memory_words(rise.rise_mib)} over {calls:,} calls: a leak, or a buffer that is not full yet"
    full = "" if full_s is None else f": at this rate it is full {length(full_s)} after the last call"
    return f"{memory_words(1000 * rise.rise_mib / calls)} every 1,000 calls{full}"

"""Rule: the GPUs of one training are far apart, in utilisation or in memory, and which of them is late."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from gpu_report.analyse.causes.confidence import POSSIBLE
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats, GpuSeries
from gpu_report.analyse.timeseries.intervals import Span, Spans, as_array, mask_in_any
from gpu_report.analyse.timeseries.weighted_stats import weighted_stats
from gpu_report.gpu_words import gpu_words
from gpu_report.model import Cause, Evidence, Finding, Severity
from gpu_report.wording import gib, memory_words

WORK = ("tensor_active_pct", "power_w")  # what tells work from a kernel that only waits, the better one first
RULE = "imbalance"

_Said = tuple[Severity, str]


@dataclass(frozen=True)
class _Share:
    """What one GPU did in the steady state: means of utilisation (%) and of WORK, its typical memory (MiB)."""

    gpu: int
    util_pct: float
    work: dict[str, float]
    memory_mib: float | None


def uneven_gpus(context: Context) -> list[Finding]:
    """Report trainings on several GPUs that are far apart throughout, in utilisation (a warning) or memory (a note).

    Ordinary training is looked at: what a drop, another process or a wait for a peer explains is no part of it.
    """
    return [
        _finding(context, _since(used, spans, shares, said), shares, said)
        for used, spans, shares in _measured(context)
        if (said := _judge(used, spans, shares)) is not None
    ]


def peer_waits(context: Context) -> dict[int, tuple[Spans, float]]:
    """Return the GPUs that spin for the late one of their training: in which spans, and for which share (0 to 1).

    The share is of the time that each reads as busy. Ranks of one training have as many images each, so that what is
    busy for longer than the late one, without more work, waits in the exchange of gradients.
    """
    found: dict[int, tuple[Spans, float]] = {}
    for used, spans, shares in _measured(context):
        for share in shares:
            least = min(shares, key=lambda each: each.util_pct)
            ahead = share.util_pct - least.util_pct >= th.IMBALANCE_POINTS
            if ahead and _only_waits(least, share) and _throughout(used, spans, least.gpu, share.gpu):
                found[share.gpu] = as_array(spans), 1 - least.util_pct / share.util_pct
    return found


def _measured(context: Context) -> Iterator[tuple[list[GpuSeries], list[Span], list[_Share]]]:
    """Yield each training on several GPUs: their series, the spans of its steady state, what each GPU did in them."""
    for training in context.trainings:
        spans = training.within(context.signals.steady)
        if training.steps_together and sum(b - a for a, b in spans) >= th.IMBALANCE_AT_LEAST_S:
            used = [series for series in context.series if series.gpu in training.gpus]
            yield used, list(spans), [share for each in used if (share := _share(context, each, spans)) is not None]


def _judge(used: Sequence[GpuSeries], spans: Sequence[Span], shares: Sequence[_Share]) -> _Said | None:
    """Return what is to be said of a training, of utilisation before memory; None where all is even."""
    if len(shares) < 2:
        return None
    least, most = _ends_of(shares)
    if most.util_pct - least.util_pct >= th.IMBALANCE_POINTS and _throughout(used, spans, least.gpu, most.gpu):
        return "warning", _which(least, most)
    uneven = _uneven_memory(shares)
    return ("info", uneven) if uneven else None


def _ends_of(shares: Sequence[_Share]) -> tuple[_Share, _Share]:
    """Return the GPUs that were least and most busy."""
    return min(shares, key=lambda each: each.util_pct), max(shares, key=lambda each: each.util_pct)


def _share(context: Context, series: GpuSeries, spans: Sequence[Span]) -> _Share | None:
    util_pct, seconds = series.mean_util_in(spans)
    if seconds < th.IMBALANCE_AT_LEAST_S:
        return None
    rows = mask_in_any(series.samples["t_s"].to_numpy(dtype=float), spans)
    means = {
        name: weighted_stats(series.samples[name].to_numpy(dtype=float)[rows], series.sample_weight_s[rows])
        for name in WORK
    }
    own = context.gpu_memory(series).own_mib[rows]
    memory = float(np.nanmedian(own)) if np.isfinite(own).any() else None
    return _Share(series.gpu, util_pct, {name: stats.mean for name, stats in means.items() if stats}, memory)


def _throughout(used: Sequence[GpuSeries], spans: Sequence[Span], least: int, most: int) -> bool:
    """Tell whether one GPU is ahead of another by IMBALANCE_POINTS in most of the windows of the steady state."""
    _, is_apart, lengths_s = _where_ahead(used, spans, least, most)
    seen_s = float(lengths_s.sum())
    return seen_s > 0 and float(lengths_s[is_apart].sum()) >= th.IMBALANCE_SHARE * seen_s


def _where_ahead(
    used: Sequence[GpuSeries], spans: Sequence[Span], least: int, most: int
) -> tuple[list[Span], Bools, Floats]:
    """Return the windows of the steady state in which both GPUs were read, where one is ahead, and their seconds."""
    all_series = {series.gpu: series for series in used}
    windows = _windows(spans)
    points = all_series[most].mean_util_of_each(windows) - all_series[least].mean_util_of_each(windows)
    seen = np.isfinite(points)
    known = [window for window, is_seen in zip(windows, seen, strict=True) if is_seen]
    return known, points[seen] >= th.IMBALANCE_POINTS, np.array([end - start for start, end in known])


def _since(used: Sequence[GpuSeries], spans: Sequence[Span], shares: Sequence[_Share], said: _Said) -> Span:
    """Return from when to when GPUs are far apart: in utilisation where most windows show it, in memory throughout."""
    if said[0] == "info":
        return spans[0][0], spans[-1][1]
    least, most = _ends_of(shares)
    windows, is_apart, lengths_s = _where_ahead(used, spans, least.gpu, most.gpu)
    first, last = _densest(np.where(is_apart, lengths_s, -lengths_s))
    return windows[first][0], windows[last][1]


def _densest(values: Floats) -> tuple[int, int]:
    """Return the first and last index of the part of some values whose sum is largest."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    least = np.minimum.accumulate(sums[:-1])
    last = int(np.argmax(sums[1:] - least))
    return int(np.argmin(sums[: last + 1])), last


def _windows(spans: Sequence[Span]) -> list[Span]:
    """Return spans cut into windows of about IMBALANCE_WINDOW_S, at most."""
    found: list[Span] = []
    for start, end in spans:
        edges = np.linspace(start, end, int(np.ceil((end - start) / th.IMBALANCE_WINDOW_S)) + 1).tolist()
        found += pairwise(edges)
    return found


def _which(least: _Share, most: _Share) -> str:
    """Return which GPU is late, where work is known of both: a rank that waits spins, busy and without work."""
    waits = _only_waits(least, most)
    if waits:
        shown = f"{gpu_words(most.gpu)} as {most.util_pct:.0f} % busy, {gpu_words(least.gpu)} as {least.util_pct:.0f} %"
        return f"{gpu_words(most.gpu)} waits for {gpu_words(least.gpu)}: nvidia-smi shows {shown}"
    why = "utilisation alone does not show which of them is late"
    why = why if waits is None else f"{gpu_words(most.gpu)} does more of the work"
    busy = f"{gpu_words(most.gpu)} was busy {most.util_pct:.0f} % of steady-state training, {gpu_words(least.gpu)}"
    return f"{busy} {least.util_pct:.0f} %: {why}"


def _only_waits(least: _Share, most: _Share) -> bool | None:
    """Tell whether the busier GPU does no more work than the other, None where work is not known of both."""
    name = next((name for name in WORK if name in least.work and name in most.work), None)
    return None if name is None else most.work[name] < th.MORE_WORK * least.work[name]


def _uneven_memory(shares: Sequence[_Share]) -> str:
    """Return in words that GPUs hold amounts of memory that are far apart, empty where they do not."""
    known = [(share.memory_mib, share.gpu) for share in shares if share.memory_mib is not None]
    for (less, lower), (more, upper) in combinations(sorted(known), 2):
        if more - less >= max(th.UNEVEN_MEMORY_SHARE * more, th.UNEVEN_MEMORY_MIB):
            most, least = (f"{memory_words(mib)} on {gpu_words(gpu)}" for mib, gpu in ((more, upper), (less, lower)))
            held = f"The training holds {most} and {least}"
            return f"{held}: the fuller one limits the batch"
    return ""


def _finding(context: Context, span: Span, shares: Sequence[_Share], said: _Said) -> Finding:
    severity, text = said
    return context.finding(
        RULE,
        severity,
        span,
        text,
        evidence=tuple(fact for share in shares for fact in _facts(share)),
        cause=Cause(RULE, POSSIBLE, "every step takes as long as the slowest GPU"),
        epoch=None,
        phase=None,
    )


def _facts(share: _Share) -> tuple[Evidence, ...]:
    return evidence(
        (f"utilisation of {gpu_words(share.gpu)} (mean)", share.util_pct, "%"),
        (f"power of {gpu_words(share.gpu)}", share.work.get("power_w"), "W"),
        (f"tensor activity of {gpu_words(share.gpu)}", share.work.get("tensor_active_pct"), "%"),
        (f"memory of the training on {gpu_words(share.gpu)}", gib(share.memory_mib), "GiB"),
    )

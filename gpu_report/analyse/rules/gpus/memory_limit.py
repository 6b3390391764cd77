"""Rule: hardly any memory of a GPU was left, and whose the rest was."""

import numpy as np

from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.signals.gpu.gpu_memory import GpuMemory
from gpu_report.analyse.timeseries.gpu_series import GpuSeries
from gpu_report.analyse.timeseries.intervals import Span, minus, union
from gpu_report.analyse.timeseries.thresholds import READING_SLACK, STRAY_S
from gpu_report.gpu_words import gpu_words
from gpu_report.model import AT_EPOCH_END, GPUS, Evidence, Finding, Severity
from gpu_report.wording import gib, length, memory_words


def full_memory(context: Context) -> list[Finding]:
    """Report each used GPU of which NEAR_LIMIT_PCT or more of the memory were in use for NEAR_LIMIT_S, once."""
    found: list[Finding] = []
    for series in context.used_series:
        memory = context.gpu_memory(series)
        spans = near_limit(memory, series, context.activity.idle)
        if any(end - start >= th.NEAR_LIMIT_S for start, end in spans):
            found.append(_finding(context, memory, spans))
    return found


def near_limit(memory: GpuMemory, series: GpuSeries, idle: tuple[Span, ...]) -> list[Span]:
    """Return when a GPU was nearly full outside idle time, joined across STRAY_S; empty where its size is not known.

    It is not known where more was in use than it says.
    """
    if memory.capacity_mib is None or (memory.used_mib > th.IMPOSSIBLE_MEMORY_PCT / 100 * memory.capacity_mib).any():
        return []
    full = memory.used_mib >= th.NEAR_LIMIT_PCT / 100 * memory.capacity_mib
    ends_s = memory.t_s + series.sample_weight_s
    held = zip(memory.t_s[full].tolist(), (ends_s[full] + STRAY_S).tolist(), strict=True)
    spans = minus([(start, end - STRAY_S) for start, end in union(list(held))], idle)
    # where readings are far apart, what idle time leaves of one may be long and hold none
    return [span for span in spans if np.isfinite(memory.used_mib[memory.between(*span)]).any()]


def _finding(context: Context, memory: GpuMemory, spans: list[Span]) -> Finding:
    start_s, end_s = max(spans, key=lambda span: span[1] - span[0])
    rows = memory.between(start_s, end_s)
    peak = float(np.nanmax(memory.used_mib[rows]))
    capacity = memory.capacity_mib or peak
    others = None if memory.others_mib is None else float(np.nan_to_num(memory.others_mib[rows]).max(initial=0.0))
    whose = f", {memory_words(others)} used by other processes" if others else ""
    full = f"{100 * peak / capacity:.0f} % full for {length(end_s - start_s)}: "
    full += f"{peak / 1024:.1f} of {memory_words(capacity)}{whose}"
    return context.finding(
        "memory-near-limit",
        _severity(context, memory, spans, others),
        (start_s, end_s),
        f"{gpu_words(memory.gpu)}'s memory was {full}",
        gpu=memory.gpu,
        of_gpus=f"The memory of each of {GPUS} was {full}",
        evidence=_evidence(context, memory, spans, peak, others),
    )


def _severity(context: Context, memory: GpuMemory, spans: list[Span], others_mib: float | None) -> Severity:
    """Return a note where only ends of epochs filled the card with what is the training's own, or it ended well.

    Each validation has the same batches, so that what fitted once fits again; batches of training vary, but in all of
    its epochs they fitted. Seen from outside, the edges of an end are known to a reading.
    """
    ends = union([phase.span for phase in context.phases if phase.name in AT_EPOCH_END])
    edge_s = (1 + READING_SLACK) * context.series_of(memory.gpu).interval_s
    trained = any(end - start >= max(th.NEAR_LIMIT_S, edge_s) for start, end in minus(spans, ends))
    torn = _retries(context, memory.gpu, spans[-1][1])
    training = context.training_at(spans[-1][0], memory.gpu)
    fitted = training is not None and training.rank_group is not None and training.rank_group.is_good
    return "warning" if (trained and not fitted) or others_mib or torn else "info"


def _retries(context: Context, gpu: int, at_s: float) -> float | None:
    """Return how often torch flushed what it kept (its `num_alloc_retries`), None where callbacks tell of none."""
    training = context.training_at(at_s, gpu)
    return training.quantity("memory_retries") if training else None


def _evidence(
    context: Context, memory: GpuMemory, spans: list[Span], peak_mib: float, others_mib: float | None
) -> tuple[Evidence, ...]:
    start_s, end_s = max(spans, key=lambda span: span[1] - span[0])
    there = [g for g in context.other_processes if g.gpu == memory.gpu and g.span[0] < end_s and g.span[1] > start_s]
    largest = max(there, key=lambda other: other.memory_mib or 0.0, default=None)
    own = None if others_mib is None else peak_mib - others_mib
    return (
        *evidence(
            ("memory in use (peak)", gib(peak_mib), "GiB"),
            ("capacity of the GPU", gib(memory.capacity_mib), "GiB"),
            ("of it the training's", gib(own), "GiB"),
            ("of it other processes'", gib(others_mib) if others_mib else None, "GiB"),
            ("times PyTorch emptied its cache to get memory (retries)", _retries(context, memory.gpu, end_s), ""),
        ),
        *([Evidence(f"the largest of them: {largest.who}", gib(largest.memory_mib), "GiB")] if largest else []),
        Evidence(f"time over {th.NEAR_LIMIT_PCT:.0f} % in all", sum(b - a for a, b in spans), "s"),
    )

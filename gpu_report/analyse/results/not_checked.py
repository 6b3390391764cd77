"""What this recording cannot show, by rule: silence about it is no good news."""

from collections.abc import Iterator, Sequence

import numpy as np

from gpu_report import schema
from gpu_report.analyse.context import Context
from gpu_report.analyse.rules.thresholds import NEAR_LIMIT_S
from gpu_report.analyse.signals.thresholds import LOW_AT_LEAST_S, LOW_READINGS, LOWER_AT_LEAST_S, THROTTLED_AT_LEAST_S
from gpu_report.analyse.timeline.phases import PLACED_S
from gpu_report.analyse.timeseries.gpu_series import GpuSeries
from gpu_report.catalogue import WAITING_FOR_PEER
from gpu_report.model import NotChecked
from gpu_report.wording import length

BY_UTILISATION = ("drop", "starved", "imbalance")
# By rule: the shortest that it reports (s), and how many GPUs it is about. Drops have a limit of their own.
LEAST_S = {
    "power-cap": (THROTTLED_AT_LEAST_S, 1),
    "thermal": (THROTTLED_AT_LEAST_S, 1),
    "lower-clock": (LOWER_AT_LEAST_S, 1),
    "memory-near-limit": (NEAR_LIMIT_S, 1),
    WAITING_FOR_PEER: (LOW_AT_LEAST_S, 2),
}

_SCRAPED = {
    schema.SOURCE_OF_DCGM: "let dcgm-exporter collect and Prometheus scrape",
    schema.SOURCE_OF_SMI_EXPORTER: "let Prometheus scrape",
}


def not_checked(context: Context) -> tuple[NotChecked, ...]:
    """Return which rules could not look, or not closely enough, each with the reason."""
    used = context.used_series or list(context.series)
    return (
        *_utilisation(context, used),
        *_epochs(context),
        *_drops(context, used),
        *_moments(used),
        *_waits(used),
        *_processes(context),
        *_kernel(context),
    )


def _utilisation(context: Context, used: Sequence[GpuSeries]) -> Iterator[NotChecked]:
    """Yield what needs utilisation, where no GPU that was used reports it."""
    if used and not any(len(series.t_s) for series in used):
        reason = _without_utilisation(context)
        yield from (NotChecked(rule, reason) for rule in BY_UTILISATION)


def _without_utilisation(context: Context) -> str:
    if context.run.recording.source == schema.SOURCE_OF_TRACES:
        return "no GPU readings were recorded with the trace"
    unread = any(e.kind == "nvml_error" and e.fields.get("quantity") == "gpu_util_pct" for e in context.run.events)
    if _is_recorded(context) or unread:
        return "this GPU, or its driver, does not report utilisation"
    return "the log has no utilisation; log it as well"


def _epochs(context: Context) -> Iterator[NotChecked]:
    """Yield what cannot be judged where epochs are too short for the readings to show a validation in them."""
    if not context.too_coarse:
        return
    rows = [end.row for end in context.epoch_ends.all]
    epoch_s = float(np.median([row.row_t_s - row.start_t_s for row in rows]))
    interval_s = max(series.interval_s for series in context.used_series)
    apart = f" {length(interval_s)} apart" if interval_s >= 1 else ""
    off_s = max((yolo.uncertainty_s or 0.0 for yolo in context.run.yolo_runs), default=0.0)
    if off_s > PLACED_S:
        reason, way_out = f"when epochs ended is known to {length(off_s)} only", "import again with --train-start TIME"
        yield from (NotChecked(rule, f"{reason}; {way_out}") for rule in BY_UTILISATION)
        return
    reason = f"readings{apart} are too far apart to separate training from validation in epochs of {length(epoch_s)}"
    way_out = "use a shorter --interval" if _is_recorded(context) else f"{_logging(context)} more often"
    yield from (NotChecked(rule, f"{reason}; {way_out}") for rule in BY_UTILISATION)


def _drops(context: Context, used: Sequence[GpuSeries]) -> Iterator[NotChecked]:
    """Yield how short a drop may be without being seen: it takes LOW_READINGS readings to see one."""
    seen_s = LOW_READINGS * max((series.interval_s for series in used if len(series.t_s)), default=0.0)
    if seen_s > context.options.drop_seconds:
        why = f"drops under {length(seen_s)} cannot be seen in readings {length(seen_s / LOW_READINGS)} apart"
        every = f"{context.options.drop_seconds / LOW_READINGS:.0f}"
        way_out = f"record with --interval {every}" if _is_recorded(context) else f"{_logging(context)} every {every} s"
        yield NotChecked("drop", f"{why}; {way_out}", seen_s)


def _moments(used: Sequence[GpuSeries]) -> Iterator[NotChecked]:
    """Yield which rules look for what is over before readings so far apart show it LOW_READINGS times."""
    interval_s = max((series.interval_s for series in used), default=0.0)
    seen_s = LOW_READINGS * interval_s
    reason = f"what lasts less than {length(seen_s)} cannot be seen in readings {length(interval_s)} apart"
    for rule, (least_s, gpus) in LEAST_S.items():
        if seen_s > least_s and len(used) >= gpus:
            yield NotChecked(rule, reason, seen_s)


def _processes(context: Context) -> Iterator[NotChecked]:
    """Yield that others on the GPU may have gone unseen, where an imported log has no processes."""
    if not _is_recorded(context) and context.run.processes.empty and context.activity.used_gpus:
        yield NotChecked("other-process", "the log has no processes; a log of `nvidia-smi pmon` has them")


def _is_recorded(context: Context) -> bool:
    """Tell whether gpu-report recorded the run, whose options it then takes; another tool's log was imported."""
    return context.run.recording.is_ours


def _logging(context: Context) -> str:
    """Return what the log's tool does at each reading: Prometheus has no newer one than what it scraped."""
    return _SCRAPED.get(context.run.recording.source, "log")


def _waits(used: Sequence[GpuSeries]) -> Iterator[NotChecked]:
    """Yield that a rank's wait for another reads as work, where power is not reported."""
    without = [series for series in used if not np.isfinite(series.samples["power_w"].to_numpy(dtype=float)).any()]
    if len(used) > 1 and without:
        yield NotChecked(WAITING_FOR_PEER, "without power readings, a GPU that waits for another looks busy")


def _kernel(context: Context) -> Iterator[NotChecked]:
    """Yield that errors may have gone unseen, where neither the kernel log nor NVML could be asked for them."""
    kernel = context.run.kernel
    if kernel.status != "read":
        partly = " (Xid errors were listened for)" if kernel.xid_events == "listening" else ""
        yield NotChecked("kernel", f"the kernel log could not be read{partly}")

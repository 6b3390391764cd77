"""Each epoch in numbers: how long its parts took, what its GPUs did meanwhile, and what of it is odd."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np

from gpu_report.analyse.context import Context
from gpu_report.analyse.results.epoch_outliers import with_outliers
from gpu_report.analyse.results.stalls_in_waits import Stall, StallsInWaits
from gpu_report.analyse.rules.epochs.comparable_epochs import length_of
from gpu_report.analyse.timeline.epoch_ends import EpochEnd
from gpu_report.analyse.timeline.trainings import unused_intervals
from gpu_report.analyse.timeseries.energy import energy
from gpu_report.analyse.timeseries.gpu_series import Floats, GpuSeries, is_well_sampled, running_total, series_of_gpu
from gpu_report.analyse.timeseries.intervals import intersect, length_s, mask_in_any
from gpu_report.analyse.timeseries.weighted_stats import StatsByInterval, StatsOfInterval, stats_by_interval
from gpu_report.model import EpochSummary, Finding, InsideEpoch, Phase, Run, Stats

PER_EPOCH = ("memory_used_mib", "power_w", "temperature_c", "sm_clock_mhz")


class _EpochReadings(NamedTuple):
    """What was read of the GPUs in one epoch, None where nothing is known."""

    util_pct: float | None
    memory_peak_mib: float | None
    energy_j: float | None
    gpus: Mapping[int, Mapping[str, Stats]]
    gpu_utils_pct: Mapping[int, float | None]


def summarise_epochs(context: Context, findings: Sequence[Finding] = ()) -> tuple[EpochSummary, ...]:
    """Return one summary an epoch that came to its end, in order.

    `attempt` is as YOLO told it, else it counts repeats of one epoch in one YOLO run. Utilisation is the mean over the
    GPUs that its training used, energy the sum over all but those of others, None where that of one is not known. What
    `findings` say to be no wait for data is kept apart.
    """
    ends, stalls = context.epoch_ends.all, StallsInWaits(context.throughput, findings)
    seen: Counter[tuple[int, int]] = Counter()
    summaries = []
    for epoch_end, parts, readings in zip(ends, context.epoch_phases, _of_each(context, ends), strict=True):
        row = epoch_end.row
        seen[row.run, row.epoch] += 1
        reported = context.callbacks.epochs.get((row.run, row.start_t_s)) if epoch_end.from_callbacks else None
        attempt = reported.attempt if reported else seen[row.run, row.epoch]
        warm_up_s = _warm_up_s(context, epoch_end)
        summary = _summarise(epoch_end, reported, attempt, parts, readings, warm_up_s)
        summaries.append(_without(summary, stalls.within(reported) if reported else None))
    return with_outliers(summaries)


def _without(summary: EpochSummary, held: Stall | None) -> EpochSummary:
    """Return an epoch whose wait for data is without the time in which it was no loader that it waited for."""
    if held is None or summary.data_wait_s is None or not summary.train_s:
        return summary
    stall_s = min(held.seconds, summary.data_wait_s)
    wait_s = summary.data_wait_s - stall_s
    longest_s = summary.longest_wait_s if (summary.longest_wait_s or 0.0) <= wait_s else None
    return replace(
        summary,
        data_wait_s=wait_s,
        data_wait_share=min(wait_s / summary.train_s, 1.0),
        longest_wait_s=longest_s,
        stall_s=stall_s,
        stall_cause=held.cause,
    )


def loss_of(metrics: Mapping[str, float]) -> float | None:
    """Return the sum of the training losses of a row of results.csv, None where it has none."""
    parts = [value for name, value in metrics.items() if name.startswith("train/") and name.endswith("loss")]
    return sum(parts) if parts else None


def _of_each(context: Context, ends: Sequence[EpochEnd]) -> Iterator[_EpochReadings]:
    """Yield what was read in each epoch."""
    spans = [np.array([b.row.start_t_s for b in ends]), np.array([b.end_t_s for b in ends])]
    utils, peaks = {}, {}
    for series in context.series:
        utils[series.gpu], peaks[series.gpu] = _util_and_peak(series, spans)
    away_s = {
        gpu: mask_in_any(spans[0], unused_intervals(context.trainings, gpu)) for gpu in context.activity.used_gpus
    }
    working = [np.where(away_s[gpu], np.nan, util) for gpu, util in utils.items() if gpu in away_s]
    columns = (
        _over(np.nanmean, working, len(ends)),
        _over(np.nanmax, [peak for gpu, peak in peaks.items() if gpu not in context.gpus_of_others], len(ends)),
        _over(np.sum, _joules(context, spans), len(ends)),
    )
    again = {gpu: _made_again(context.run, gpu, spans) for gpu in utils}
    by_gpu = zip(*map(_known, utils.values()), strict=True) if utils else ((),) * len(ends)
    for number, (util, memory, used_j, shares) in enumerate(zip(*map(_known, columns), by_gpu, strict=True)):
        yield _EpochReadings(
            util, memory, used_j, StatsOfInterval(again, number), dict(zip(utils, shares, strict=True))
        )


def _util_and_peak(series: GpuSeries, spans: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Return mean utilisation (%) and most memory (MiB) of each epoch on one GPU; what they are of is large."""
    stats = _of_gpu(series, spans)
    return stats["gpu_util_pct"].mean, stats["memory_used_mib"].max


def _joules(context: Context, spans: Sequence[Floats]) -> list[Floats]:
    """Return the joules of each epoch on each GPU, NaN where not known: then neither is their sum.

    A GPU that was read and did nothing, and tells neither power nor energy, is left out, as is one on which only others
    worked. One of which nothing was read may have worked.
    """
    counted: dict[int, Floats] = {}
    for series in context.series:
        if series.gpu in context.gpus_of_others:
            continue
        curve = energy(series)
        if curve.source != "none" or series.gpu in context.activity.used_gpus:
            counted[series.gpu] = curve.of_spans(*spans)
    read = {series.gpu for series in context.series if len(series.samples)}
    unread = [np.full(len(spans[0]), np.nan) for gpu in context.run.gpus if gpu.index not in read | counted.keys()]
    return [*counted.values(), *unread]


def _made_again(run: Run, gpu: int, spans: Sequence[Floats]) -> Callable[[], Mapping[str, StatsByInterval]]:
    """Return what works out the statistics of each epoch on a GPU once more, and keeps them then.

    Few ask for them, and the readings of a long run are much to be kept for that.
    """
    return cache(lambda: _of_gpu(series_of_gpu(run, gpu), spans))


def _known(values: Floats) -> list[float | None]:
    """Return values as Python's numbers, None for NaN."""
    return [None if math.isnan(value) else value for value in values.tolist()]


def _of_gpu(series: GpuSeries, spans: Sequence[Floats]) -> dict[str, StatsByInterval]:
    """Return the statistics of each epoch on one GPU; those of utilisation by its finest readings.

    Of an epoch of which less than MEASURED_SHARE was sampled they are not known: the rest may have been otherwise.
    """
    columns = {name: series.samples[name].to_numpy() for name in PER_EPOCH}
    row_t_s = series.samples["t_s"].to_numpy(dtype=float)
    of_rows = stats_by_interval(
        row_t_s, columns, series.sample_weight_s, _sampled(row_t_s, series.sample_weight_s, series.tick_s, spans)
    )
    utils = {"gpu_util_pct": series.util_pct}
    weight_s = series.weight_s[:]
    sampled = _sampled(series.t_s, weight_s, series.interval_s, spans)
    return {**of_rows, **stats_by_interval(series.t_s, utils, weight_s, sampled)}


def _sampled(t_s: Floats, weight_s: Floats, interval_s: float, spans: Sequence[Floats]) -> list[Floats]:
    """Return the spans, those as empty of which too little was sampled."""
    starts, ends = spans
    so_far = running_total(weight_s)
    seconds = so_far[np.searchsorted(t_s, ends)] - so_far[np.searchsorted(t_s, starts)]
    return [starts, np.where(is_well_sampled(seconds, ends - starts, interval_s), ends, starts)]


def _over(how: Callable[..., Floats], of_gpus: Sequence[Floats], count: int) -> Floats:
    """Return the mean, highest or sum over GPUs of each epoch, NaN where it is known of none."""
    table = np.array(of_gpus) if of_gpus else np.empty((0, count))
    known = np.isfinite(table).any(axis=0)
    found = np.full(count, np.nan)
    if known.any():
        found[known] = how(table[:, known], axis=0)
    return found


def _warm_up_s(context: Context, epoch_end: EpochEnd) -> float:
    """Return how long an epoch was startup still: in the first of a process, up to the end of its first batch."""
    span = epoch_end.row.start_t_s, epoch_end.end_t_s
    return length_s(intersect(context.activity.startups, [span])) if epoch_end.first else 0.0


def _summarise(  # noqa: PLR0913, PLR0917 - what is known of an epoch, from each side
    epoch_end: EpochEnd,
    reported: InsideEpoch | None,
    attempt: int,
    parts: Sequence[Phase],
    read: _EpochReadings,
    warm_up_s: float,
) -> EpochSummary:
    row, train_s = epoch_end.row, length_of(parts, "train")
    wait_s = _wait_s(reported, warm_up_s)
    loss, rate = loss_of(row.metrics), row.metrics.get("lr/pg0")
    return EpochSummary(
        run=row.run,
        epoch=row.epoch,
        attempt=attempt,
        start_t_s=row.start_t_s,
        end_t_s=epoch_end.end_t_s,
        gpu_util_pct=read.util_pct,
        memory_peak_mib=read.memory_peak_mib,
        energy_j=read.energy_j,
        gpus=read.gpus,
        gpu_utils_pct=read.gpu_utils_pct,
        loss=reported.loss if reported and loss is None else loss,
        lr=reported.lr if reported and rate is None else rate,
        warm_up_s=warm_up_s,
        train_s=train_s,
        validation_s=length_of(parts, "validation"),
        checkpoint_s=length_of(parts, "checkpoint"),
        images_per_s=_images_per_s(reported, train_s, warm_up_s),
        data_wait_s=wait_s,
        data_wait_share=min(wait_s / train_s, 1.0) if wait_s is not None and train_s else None,
        longest_wait_s=_longest_s(reported, warm_up_s),
        source=next((phase.source for phase in parts if phase.name == "train"), ""),
        uncertainty_s=next((phase.uncertainty_s for phase in parts if phase.name == "train"), None),
        first=epoch_end.first,
        closing=epoch_end.closing,
        profiled=epoch_end.profiled,
        partial=epoch_end.partial or epoch_end.cut,
    )


def _images_per_s(reported: InsideEpoch | None, train_s: float | None, warm_up_s: float) -> float | None:
    """Return how many images a second the training part took, None where their number is not known.

    The first batch of a process is warm-up, and so are its images.
    """
    if reported is None or not reported.images or not train_s:
        return None
    share = 1 - 1 / reported.batches if warm_up_s and reported.batches else 1.0
    return reported.images * share / train_s or None


def _wait_s(reported: InsideEpoch | None, warm_up_s: float) -> float | None:
    """Return how long the training part waited for data, without the wait for a first batch that is warm-up."""
    if reported is None:
        return None
    return max(reported.data_wait_s - reported.first_wait_s, 0.0) if warm_up_s else reported.data_wait_s


def _longest_s(reported: InsideEpoch | None, warm_up_s: float) -> float | None:
    """Return the longest wait of the training part, None where all that is known is that of a first batch."""
    of_warm_up = reported is None or (warm_up_s > 0 and reported.longest_wait_s <= reported.first_wait_s)
    return None if reported is None or of_warm_up else reported.longest_wait_s

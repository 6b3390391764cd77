"""What a comparison counts of a run: whole epochs of the steady state, or windows of it where epochs are too few."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean

import numpy as np

from gpu_report.analyse.compare import thresholds as th
from gpu_report.analyse.compare.metrics import (
    CHECKPOINT,
    DATA_WAIT,
    EPOCH_TIME,
    METRICS,
    UTILISATION,
    VALIDATION,
    WAIT_SHARE,
)
from gpu_report.analyse.compare.resource_use import Work, work_of
from gpu_report.analyse.results.stalls_in_waits import throughput_without_stalls
from gpu_report.analyse.timeline.phases import mosaic_closes
from gpu_report.analyse.timeline.thresholds import LEVEL_AT_LEAST_S
from gpu_report.analyse.timeline.throughput import Throughput, throughput_of
from gpu_report.analyse.timeline.trainings import longest_run
from gpu_report.analyse.timeseries.energy import Energy, energy
from gpu_report.analyse.timeseries.gpu_series import Floats, GpuSeries, gpu_series, is_well_sampled
from gpu_report.analyse.timeseries.intervals import Span, as_array, minus
from gpu_report.model import Analysis, EpochSummary

Values = Mapping[str, Floats]


@dataclass(frozen=True, eq=False)
class RunSample:
    """The steady epochs of a run's longest training, in order, and how they may be cut finer.

    `first` are those that warm a process up, `closing` those that make the loader anew because the mosaic is closed;
    neither is among `epochs`. `closes` is the first epoch without mosaic, None where every one has it. `gpus` are the
    readings of the used GPUs, each with its running energy, `work` what was done by them and by the host's cores. The
    waits of `throughput` are those for data alone, as the epochs' are.
    """

    analysis: Analysis
    number: int | None
    epochs: tuple[EpochSummary, ...]
    first: tuple[EpochSummary, ...]
    closing: tuple[EpochSummary, ...]
    closes: int | None
    gpus: tuple[tuple[GpuSeries, Energy], ...]
    work: Work
    throughput: Throughput | None

    def without_mosaic(self, epoch: EpochSummary) -> bool:
        """Tell whether an epoch came after the mosaic was closed: its images take less work to make."""
        return self.closes is not None and epoch.epoch > self.closes


def run_sample(analysis: Analysis) -> RunSample:
    """Return what a comparison looks at of a run; without epochs where none is known."""
    known = [epoch for epoch in analysis.epochs if epoch.train_s and epoch.start_t_s >= 0]
    runs = [yolo.number for yolo in analysis.run.yolo_runs]
    # one that completed no epoch has its arguments still
    number = longest_run(known) if known else next(reversed(runs), None)
    mine = [epoch for epoch in known if epoch.run == number]
    args = next((yolo.args for yolo in analysis.run.yolo_runs if yolo.number == number), {})
    closes = mosaic_closes(args)
    closes = closes if closes is not None and closes > 0 else None
    used = {summary.gpu.index for summary in analysis.gpus if summary.used}
    of_used = [series for series in gpu_series(analysis.run) if series.gpu in used]
    return RunSample(
        analysis=analysis,
        number=number,
        epochs=tuple(
            epoch for epoch in mine if not (epoch.first or epoch.profiled or epoch.partial) and epoch.epoch != closes
        ),
        first=tuple(epoch for epoch in mine if epoch.first),
        closing=tuple(epoch for epoch in mine if not epoch.first and epoch.epoch == closes),
        closes=closes,
        gpus=tuple((series, energy(series)) for series in of_used),
        work=work_of(analysis.run.host, of_used),
        throughput=throughput_without_stalls(throughput_of(analysis.run), analysis.run, analysis.findings),
    )


def with_epochs(training: RunSample, keep: Sequence[EpochSummary]) -> RunSample:
    """Return a training of which only some epochs are looked at."""
    return replace(training, epochs=tuple(keep))


def of_epochs(training: RunSample) -> Values:
    """Return the metrics of each ordinary epoch, NaN where one is not known."""
    return _table([_of_epoch(training, epoch) for epoch in training.epochs])


def of_windows(training: RunSample, keep: Callable[[Span], bool] = lambda _: True) -> Values:
    """Return the metrics of equal parts of each ordinary epoch's work, scaled to a whole epoch, of those to be kept.

    Each part has as many batches, so that the mean over an epoch's parts is the epoch. Empty where nobody told how far
    the epochs were.
    """
    throughput = training.throughput
    if throughput is None:
        return {}
    kept = [part for part in windows(training) if keep(part[:2])]
    return _table([_of_part(training, throughput, start, end, count) for start, end, count in kept])


def windows(training: RunSample) -> list[tuple[float, float, int]]:
    """Return equal parts of each ordinary epoch's work: start, end (s), and how many make the epoch."""
    throughput = training.throughput
    return [] if throughput is None else [part for epoch in training.epochs for part in _parts(throughput, epoch)]


def first_epoch_s(training: RunSample) -> float | None:
    """Return how long the training part of epochs took that warm a process up, None where none is known."""
    return fmean(epoch.train_s or 0.0 for epoch in training.first) if training.first else None


def whole_utilisation_pct(training: RunSample) -> float | None:
    """Return mean utilisation (%) of the used GPUs where no epoch tells it: of all training.

    That is of the train phases, and where none is known of all outside startup and idle. None where that is too short.
    A GPU that waits for another counts as it reads, fully busy, which the verdict does not count as work.
    """
    phases, duration_s = training.analysis.phases, training.analysis.run.duration_s
    trained = [p.span for p in phases if p.name == "train"]
    away_spans = [p.span for p in phases if p.name in {"startup", "idle"}]
    spans = as_array(trained or minus([(0.0, duration_s)], away_spans))
    means = [series.mean_util_in(spans) for series, _ in training.gpus] if len(spans) else []
    if not means or min(seconds for _, seconds in means) < LEVEL_AT_LEAST_S:
        return None
    return fmean(mean for mean, _ in means)


def memory_peak_mib(gpus: Iterable[GpuSeries]) -> float | None:
    """Return the most memory that any of some GPUs held in the whole recording, None where none was read."""
    peaks = [
        float(np.nanmax(memory))
        for series in gpus
        if np.isfinite(memory := series.samples["memory_used_mib"].to_numpy(dtype=float)).any()
    ]
    return max(peaks, default=None)


def _table(rows: Sequence[Mapping[str, float | None]]) -> Values:
    return {name: np.array([_number(row.get(name)) for row in rows], dtype=float) for name in METRICS}


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def _of_epoch(training: RunSample, epoch: EpochSummary) -> dict[str, float | None]:
    span = epoch.start_t_s, epoch.start_t_s + (epoch.train_s or 0.0)
    wait_s, train_s = epoch.data_wait_s, epoch.train_s
    return {
        EPOCH_TIME: train_s,
        "images_per_s": epoch.images_per_s,
        DATA_WAIT: wait_s,
        WAIT_SHARE: 100 * wait_s / train_s if wait_s is not None and train_s else None,
        VALIDATION: epoch.validation_s,
        CHECKPOINT: epoch.checkpoint_s or None,  # without one there is nothing to compare
        UTILISATION: _utilisation_pct(training, span),
        "energy": _energy_j(training, span),
        **training.work.within(span),
    }


def _parts(throughput: Throughput, epoch: EpochSummary) -> list[tuple[float, float, int]]:
    """Return an epoch's windows of equal work: start, end, and how many make the epoch."""
    start_s, end_s = epoch.start_t_s, epoch.start_t_s + (epoch.train_s or 0.0)
    count = max(int((end_s - start_s) / th.WINDOW_S), 1)
    first, last = np.interp([start_s, end_s], throughput.t_s, throughput.batches)
    inner = np.interp(np.linspace(first, last, count + 1)[1:-1], throughput.batches, throughput.t_s)
    edges = [start_s, *inner.tolist(), end_s]
    return [(a, b, count) for a, b in pairwise(edges) if b > a] if last > first else []


def _of_part(
    training: RunSample, throughput: Throughput, start_s: float, end_s: float, count: int
) -> dict[str, float | None]:
    span, share = (start_s, end_s), throughput.data_wait_share([(start_s, end_s)])
    joules = _energy_j(training, span)
    return {
        EPOCH_TIME: (end_s - start_s) * count,
        "images_per_s": throughput.images_per_s([span]),
        DATA_WAIT: None if share is None else share * (end_s - start_s) * count,
        WAIT_SHARE: None if share is None else 100 * share,
        UTILISATION: _utilisation_pct(training, span),
        "energy": None if joules is None else joules * count,
        **{name: None if cost is None else cost * count for name, cost in training.work.within(span).items()},
    }


def _utilisation_pct(training: RunSample, span: Span) -> float | None:
    """Return mean utilisation of the used GPUs, None where one of them was not measured for most of the time."""
    if not training.gpus or not all(_measured(series, span) for series, _ in training.gpus):
        return None
    return fmean(series.mean_util_pct(*span) for series, _ in training.gpus)


def _energy_j(training: RunSample, span: Span) -> float | None:
    """Return the energy of the used GPUs together, None where that of one is not known."""
    if not training.gpus or not all(_measured(series, span) for series, _ in training.gpus):
        return None
    known = [joules for _, curve in training.gpus if (joules := curve.between(*span)) is not None]
    return sum(known) if len(known) == len(training.gpus) else None


def _measured(series: GpuSeries, span: Span) -> bool:
    """Tell whether most of a span was sampled."""
    seconds = float(series.weight_s[series.between(*span)].sum())
    return bool(is_well_sampled(seconds, span[1] - span[0], series.interval_s))

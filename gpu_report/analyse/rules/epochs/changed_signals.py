"""What else was another way in some stretches of training than in others: the numbers beside a slow epoch."""

from collections.abc import Callable, Sequence
from statistics import median

import numpy as np

from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.epochs.comparable_epochs import TrainedEpoch
from gpu_report.analyse.timeseries.columns import column_median
from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.model import Evidence, Reference

Signal = Callable[[Context, Sequence[TrainedEpoch]], float | None]


def changed(
    context: Context,
    before: Sequence[TrainedEpoch],
    after: Sequence[TrainedEpoch],
    words: tuple[str, str],
    reference: Reference = "",
) -> tuple[Evidence, ...]:
    """Return, for each signal that differs, what it was in the training of some epochs and of others.

    `words` tell the two apart; `reference` says what the first is for the second. Utilisation and data wait are
    reported in any case: they say on which side to look.
    """
    numbers: list[Evidence] = []
    for name, unit, of, always in SIGNALS:
        then, now = of(context, before), of(context, after)
        if then is not None and now is not None and (always or abs(now - then) > th.CHANGED_SHARE * abs(then)):
            numbers += [
                Evidence(f"{name} {words[0]}", then, unit, name, reference),
                Evidence(f"{name} {words[1]}", now, unit, name),
            ]
    return evidence(*numbers)


def data_wait_s(_: Context, epochs: Sequence[TrainedEpoch]) -> float | None:
    """Return what training waited for data in an epoch (median), None where that was not reported."""
    waits = [epoch.data_wait_s for epoch in epochs if epoch.data_wait_s is not None]
    return median(waits) if waits else None


def utilisation(context: Context, epochs: Sequence[TrainedEpoch]) -> float | None:
    """Return mean utilisation of the used GPUs in training, from their finest readings (median over epochs)."""
    means = _means(context, epochs)
    known = means[np.isfinite(means)]
    return float(np.median(known)) if len(known) else None


def busy_s(context: Context, epochs: Sequence[TrainedEpoch]) -> float | None:
    """Return how long the GPU was busy in the training of an epoch (median), None where it was not measured.

    Of several GPUs the median counts. All epochs are read at once: each alone would go through all of the readings.
    """
    means = _means(context, epochs)
    of_epochs = zip(epochs, means.T, strict=True)
    busy = [epoch.train_s * np.median(m[np.isfinite(m)]) / 100 for epoch, m in of_epochs if np.isfinite(m).any()]
    return float(median(busy)) if busy else None


def _means(context: Context, epochs: Sequence[TrainedEpoch]) -> Floats:
    """Return mean utilisation (%) in the training of epochs, (GPUs, epochs), NaN where nothing was read."""
    spans = [epoch.span for epoch in epochs]
    rows = [series.mean_util_of_each(spans) for series in context.used_series] if spans else []
    return np.array(rows, dtype=float).reshape(-1, len(spans))


def of_gpus(name: str) -> Signal:
    """Return a signal: a column of the samples over the used GPUs (median)."""

    def signal(context: Context, epochs: Sequence[TrainedEpoch]) -> float | None:
        spans = [epoch.span for epoch in epochs]
        all_series = context.used_series
        values = [value for series in all_series if (value := column_median(series.samples, name, spans)) is not None]
        return median(values) if values else None

    return signal


def of_host(name: str) -> Signal:
    """Return a signal: a column of the host (median)."""
    return lambda context, epochs: column_median(context.run.host, name, [epoch.span for epoch in epochs])


def others_cpu_pct(context: Context, epochs: Sequence[TrainedEpoch]) -> float | None:
    """Return the CPU that others than the training took, in % of all cores; None where the training's is not known."""
    cores = context.run.recording.cores_online or context.run.recording.cores
    names = ("cpu_pct", "main_cpu_pct", "workers_cpu_pct")
    total, main, workers = (of_host(name)(context, epochs) for name in names)
    if total is None or main is None or not cores:
        return None
    training = context.training_at(epochs[0].span[0])
    ranks = len(training.rank_group.ranks) if training and training.rank_group else 1
    stolen = of_host("cpu_steal_pct")(context, epochs) or 0.0
    return max(total - (main * ranks + (workers or 0.0)) / cores - stolen, 0.0)


# Name, unit, signal, and whether it is reported even where it did not change.
SIGNALS: tuple[tuple[str, str, Signal, bool], ...] = (
    ("waiting for data per epoch", "s", data_wait_s, True),
    ("utilisation", "%", utilisation, True),
    ("SM activity", "%", of_gpus("sm_active_pct"), False),
    ("tensor activity", "%", of_gpus("tensor_active_pct"), False),
    ("SM clock", "MHz", of_gpus("sm_clock_mhz"), False),
    ("memory clock", "MHz", of_gpus("memory_clock_mhz"), False),
    ("GPU temperature", "°C", of_gpus("temperature_c"), False),
    ("GPU memory", "MiB", of_gpus("memory_used_mib"), False),
    ("CPU of others", "% of all cores", others_cpu_pct, False),
    ("CPU that went to other virtual machines (steal)", "% of all cores", of_host("cpu_steal_pct"), False),
    ("CPU clock", "MHz", of_host("cpu_clock_mhz"), False),
    ("read from storage by the training", "MiB/s", of_host("trainer_read_mib_s"), False),
    ("processes waiting for input or output", "%", of_host("io_pressure_pct"), False),
)

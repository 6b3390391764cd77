"""Set-up at odds: GPUs of unlike models in one training, where the faster ones wait for the slowest in each step."""

from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.setup.check import SetupIssue
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.columns import column_mean
from gpu_report.model import Advice


def unlike_gpus(context: Context, training: Training) -> SetupIssue | None:
    """Find GPUs of two models of which one draws far less of its limit than the other: it spins in the exchange.

    Ranks have equal parts of each batch, and utilisation is as high while they wait for each other.
    """
    gpus = sorted(training.gpus)
    names = {gpu: context.run.gpu(gpu).name for gpu in gpus}
    drawn = {gpu: share for gpu in gpus if (share := _power_share(context, training, gpu)) is not None}
    if len(set(names.values())) == 1 or None in names.values() or len(drawn) < len(gpus) or not drawn:
        return None
    slowest, waits = max(gpus, key=lambda gpu: drawn[gpu]), min(gpus, key=lambda gpu: drawn[gpu])
    if names[slowest] == names[waits] or drawn[waits] > th.UNLIKE_POWER_SHARE * drawn[slowest]:
        return None
    return SetupIssue(
        "warning",
        f"GPU {slowest} ({names[slowest]}) is the slower one in each step: GPU {waits} ({names[waits]}) waits for it",
        (slowest, waits, "unlike"),
        evidence(
            (f"power of GPU {slowest}, of its limit", 100 * drawn[slowest], "%"),
            (f"power of GPU {waits}, of its limit", 100 * drawn[waits], "%"),
        ),
        (Advice("Train on GPUs of one model: each rank has an equal part of the batch, whatever its GPU can do"),),
    )


def _power_share(context: Context, training: Training, gpu: int) -> float | None:
    """Return the mean power of a GPU in training, as a share of its limit, None where either is not known."""
    series = context.series_if_read(gpu)
    limit_w = context.run.gpu(gpu).power_limit_w
    if series is None or not limit_w:
        return None
    power_w = column_mean(series.samples, "power_w", training.train_spans)
    return None if power_w is None else power_w / limit_w

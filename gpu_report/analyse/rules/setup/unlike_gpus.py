"""Configuration problem: GPUs of unlike models in one training: the faster ones wait for the slowest in each step."""

from collections.abc import Sequence

from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.setup.check import SetupIssue
from gpu_report.analyse.timeline.device_argument import known_as_first
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.columns import column_mean
from gpu_report.gpu_words import gpu_words, gpus_words
from gpu_report.model import Advice

ONE_MODEL = "Train on GPUs of one model"
EQUAL_PARTS = "each rank has an equal part of the batch, whatever its GPU can do"


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
        f"{gpu_words(slowest)} ({names[slowest]}) is the slower one in each step; {gpu_words(waits)} ({names[waits]}) "
        "waits for it, and reads as busy",
        (slowest, waits, "unlike"),
        evidence(
            (f"power of {gpu_words(slowest)}, of its limit", 100 * drawn[slowest], "%"),
            (f"power of {gpu_words(waits)}, of its limit", 100 * drawn[waits], "%"),
        ),
        (_advice(context, training, [gpu for gpu in gpus if names[gpu] == names[waits]]),),
    )


def _advice(context: Context, training: Training, faster: Sequence[int]) -> Advice:
    """Return what to do: to try the faster GPUs without the others, where their memory can hold the batch.

    Whether that wins depends on for how much of a step they work, which nobody measures: one epoch shows it.
    """
    times = len(training.gpus) / len(faster)
    if not _fits(context, faster, times):
        return Advice(f"{ONE_MODEL}: {EQUAL_PARTS}", short=ONE_MODEL)
    names = ",".join(map(str, faster))
    who = gpus_words(faster)
    now = training.args.get("device")
    is_known = now is not None and known_as_first(context.run, faster)
    alone = f"`device={names}`" if is_known else f"{who} alone"
    batch = training.args.get("batch")
    same = f" with the same `batch={batch}`" if isinstance(batch, int) else " with the same batch"
    works = f"{who} now work{'s' if len(faster) == 1 else ''} for less than {_share(times)} of each step"
    text = f"Train one epoch on {who} alone{same} and compare its time. That is faster if {works}"
    shown = ",".join(map(str, now)) if isinstance(now, list | tuple) else str(now)
    return Advice(
        text,
        "device" if is_known else None,
        shown if is_known else None,
        names if is_known else None,
        short=f"Try {alone} for one epoch",
    )


def _share(times: float) -> str:
    return "half" if times == 2 else f"{100 / times:.0f} %"


def _fits(context: Context, faster: Sequence[int], times: float) -> bool:
    """Tell whether the faster GPUs can hold so many times as much as they did, which is more than a batch takes."""
    return all(_peak_share(context, gpu) * times < th.FULL_SHARE for gpu in faster)


def _peak_share(context: Context, gpu: int) -> float:
    """Return the share (0 to 1) of its memory that a GPU used at most; where that is not known, all."""
    series = context.series_if_read(gpu)
    peak = context.gpu_memory(series).peak_share if series is not None else None
    return 1.0 if peak is None else peak


def _power_share(context: Context, training: Training, gpu: int) -> float | None:
    """Return the mean power of a GPU in training, as a share of its limit, None where either is not known."""
    series = context.series_if_read(gpu)
    limit_w = context.run.gpu(gpu).power_limit_w
    if series is None or not limit_w:
        return None
    power_w = column_mean(series.samples, "power_w", training.train_spans)
    return None if power_w is None else power_w / limit_w

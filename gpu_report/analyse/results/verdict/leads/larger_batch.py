"""Whether a GPU whose steps are small could be given a larger batch."""

from collections.abc import Sequence

from gpu_report.analyse.advice.larger_batches import outweighed_by
from gpu_report.analyse.advice.run_settings import run_settings_of
from gpu_report.analyse.context import Context
from gpu_report.analyse.rules.thresholds import LARGER_BATCH_FROM, NEAR_LIMIT_PCT
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.model import OF_EPOCHS, Finding


def no_larger_batch(context: Context, finding: Finding, findings: Sequence[Finding]) -> str:
    """Return why a larger batch is not to be tried on a finding's GPU, empty where it may be.

    It has to fit the card's memory, to leave an epoch of its training batches enough, and to win more than it costs.
    """
    training = context.training_at(finding.start_t_s, finding.gpu)
    if full := _no_room(context, finding, findings, training):
        return full
    batches = training.quantity("batches") if training is not None else None
    if batches is not None and batches < LARGER_BATCH_FROM:
        return f"an epoch has only {batches:.0f} batches"
    signals = context.signals.of_training(min(training.gpus), training) if training and training.gpus else None
    if training is None or signals is None:
        return ""
    return outweighed_by(run_settings_of(context, training), signals, _rest(context, training))


def _no_room(context: Context, finding: Finding, findings: Sequence[Finding], training: Training | None) -> str:
    """Return why GPU memory has no room for a larger batch, empty where it may have."""
    of_memory = {each.rule for each in findings if each.gpu == finding.gpu and not each.expected}
    if training is not None and training.filled_gpu_memory:
        return "GPU memory ran out"
    if "memory-near-limit" in of_memory:
        return "GPU memory is nearly full"
    if "memory-growth" in of_memory:
        return "GPU memory keeps growing"
    return (
        ""
        if _fits_twice(context, finding.gpu, training.memory_fraction if training else 1.0)
        else "twice as large may not fit into GPU memory"
    )


def _rest(context: Context, training: Training) -> float:
    """Return what the ends of epochs took, as a share of their training: of those after the first, else 0 (unknown)."""
    start_s, end_s = training.span
    later = [
        (phase.name, phase.end_t_s - phase.start_t_s)
        for phase in context.phases
        if phase.name in OF_EPOCHS and (phase.epoch or 0) > 1 and start_s <= phase.start_t_s < end_s
    ]
    train_s = sum(seconds for name, seconds in later if name == "train")
    return sum(seconds for _, seconds in later) / train_s - 1 if train_s else 0.0


def _fits_twice(context: Context, gpu: int | None, allowed: float) -> bool:
    """Tell whether twice the memory that was in use at most fits a share of a card; so, too, where it is not known."""
    series = context.series_if_read(gpu)
    if series is None:
        return True
    share = context.gpu_memory(series).peak_share
    return share is None or 2 * share <= allowed * NEAR_LIMIT_PCT / 100

"""Whether a GPU whose steps are small could be given a larger batch."""

from collections.abc import Sequence

from gpu_report.analyse.context import Context
from gpu_report.analyse.rules.thresholds import LARGER_BATCH_FROM, NEAR_LIMIT_PCT
from gpu_report.model import Finding


def no_larger_batch(context: Context, finding: Finding, findings: Sequence[Finding]) -> str:
    """Return why a larger batch is not to be tried on a finding's GPU, empty where it may be.

    It has to fit the card's memory, and to leave an epoch of its training batches enough.
    """
    of_memory = {each.rule for each in findings if each.gpu == finding.gpu}
    if "memory-near-limit" in of_memory:
        return "GPU memory is nearly full"
    if "memory-growth" in of_memory:
        return "GPU memory keeps growing"
    if not _fits_twice(context, finding.gpu):
        return "twice as large may not fit into GPU memory"
    training = context.training_at(finding.start_t_s, finding.gpu)
    batches = training.quantity("batches") if training is not None else None
    if batches is None or batches >= LARGER_BATCH_FROM:
        return ""
    return f"an epoch has only {batches:.0f} batches"


def _fits_twice(context: Context, gpu: int | None) -> bool:
    """Tell whether a card would hold twice the memory that was in use at most; so, too, where that is not known."""
    series = next((each for each in context.series if each.gpu == gpu), None)
    if series is None:
        return True
    share = context.gpu_memory(series).peak_share
    return share is None or 2 * share <= NEAR_LIMIT_PCT / 100

"""The one length of an epoch that every place of a report gives, and what its parts take."""

from collections.abc import Iterable, Sequence
from statistics import fmean, median

from gpu_report.analyse.advice.judged_epochs import ALL, judged_epochs, left_out_words
from gpu_report.model import EpochNow, EpochSummary, SpeedupLimit, longest_now


def epoch_now(epochs: Sequence[EpochSummary], limits: Sequence[SpeedupLimit]) -> EpochNow | None:
    """Return what an epoch takes: the one that limits are compared with, else the median of those after the first.

    None where no epoch but the first ended, and none can be expected by it.
    """
    mine, longest = judged_epochs(epochs), longest_now(limits)
    if longest is None and not mine:
        return None
    if longest is not None and longest.since is not None:
        mine = [epoch for epoch in mine if epoch.epoch >= longest.since]
    middle = fmean if longest is not None and longest.is_mean else median

    def of(values: Iterable[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return middle(known) if known else None

    length_s = of(epoch.end_t_s - epoch.start_t_s for epoch in mine)
    return EpochNow(
        seconds=(length_s or 0.0) if longest is None else longest.epoch_s_now + longest.rest_s,
        now_is=f"median of {ALL}{left_out_words(epochs)}" if longest is None else longest.now_is,
        train_s=of(epoch.train_s for epoch in mine),
        validation_s=of(epoch.validation_s for epoch in mine),
        checkpoint_s=of(epoch.checkpoint_s for epoch in mine),
        data_wait_s=of(epoch.data_wait_s for epoch in mine),
        images_per_s=of(epoch.images_per_s for epoch in mine),
    )

"""Who waits while one GPU of a training validates: in many versions of ultralytics rank 0 does so alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpu_report.analyse.context import Context
from gpu_report.analyse.signals.thresholds import BUSY_WAIT_POWER_SHARE_WITHOUT_TENSOR, BUSY_WAIT_UTIL_PCT
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.columns import column_mean
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.gpu_words import gpu_words


@dataclass(frozen=True)
class LoneValidation:
    """The one GPU of a training that validates, and how many wait for it."""

    gpu: int
    waiting: int

    @property
    def words(self) -> str:
        """Return both, as a part of a sentence."""
        who = "the other GPU waits" if self.waiting == 1 else f"{self.waiting} GPUs wait for it"
        return f"{gpu_words(self.gpu)} alone validates, and {who}"


def lone_validation(context: Context, training: Training, validations: Sequence[Span]) -> LoneValidation | None:
    """Return the one GPU that works in validations, None where others do, too, or where that is not known.

    A rank that waits spins: it reads as busy, and draws far less power than in training.
    """
    waits = {gpu: _waits(context, training, gpu, validations) for gpu in training.gpus}
    working = [gpu for gpu, is_waiting in waits.items() if is_waiting is False]
    if None in waits.values() or len(working) != 1 or len(waits) == 1:
        return None
    return LoneValidation(working[0], len(waits) - 1)


def _waits(context: Context, training: Training, gpu: int, validations: Sequence[Span]) -> bool | None:
    """Tell whether a GPU only waits in validations, None where its readings do not say it."""
    series = context.series_if_read(gpu)
    if series is None:
        return None
    power_w, trains_w = (column_mean(series.samples, "power_w", each) for each in (validations, training.train_spans))
    util_pct, seconds = series.mean_util_in(validations)
    if power_w is None or not trains_w or not seconds:
        return None
    return util_pct >= BUSY_WAIT_UTIL_PCT and power_w <= BUSY_WAIT_POWER_SHARE_WITHOUT_TENSOR * trains_w

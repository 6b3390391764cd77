"""The rate at which images come, however many workers ask for them: validations, with twice as many, show it."""

from dataclasses import dataclass
from statistics import median

from gpu_report.analyse.advice import thresholds as th
from gpu_report.analyse.context import Context
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.model import Advice, Validation


@dataclass(frozen=True)
class LoaderRate:
    """Images a second with the `workers` of training, and with more of them in validations, which wait for data too."""

    workers: int
    images_per_s: float
    validation_workers: int
    validation_images_per_s: float

    @property
    def advice(self) -> Advice:
        """Return that more workers are no help, and what is."""
        short = "Read the data from a local disk, or cache it: more workers gain nothing"
        validated = f"{self.validation_workers} workers of validation load {self.validation_images_per_s:.0f} images/s"
        return Advice(f"{short}. {validated}, the {self.workers} of training {self.images_per_s:.0f}", short=short)


def rate_that_workers_share(context: Context, training: Training) -> LoaderRate | None:
    """Return the rate at which images come, where more workers get no more of them; None where nothing shows that.

    Of several ranks each has workers of its own in training, and one or all of them in validation: it is not known.
    """
    steady, workers = context.signals.steady_of(training), training.quantity("workers")
    rate = context.throughput.images_per_s(steady) if context.throughput and steady else None
    if training.ranks > 1 or not workers or not rate:
        return None
    least = th.MORE_WORKERS * workers
    phases = [phase for phase in context.phases if phase.validated and training.span[0] <= phase.start_t_s]
    mine = [phase.validated for phase in phases if phase.validated and phase.end_t_s <= training.span[1]]
    waiting = [each for each in mine if each.workers and each.workers >= least and _waits(each)]
    if not waiting or 2 * len(waiting) < len(mine):
        return None
    validated = median(_images_per_s(each) for each in waiting)
    if validated > th.SAME_RATE * rate:
        return None
    return LoaderRate(round(workers), rate, round(median(each.workers or 0 for each in waiting)), validated)


def _waits(validation: Validation) -> bool:
    """Tell whether a validation waited for data between its batches, so that its loader was what took its time."""
    waited_s = validation.seconds.get("data", 0.0) - validation.first_wait_s
    return bool(validation.images) and waited_s >= th.VALIDATION_WAITS_SHARE * _from_first_s(validation) > 0


def _images_per_s(validation: Validation) -> float:
    return (validation.images or 0) / _from_first_s(validation)


def _from_first_s(validation: Validation) -> float:
    return validation.duration_s - validation.first_wait_s

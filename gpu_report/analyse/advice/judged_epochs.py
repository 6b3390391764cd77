"""The epochs that speed-up limits are of, and what of them is not judged."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from gpu_report.analyse.context import Context
from gpu_report.analyse.timeline.trainings import Training, longest_run
from gpu_report.analyse.timeseries.intervals import Span, length_s
from gpu_report.catalogue import PAST_KEY
from gpu_report.model import EpochSummary, Finding

# Of which epochs a limit calls one the epoch now: the table of epochs has others beside them, the first above all.
ALL, STEADY = "all epochs", "the steady-state epochs"


@dataclass(frozen=True)
class JudgedEpoch:
    """The training part of an epoch: where it lies, and its length in seconds.

    `seen` is what an epoch that is worked out was worked out from. `apart` is the share (0 to 1) of it that went with
    what disturbed each epoch, which has limits of its own: that is not `seen` then.
    """

    summary: EpochSummary
    train_s: float
    seen: tuple[Span, ...] = ()
    apart: float = 0.0

    @property
    def span(self) -> Span:
        """Return when it trained, if it trained from its beginning on."""
        return self.summary.start_t_s, self.summary.start_t_s + self.train_s

    @property
    def spans(self) -> tuple[Span, ...]:
        """Return when it trained, or what it was worked out from did."""
        return self.seen or (self.span,)


def without_past_trainings(
    context: Context, epochs: Sequence[EpochSummary], findings: Sequence[Finding]
) -> Sequence[EpochSummary]:
    """Return the epochs without those of earlier trainings whose cause is over: nothing is to be won of them."""
    over = [each for each in findings if each.number(PAST_KEY) is not None]
    past = {id(context.training_at(each.start_t_s, each.gpu)) for each in over}
    return [each for each in epochs if id(context.training_at(each.start_t_s)) not in past] or epochs


def training_of_limits(context: Context, epochs: Sequence[EpochSummary]) -> Training | None:
    """Return the training that limits are of: of the longest YOLO run the one in which its middle epoch lies.

    None where no training is distinguished.
    """
    longest = longest_run(epochs)
    starts = [epoch.start_t_s for epoch in epochs if epoch.run == longest]
    if starts:
        return context.training_at(starts[len(starts) // 2])
    return max(context.trainings, key=lambda training: length_s(training.train_spans), default=None)


def wait_of_epoch_s(epochs: Sequence[JudgedEpoch]) -> float:
    """Return what the training part of an epoch waits for data (s), 0 where callbacks did not report it.

    It is what a typical epoch is longer than one without its own wait.
    """
    known = [(epoch.train_s, wait) for epoch in epochs if (wait := epoch.summary.data_wait_s) is not None]
    if not known:
        return 0.0
    return max(median(train for train, _ in known) - median(train - wait for train, wait in known), 0.0)


def rest_of_epoch_s(epochs: Sequence[JudgedEpoch], middle: Callable[[list[float]], float]) -> float:
    """Return what an epoch takes beside its training (s): validation, checkpoint, and what lies between."""
    rests = [epoch.summary.end_t_s - epoch.summary.start_t_s - epoch.train_s for epoch in epochs]
    return max(middle(rests), 0.0) if rests else 0.0


def judged_epochs(epochs: Sequence[EpochSummary]) -> list[EpochSummary]:
    """Return the epochs of the longest YOLO run, without those that do more than train.

    The first of a process warms up, where the mosaic closes the loader is made anew, and `time=` cuts the last one.
    """
    return [epoch for epoch in epochs_of_longest_run(epochs) if not epoch.is_special]


def epochs_of_longest_run(epochs: Sequence[EpochSummary]) -> list[EpochSummary]:
    """Return the epochs of the longest YOLO run; those whose training part is known, where it is of any."""
    longest = longest_run(epochs)
    mine = [epoch for epoch in epochs if epoch.run == longest]
    return [epoch for epoch in mine if epoch.train_s] or mine


def left_out_words(epochs: Sequence[EpochSummary]) -> str:
    """Return which epochs of the longest YOLO run are not judged, in words; empty where all are."""
    mine = epochs_of_longest_run(epochs)
    kinds = (
        ("the first", any(epoch.first for epoch in mine)),
        ("the one that turns mosaic off", any(epoch.closing for epoch in mine)),
        ("the one that was profiled", any(epoch.profiled for epoch in mine)),
        ("the last one, which was cut short", any(epoch.partial for epoch in mine)),
    )
    named = " and ".join(words for words, there in kinds if there)
    return f", without {named}" if named else ""

"""Rule: much of the time goes into the ends of epochs: validation and saving, which come once an epoch.

It is a note, for nothing is wrong: a small data set on a fast GPU is like that, or one with many images to validate.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from gpu_report.analyse.causes.confidence import CERTAIN
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.epochs.comparable_epochs import TrainedEpoch
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.interval_cover import IntervalCover, interval_cover
from gpu_report.catalogue import ENDS_SHARE_KEY, RULES
from gpu_report.model import Advice, Cause, Evidence, Finding
from gpu_report.wording import upper_first


@dataclass(frozen=True)
class _Parts:
    """What an epoch takes (s, medians) in training, in its validation and in saving, and how many epochs say so."""

    train_s: float
    validation_s: float
    checkpoint_s: float
    epochs: int

    @property
    def end_s(self) -> float:
        return self.validation_s + self.checkpoint_s

    @property
    def share(self) -> float:
        """Return the share (0 to 1) of an epoch that its end takes."""
        return self.end_s / (self.train_s + self.end_s)


def long_epoch_ends(context: Context, epochs: Sequence[TrainedEpoch], found: Sequence[Finding]) -> list[Finding]:
    """Report each training whose epochs' ends take ENDS_SHARE of it or more, less what other findings say of them."""
    told = interval_cover(each.span for f in found if RULES[f.rule].at_epoch_ends for each in f.each)
    return [finding for training in context.trainings for finding in _of_training(context, training, epochs, told)]


def _of_training(
    context: Context, training: Training, epochs: Sequence[TrainedEpoch], told: IntervalCover
) -> Iterator[Finding]:
    mine = [each for each in epochs if each.from_callbacks and each.alike and _lies_in(each, training)]
    if len(mine) < th.LONG_ENDS_LEAST:
        return
    parts = _parts(mine, told)
    if parts.share >= th.ENDS_SHARE:
        yield _finding(context, training, mine, parts)


def _lies_in(epoch: TrainedEpoch, training: Training) -> bool:
    return training.span[0] <= epoch.span[0] < training.span[1]


def _parts(epochs: Sequence[TrainedEpoch], told: IntervalCover) -> _Parts:
    ends = [(each.span[1], each.span[1] + each.validation_s + each.checkpoint_s) for each in epochs]
    left = [1 - told.seconds_in(end) / (end[1] - end[0]) if end[1] > end[0] else 0.0 for end in ends]
    return _Parts(
        median(each.train_s for each in epochs),
        median(each.validation_s * share for each, share in zip(epochs, left, strict=True)),
        median(each.checkpoint_s * share for each, share in zip(epochs, left, strict=True)),
        len(epochs),
    )


def _finding(context: Context, training: Training, epochs: Sequence[TrainedEpoch], parts: _Parts) -> Finding:
    is_validation = parts.validation_s >= parts.checkpoint_s
    what = "validation and saving" if min(parts.validation_s, parts.checkpoint_s) >= th.ENDS_NAMED_S else None
    what = what or ("validation" if is_validation else "saving")
    numbers = evidence(
        ("training of an epoch (median)", parts.train_s, "s"),
        ("validation of an epoch (median)", parts.validation_s or None, "s"),
        ("checkpoint of an epoch (median)", parts.checkpoint_s or None, "s"),
        Evidence("validation and checkpoint, of the time of an epoch", 100 * parts.share, "%", key=ENDS_SHARE_KEY),
        ("epochs compared", parts.epochs, ""),
    )
    last = epochs[-1]
    name = "validation" if is_validation else "checkpoint"
    return context.finding(
        "long-epoch-ends",
        "info",
        (epochs[0].span[0], last.span[1] + last.validation_s + last.checkpoint_s),
        f"{upper_first(what)} take{'' if ' ' in what else 's'} {100 * parts.share:.0f} % of the time",
        gpu=min(training.gpus, default=None),
        epoch=None,
        phase=None,
        evidence=numbers,
        cause=Cause(name, CERTAIN, f"{what} after every {parts.train_s:.1f} s of training"),
        advice=tuple(_advice(training.args, parts)),
    )


def _advice(args: Mapping[str, object], parts: _Parts) -> Iterator[Advice]:
    """Yield how to make epochs longer, so that fewer end, as far as the epochs asked for allow."""
    asked = args.get("epochs")
    times = min(th.LONGER_EPOCHS, asked // th.EPOCHS_KEPT) if isinstance(asked, int) else th.LONGER_EPOCHS
    if times <= 1:
        return
    now = f" (now {asked})" if isinstance(asked, int) else ""
    epochs = f"`epochs={asked // times}`{now}" if isinstance(asked, int) else "`epochs` accordingly"
    gain = parts.share * (1 - 1 / times)
    yield Advice(
        f"List the training images {times} times in `data.yaml` (`train: [images/train, images/train, ...]`) and set "
        f"{epochs}. Divide `close_mosaic`, `warmup_epochs` and `patience` by {times}, too. "
        "The training then takes as many steps, and validates and saves less often",
        gain_estimate=gain,
        short=f"Make each epoch {times} times as long",
    )

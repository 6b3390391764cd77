"""Data sets whose images to validate are too many beside those that train: swapped, or larger than need be."""

from collections.abc import Iterator

from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.epochs.epoch_parts import EpochParts
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.model import Advice


def swapped_sets(training: Training, parts: EpochParts) -> tuple[float, float] | None:
    """Return how many images train, and how many validate, where those are far more and take much of an epoch."""
    sets = _sets(training, parts)
    return sets if sets is not None and sets[1] >= th.SWAPPED_TIMES * sets[0] else None


def check_sets(training: Training, parts: EpochParts) -> Iterator[Advice]:
    """Yield to look at the data sets where far more images validate than train: what is won is that of as many."""
    sets = swapped_sets(training, parts)
    if sets is not None:
        train, validate = sets
        gain = parts.validation_s * (1 - train / validate) / parts.epoch_s
        short = f"Check `train` and `val` in `data.yaml` ({train:,.0f} images train, {validate:,.0f} validate)"
        yield Advice(f"{short}. They may be swapped; else validate on fewer", gain_at_most=gain, short=short)


def large_validation_set(training: Training, parts: EpochParts) -> tuple[float, float, float] | None:
    """Return how many images validate, how many train, and how many would be enough, where they are far more.

    None where they do not matter, or may be swapped.
    """
    sets = _sets(training, parts)
    if sets is None or swapped_sets(training, parts):
        return None
    train, validate = sets
    enough = max(float(th.ENOUGH_VAL_IMAGES), th.ENOUGH_VAL_SHARE * train)
    return (validate, train, enough) if validate >= th.LARGE_VAL_TIMES * enough else None


def smaller_validation_set(training: Training, parts: EpochParts) -> Iterator[Advice]:
    """Yield to validate on fewer images, where a large set takes much of each epoch."""
    large = large_validation_set(training, parts)
    if large is not None:
        validate, train, enough = large
        short, now = "Validate on fewer images", f"{validate:,.0f} now, {train:,.0f} train"
        why = f"{enough:,.0f} are mostly enough to show which epoch is better. Evaluate on all after the training"
        gain = parts.validation_s * (1 - enough / validate) / parts.epoch_s
        yield Advice(f"{short} ({now}): {why}", gain_at_most=gain, short=short)


def _sets(training: Training, parts: EpochParts) -> tuple[float, float] | None:
    """Return how many images train, and how many validate, where validation takes much of an epoch.

    None of a `fraction`, which ultralytics takes of the training images alone.
    """
    train, validate = training.quantity("images"), training.quantity("val_images")
    is_whole = training.args.get("fraction", 1.0) in {None, 1}
    return (train, validate) if train and validate and is_whole and parts.mostly_validates else None

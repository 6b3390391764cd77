"""What a fix comes to for a whole training: an epoch now and with it, times the epochs that are left, or all."""

from collections.abc import Sequence
from dataclasses import replace

from gpu_report.analyse.advice import thresholds as th
from gpu_report.analyse.advice.judged_epochs import epochs_of_longest_run
from gpu_report.analyse.context import Context
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.model import Ending, EpochSummary, Finding, Projection, SpeedupLimit, epoch_now_s

OVER = frozenset({"finished", "early stop"})  # no epoch is left of a training that ended so
SECONDS_PER_HOUR = 3600


def project(
    context: Context,
    training: Training | None,
    limits: Sequence[SpeedupLimit],
    ending: Ending | None,
    findings: Sequence[Finding] = (),
) -> Projection | None:
    """Return what the fix that saves most does, None where none can be estimated.

    The epochs are those that were asked for; of a training that was cut short, or goes on, those that are left, from
    where it can be resumed. One that ends after a time (`time`) makes more epochs with the fix, and takes as long: then
    no number is known.
    """
    estimated = [limit for limit in limits if limit.saves_s]
    best = max(estimated, key=lambda limit: limit.saves_s or 0.0, default=None)
    now_s = epoch_now_s(limits)
    if best is None or now_s is None:
        return None
    is_timed = training is not None and bool(training.settings.get("time") or training.args.get("time"))
    epochs, left = (None, False) if is_timed else _epochs(ending, _resumed_after(findings))
    price, gpus = context.options.price_per_hour, len(training.gpus) if training and training.gpus else 1
    return Projection(
        fix=best.fix,
        cause=best.cause,
        epoch_s_now=now_s,
        epoch_s_expected=now_s - (best.saves_s or 0.0),
        epochs=epochs,
        left=left,
        price_per_s=None if price is None else gpus * price / SECONDS_PER_HOUR,
    )


def as_recorded(projection: Projection | None, epochs: Sequence[EpochSummary]) -> Projection | None:
    """Return a projection with what all epochs took, where all were recorded, and some were shorter than a typical one.

    An epoch that was shorter had less of what the fix saves, or nothing.
    """
    if projection is None or projection.left or not projection.epochs:
        return projection
    lengths_s = [epoch.end_t_s - epoch.start_t_s for epoch in epochs_of_longest_run(epochs)]
    typical_s, expected_s = projection.epochs * projection.epoch_s_now, projection.epoch_s_expected
    if len(lengths_s) != projection.epochs or sum(lengths_s) >= (1 - th.ALIKE_EPOCHS_SHARE) * typical_s:
        return projection
    most_s = projection.epoch_s_now - expected_s
    saved_s = sum(min(max(length_s - expected_s, 0.0), most_s) for length_s in lengths_s)
    return replace(projection, recorded_s=(sum(lengths_s), sum(lengths_s) - saved_s))


def _resumed_after(findings: Sequence[Finding]) -> int | None:
    """Return after which epoch the training can be resumed: others that it did are done again; None where it cannot."""
    return next((a.resume_after for finding in findings for a in finding.advice if a.resume), None)


def _epochs(ending: Ending | None, resumed_after: int | None) -> tuple[int | None, bool]:
    """Return how many epochs are projected, and whether they are those that are left to do."""
    if ending is None:
        return None, False
    if ending.name in OVER or ending.epoch is None or ending.epochs is None:
        return (ending.epoch if ending.name == "early stop" else ending.epochs), False
    done = ending.epoch if ending.whole_epochs else ending.epoch - 1
    done = done if resumed_after is None else min(done, resumed_after)
    return max(ending.epochs - done, 0) or None, True

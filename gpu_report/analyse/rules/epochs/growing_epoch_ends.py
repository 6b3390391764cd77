"""Rule: epochs that get slower because what comes after their training takes longer: validation and saving."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from gpu_report.analyse.causes.confidence import LIKELY
from gpu_report.analyse.causes.weights_storage import fewer_files, save_elsewhere, waits_to_write
from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.epochs.comparable_epochs import KnownSlowdowns, TrainedEpoch, groups
from gpu_report.analyse.rules.epochs.growth import lost_gpu_s, numbers_of_growth, risen_since, thirds
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.analyse.timeseries.trend import Trend, mann_kendall_rise
from gpu_report.model import Advice, Cause, Finding
from gpu_report.wording import brief_length

SAID = {"validation": "validation", "checkpoint": "saving"}


def growing_epoch_ends(context: Context, epochs: Sequence[TrainedEpoch], held_up: KnownSlowdowns) -> list[Finding]:
    """Report ends of epochs that take longer and longer, by a share of the whole epoch that a person would notice.

    Of an epoch that something else held up, that is what made its end longer, too.
    """
    found = []
    for siblings in groups(epochs):
        ended = [each for each in held_up.undisturbed(siblings, by_drops=False) if _end_s(each)]
        grown = mann_kendall_rise([_end_s(each) for each in ended])
        if grown is not None and _matters(ended, grown):
            found.append(_finding(context, ended, grown))
    return found


def _end_s(epoch: TrainedEpoch) -> float:
    return epoch.validation_s + epoch.checkpoint_s


def _matters(epochs: Sequence[TrainedEpoch], grown: Trend) -> bool:
    """Tell whether it made epochs longer by SLOWING_SHARE, as for their training, and cost SLOW_AT_LEAST_S."""
    first, _ = thirds(epochs, grown)
    whole_s = median(each.train_s + _end_s(each) for each in first)
    return grown.grown >= th.SLOWING_SHARE * whole_s and _lost_s(epochs, grown) >= th.SLOW_AT_LEAST_S


def _lost_s(epochs: Sequence[TrainedEpoch], grown: Trend) -> float:
    return sum(_end_s(each) - grown.first for each in epochs)


def _finding(context: Context, epochs: Sequence[TrainedEpoch], grown: Trend) -> Finding:
    lost_s = _lost_s(epochs, grown)
    part = "validation" if _is_of_validation(epochs, grown) else "checkpoint"
    name, of_part = SAID[part], _of_part(epochs, grown, f"{part}_s")
    since = risen_since(epochs, [_end_s(each) for each in epochs], grown)
    from_to = f"from {brief_length(of_part.first)} to {brief_length(of_part.last)} an epoch"
    return context.finding(
        "epochs-slowing",
        "warning",
        (since.span[0], epochs[-1].span[1] + _end_s(epochs[-1])),
        f"Epochs got slower{'' if since is epochs[0] else f' from epoch {since.epoch} on'}: {name} went {from_to}",
        evidence=numbers_of_growth(of_part, f"{name} of an epoch", lost_s),
        cause=Cause(part, LIKELY, f"{name} went {from_to}"),
        advice=_on_weights(context, epochs, of_part) if part == "checkpoint" else (_look(name),),
        epoch=None,
        phase=None,
        lost_gpu_s=lost_gpu_s(context, epochs, lost_s),
    )


def _of_part(epochs: Sequence[TrainedEpoch], grown: Trend, part: str) -> Trend:
    """Return how one part of the ends of epochs rose, as the ends did."""
    first, last = (median(getattr(each, part) for each in third) for third in thirds(epochs, grown))
    return replace(grown, first=first, last=last)


def _look(name: str) -> Advice:
    short = f"Find what makes {name} longer"
    return Advice(f"{short}: more boxes, plots, or a callback that keeps or reads more each time", short=short)


def _on_weights(context: Context, epochs: Sequence[TrainedEpoch], grown: Trend) -> tuple[Advice, ...]:
    """Return what to do about saving that takes longer: where weights go, if the kernel saw that they are waited for.

    The waits for writes have to make as much of what it rose by as explains it.
    """
    training = context.training_at(epochs[0].span[0])
    waits = waits_to_write(context.run.waits)
    written = interval_cover(wait.span for wait in waits)
    first_s, last_s = (
        median(written.seconds_in((each.span[1] + each.validation_s, each.span[1] + _end_s(each))) for each in third)
        for third in thirds(epochs, grown)
    )
    if last_s - first_s < th.EXPLAINED_SHARE * grown.grown:
        return (_look(SAID["checkpoint"]),)
    longest = max(waits, key=lambda wait: wait.duration_s)
    return save_elsewhere(longest), *(fewer_files(training.args) if training is not None else ())


def _is_of_validation(epochs: Sequence[TrainedEpoch], grown: Trend) -> bool:
    """Tell whether validation grew by no less than saving."""
    validation, checkpoint = (_of_part(epochs, grown, part) for part in ("validation_s", "checkpoint_s"))
    return validation.grown >= checkpoint.grown

"""Rule: epochs that get slower because what comes after their training takes longer: validation, saving, callbacks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

from gpu_report.analyse.causes.confidence import LIKELY
from gpu_report.analyse.causes.main_process import in_call
from gpu_report.analyse.causes.weights_storage import fewer_files, save_elsewhere, waits_to_write
from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.epochs.comparable_epochs import KnownSlowdowns, TrainedEpoch, groups
from gpu_report.analyse.rules.epochs.growth import lost_gpu_s, numbers_of_growth, risen_since, thirds
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.analyse.timeseries.trend import Trend, mann_kendall_rise
from gpu_report.catalogue import GREW_IN_CALL_KEY
from gpu_report.model import Advice, Cause, CodeLocation, Evidence, Finding, Frame
from gpu_report.wording import brief_length, place_words, where_it_is

SAID = {"validation": "validation", "checkpoint": "saving"}


@dataclass(frozen=True)
class _Grown:
    """What grew: its name, from how many seconds an epoch to how many, why, and what to do.

    `at` is the line of the user's function that it is, which YOLO called or which its `call` called. Both are None
    where it is validation or saving as a whole.
    """

    name: str
    first_s: float
    last_s: float
    cause: Cause
    advice: tuple[Advice, ...]
    at: CodeLocation | None = None
    call: Frame | None = None

    @property
    def from_to(self) -> str:
        return f"from {brief_length(self.first_s)} to {brief_length(self.last_s)} an epoch"


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
    what = _grown_call(context, epochs, grown) or _grown_part(context, epochs, part, grown)
    since = risen_since(epochs, [_end_s(each) for each in epochs], grown)
    return context.finding(
        "epochs-slowing",
        "warning",
        (since.span[0], _end(epochs[-1])[1]),
        f"Epochs got slower{'' if since is epochs[0] else f' from epoch {since.epoch} on'}: "
        f"{what.name} went {what.from_to}",
        evidence=(*numbers_of_growth(grown, "validation and saving of an epoch", lost_s), *_of_call(what)),
        cause=what.cause,
        advice=what.advice,
        epoch=None,
        phase=None,
        lost_gpu_s=lost_gpu_s(context, epochs, lost_s),
        where=() if what.at is None else (what.at,),
        waited_for="" if what.call is None else what.call.named,
    )


def _end(epoch: TrainedEpoch) -> Span:
    return epoch.span[1], epoch.span[1] + _end_s(epoch)


def _grown_part(context: Context, epochs: Sequence[TrainedEpoch], part: str, grown: Trend) -> _Grown:
    """Return validation or saving as what grew, where no function of the user's is known to be it."""
    name, of_part = SAID[part], _of_part(epochs, grown, f"{part}_s")
    advice = _on_weights(context, epochs, of_part) if part == "checkpoint" else (_look(name),)
    found = _Grown(name, of_part.first, of_part.last, Cause(part, LIKELY, ""), advice)
    return replace(found, cause=Cause(part, LIKELY, f"{name} went {found.from_to}"))


def _grown_call(context: Context, epochs: Sequence[TrainedEpoch], grown: Trend) -> _Grown | None:
    """Return the user's function, called by YOLO, that made GROWN_IN_ONE_SHARE of a rise; None without one.

    A callback after saving or validation is no part of these, though their phases last until it is done.
    """
    training = context.training_at(epochs[0].span[0])
    gpu = min(training.gpus, default=None) if training is not None else None
    parts = [[_end(each) for each in part] for part in thirds(epochs, grown)]
    first, last = ({call: s / len(part) for call, s in context.signals.calls(gpu, part).items()} for part in parts)
    most = max(last, key=lambda call: last[call] - first.get(call, 0.0), default=None)
    if most is None or last[most] - first.get(most, 0.0) < th.GROWN_IN_ONE_SHARE * grown.grown:
        return None
    own = context.signals.own_code(gpu, most, parts[1], min(last[most] / grown.last, 1.0))
    first_s, last_s, short = first.get(most, 0.0), last[most], f"Look at {place_words(own.at)}"
    took = f"it took {brief_length(first_s)} an epoch at first, {brief_length(last_s)} at last"
    advice = Advice(f"{short}: {took}. What it draws, keeps or reads grows each time", short=short)
    cause = in_call(own, "the main process", "computed")
    return _Grown(where_it_is(own.at), first_s, last_s, cause, (advice,), own.at, most)


def _of_call(what: _Grown) -> tuple[Evidence, ...]:
    """Return the numbers of the user's function that grew, none without one."""
    if what.at is None:
        return ()
    return (
        Evidence("in the function, an epoch at first", what.first_s, "s"),
        Evidence("in the function, an epoch at last", what.last_s, "s", key=GREW_IN_CALL_KEY),
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

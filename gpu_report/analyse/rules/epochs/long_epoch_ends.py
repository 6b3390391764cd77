"""Rule: much of the time goes into the ends of epochs: validation and saving, which come once an epoch.

It is a note, for nothing is wrong: a small data set on a fast GPU is like that, or one with many images to validate.
Sets that may be swapped are a warning, and what could be advised besides would not fit then. So is saving that takes
far longer than weights need. Where validations reported their parts, it says which takes their time, and what to do.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

from gpu_report.analyse.causes.confidence import LIKELY
from gpu_report.analyse.causes.weights_storage import fewer_files
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.epochs.comparable_epochs import TrainedEpoch
from gpu_report.analyse.rules.epochs.epoch_parts import EpochParts
from gpu_report.analyse.rules.epochs.lone_validation import lone_validation
from gpu_report.analyse.rules.epochs.longer_epochs import longer_epochs
from gpu_report.analyse.rules.epochs.typical_validation import typical_validation
from gpu_report.analyse.rules.epochs.validation_advice import WRITE, ValidationAdvice, last_epoch_only, without_files
from gpu_report.analyse.rules.epochs.validation_sets import (
    check_sets,
    large_validation_set,
    smaller_validation_set,
    swapped_sets,
)
from gpu_report.analyse.rules.epochs.work_at_ends import WorkAtEnds, cause_at_ends, saving_advice, work_at_ends
from gpu_report.analyse.signals.thresholds import MOSTLY_SHARE
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.interval_cover import IntervalCover, interval_cover
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.catalogue import ENDS_EPOCHS_KEY, ENDS_SHARE_KEY, RULES, SWAPPED_KEY, WORK_AT_ENDS_KEY
from gpu_report.model import Advice, Cause, Evidence, Finding
from gpu_report.wording import and_words, length, upper_first


def long_epoch_ends(context: Context, epochs: Sequence[TrainedEpoch], found: Sequence[Finding]) -> list[Finding]:
    """Report each training whose epochs' ends take ENDS_SHARE of it or more, less what other findings say of them.

    Of their validations VALIDATION_SHARE is enough, of saving SAVING_SHARE that takes SAVING_LONG_S. LONG_ENDS_LEAST
    epochs tell it, two whose ends agree (the first of all may be one), or any whose validation is long.
    """
    told = interval_cover(each.span for f in found if RULES[f.rule].at_epoch_ends for each in f.each)
    return [
        finding for training in context.trainings for finding in _of_training(context, training, epochs, found, told)
    ]


def _of_training(
    context: Context,
    training: Training,
    epochs: Sequence[TrainedEpoch],
    found: Sequence[Finding],
    told: IntervalCover,
) -> Iterator[Finding]:
    known = _validated([each for each in epochs if _is_clear(context, each) and _lies_in(each, training)])
    alike = [each for each in known if each.alike]
    if len(alike) < th.LONG_ENDS_LEAST and not all(each.from_callbacks for each in known):
        return
    mine = alike if len(alike) >= th.LONG_ENDS_LEAST or _agree(alike, known) else known
    if not mine:
        return
    parts = _parts(context, training, mine, told)
    if not all(each.from_callbacks for each in mine) and not parts.is_large and not _is_steady(mine):
        return
    if mine is not alike and not parts.is_long_at_once:
        return
    since_s = mine[0].span[0]
    if mine is not alike and alike:  # the first end starts workers, loads kernels: what it takes comes once
        mine, parts = alike, _parts(context, training, alike, told)
    if parts.saves_long:
        yield replace(_finding(context, training, mine, parts, _of_saving(training, parts)), start_t_s=since_s)
    elif parts.named(["validation"], ["checkpoint"]) and (parts.share >= th.ENDS_SHARE or parts.mostly_validates):
        starved = [f for f in found if f.rule == "starved" and f.severity != "info"]  # more is advised on its steps
        is_starved = any(context.training_at(f.start_t_s, f.gpu) is training for f in starved)
        validating = _of_validation(context, training, parts, of_steps=not is_starved)
        waits = _of_waits(context, training, parts)
        smaller = tuple(smaller_validation_set(training, parts))
        advice = tuple(check_sets(training, parts)) or (*longer_epochs(training, parts), *smaller, *validating, *waits)
        yield replace(_finding(context, training, mine, parts, advice), start_t_s=since_s)


def _validated(epochs: Sequence[TrainedEpoch]) -> Sequence[TrainedEpoch]:
    """Return the epochs without those in whose validation the training was stopped: it never said its parts."""
    told = any(each.validated for each in epochs)
    return [each for each in epochs if not told or each.validated or not each.validation_s]


def _is_clear(context: Context, epoch: TrainedEpoch) -> bool:
    """Tell whether the end of an epoch is known: as callbacks reported it, or so long that its edges matter little.

    From outside these are known to a reading, and what lies at them to a second or two.
    """
    reading_s = max((series.tick_s for series in context.series), default=0.0)
    clear_s = max(th.CLEAR_END_S, th.CLEAR_END_READINGS * reading_s)
    return epoch.from_callbacks or epoch.validation_s + epoch.checkpoint_s >= clear_s


def _agree(alike: Sequence[TrainedEpoch], known: Sequence[TrainedEpoch]) -> bool:
    """Tell whether a few epochs are enough, since their ends are long and take about as long every time.

    Or each of them is mostly its end: what ends differ by then changes nothing. The first one's has what the others
    have, and starts workers: it can only be longer. So one more epoch is enough where its end takes longer than its
    training, or so long that a start of workers is little of it.
    """
    ends = [each.validation_s + each.checkpoint_s for each in alike]
    if len(ends) == 1:
        first_s = min((each.validation_s + each.checkpoint_s for each in known if not each.alike), default=0.0)
        long_s = max(th.LONG_END_S, min(alike[0].train_s, th.LONG_END_ALONE_S))
        return ends[0] >= long_s and first_s * th.ENDS_AGREE >= ends[0]
    if not ends or min(ends) < th.LONG_END_S:
        return False
    mostly_ends = len(ends) >= th.LARGE_ENDS_LEAST and all(_end_share(each) >= th.LARGE_ENDS_SHARE for each in alike)
    return mostly_ends or max(ends) <= th.ENDS_AGREE * min(ends)


def _end_share(epoch: TrainedEpoch) -> float:
    """Return the share (0 to 1) of an epoch that its end takes."""
    end_s = epoch.validation_s + epoch.checkpoint_s
    return end_s / (epoch.train_s + end_s)


def _is_steady(epochs: Sequence[TrainedEpoch]) -> bool:
    """Tell whether each epoch ends with a long validation, about as long every time: what the GPU waits for is not."""
    validations = [each.validation_s for each in epochs]
    return min(validations) >= th.LONG_VALIDATION_S and max(validations) <= th.ENDS_AGREE * min(validations)


def _lies_in(epoch: TrainedEpoch, training: Training) -> bool:
    same = training.number is None or epoch.group[0] == training.number
    return same and training.span[0] <= epoch.span[0] < training.span[1]


def _whole_s(training: Training, epoch: TrainedEpoch) -> float:
    """Return what an epoch takes to train as a whole: `time` cuts the last one."""
    batches = training.quantity("batches")
    cut = bool(batches and epoch.batches and epoch.batches < batches)
    return epoch.train_s * (batches or 0.0) / (epoch.batches or 1) if cut else epoch.train_s


def _parts(context: Context, training: Training, epochs: Sequence[TrainedEpoch], told: IntervalCover) -> EpochParts:
    validations = [(each.span[1], each.span[1] + each.validation_s) for each in epochs]
    checkpoints = [(end, end + each.checkpoint_s) for (_, end), each in zip(validations, epochs, strict=True)]
    return EpochParts(
        median(_whole_s(training, each) for each in epochs),
        median(_unreported_s(span, told) for span in validations),
        median(_unreported_s(span, told) for span in checkpoints),
        len(epochs),
        typical_validation([each.validated for each in epochs if each.validated]),
        median(told.seconds_in((start, end)) for (start, _), (_, end) in zip(validations, checkpoints, strict=True)),
        *(work_at_ends(context, training, part) for part in (validations, checkpoints)),
    )


def _unreported_s(span: Span, told: IntervalCover) -> float:
    return span[1] - span[0] - told.seconds_in(span)


def _finding(
    context: Context,
    training: Training,
    epochs: Sequence[TrainedEpoch],
    parts: EpochParts,
    advice: tuple[Advice, ...],
) -> Finding:
    saving = ["saving"] if context.run.stacks else ["saving", "callbacks"]  # which only stacks tell apart
    named = saving if parts.saves_long else parts.named(["validation"], saving)
    largest = "" if parts.saves_long else _of_validations(context, training, epochs, parts)
    last = epochs[-1]
    return context.finding(
        "long-epoch-ends",
        "warning" if swapped_sets(training, parts) or parts.saves_long or _writes_files(advice, parts) else "info",
        (epochs[0].span[0], last.span[1] + last.validation_s + last.checkpoint_s),
        _summary(parts, named, largest),
        gpu=min(training.gpus, default=None),
        epoch=None,
        phase=None,
        evidence=_numbers(training, parts),
        cause=_cause(parts, named),
        advice=tuple(replace(each, of_epoch=True) for each in advice),
    )


def _writes_files(advice: Sequence[Advice], parts: EpochParts) -> bool:
    """Tell whether to write predictions as files, off unless asked for, takes most of the ends of epochs."""
    return any(each.argument in WRITE and (each.gain_at_most or 0.0) >= MOSTLY_SHARE * parts.share for each in advice)


def _cause(parts: EpochParts, named: Sequence[str]) -> Cause:
    saves = parts.is_mostly_saving
    if saves and parts.saving:
        return cause_at_ends(parts.saving)
    why = f"{and_words(named)} after every {parts.train_s:.1f} s of training"
    return Cause("checkpoint" if saves else "validation", LIKELY, why)


def _summary(parts: EpochParts, named: Sequence[str], largest: str) -> str:
    takes = "take" if len(named) > 1 else "takes"
    share = parts.checkpoint_s / parts.epoch_s if parts.saves_long else parts.share
    besides = ", without the stalls there" if parts.reported_s >= th.ENDS_NAMED_S else ""
    mostly = f"; {largest}" if largest else ""
    return f"{upper_first(and_words(named))} {takes} {100 * share:.0f} % of each epoch{besides}{mostly}"


def _numbers(training: Training, parts: EpochParts) -> tuple[Evidence, ...]:
    return evidence(
        ("training of an epoch (median)", parts.train_s, "s"),
        ("validation of an epoch (median)", parts.validation_s or None, "s"),
        ("checkpoint of an epoch (median)", parts.checkpoint_s or None, "s"),
        *(parts.typical.evidence if parts.typical else ()),
        Evidence("validation and checkpoint, of the time of an epoch", 100 * parts.share, "%", key=ENDS_SHARE_KEY),
        Evidence("epochs compared", parts.epochs, key=ENDS_EPOCHS_KEY),
        *_of_work(parts.work),
        *_of_images(training, parts),
    )


def _of_work(work: WorkAtEnds | None) -> Iterator[Evidence]:
    if work is not None:
        yield Evidence("CPU of the main process there, with an idle GPU", work.main_cpu_pct, "% of a core")
        yield Evidence("of the longest part of the end, so", 100 * work.share, "%", key=WORK_AT_ENDS_KEY)


def _of_validations(context: Context, training: Training, epochs: Sequence[TrainedEpoch], parts: EpochParts) -> str:
    """Return who waits for whom in validations, else which of their parts takes longest; empty where nobody knows."""
    validations = [(each.span[1], each.span[1] + each.validation_s) for each in epochs if each.validation_s]
    alone = lone_validation(context, training, validations)
    if alone is not None:
        return alone.words
    large = large_validation_set(training, parts)
    if large is not None:
        return f"{large[0]:,.0f} images validate, {large[1]:,.0f} train"
    return parts.typical.largest_words if parts.typical else _computing(parts)


def _computing(parts: EpochParts) -> str:
    """Return for how long of a validation the main process computes with an idle GPU; empty where that is not known."""
    if not parts.computed_s or not parts.mostly_validates:
        return ""
    return f"the main process computes alone for {length(parts.computed_s)} of it"


def _of_saving(training: Training, parts: EpochParts) -> tuple[Advice, ...]:
    """Return what to do about what takes long once weights are to be saved; nearly all of it can be won.

    How many files are written matters where it may be that, and not a callback that computes or sleeps.
    """
    may_write = parts.saving is None or parts.saving.work == "waited for storage"
    gain = parts.checkpoint_s / parts.epoch_s
    files = fewer_files(training.args) if may_write else ()
    return replace(saving_advice(parts.saving), gain_at_most=gain), *files


def _of_images(training: Training, parts: EpochParts) -> Iterator[Evidence]:
    sets = swapped_sets(training, parts)
    if sets is not None:
        yield Evidence("images to validate, for each to train", sets[1] / sets[0], key=SWAPPED_KEY)


def _of_validation(context: Context, training: Training, parts: EpochParts, *, of_steps: bool) -> list[Advice]:
    """Return what to change about validations that take much of an epoch.

    Where their parts are not known, as without callbacks, that is how often to validate.
    """
    if not parts.mostly_validates:
        return []
    if parts.typical is None:
        files = without_files(training, parts.computed_s, parts.epoch_s) if parts.computed_s else ()
        return [*files, *last_epoch_only(training, parts.validation_s, parts.epoch_s)]
    advice = ValidationAdvice(context, training, parts.typical, parts.epoch_s)
    return [*advice.on_validation(), *(advice.on_loading() if of_steps else ())]


def _of_waits(context: Context, training: Training, parts: EpochParts) -> list[Advice]:
    if not parts.mostly_validates or parts.typical is None:
        return []
    return ValidationAdvice(context, training, parts.typical, parts.epoch_s).on_waits()

"""Rule: much of the time goes into the ends of epochs: validation and saving, which come once an epoch.

It is a note, for nothing is wrong: a small data set on a fast GPU is like that, or one with many images to validate.
Sets that may be swapped are a warning, and what could be advised besides would not fit then. So is saving that takes
far longer than weights need. Where validations reported their parts, it says which takes their time, and what to do.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from statistics import median

from gpu_report.analyse.causes.confidence import LIKELY
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.epochs.comparable_epochs import TrainedEpoch
from gpu_report.analyse.rules.epochs.lone_validation import lone_validation
from gpu_report.analyse.rules.epochs.typical_validation import RECURRING, TypicalValidation, typical_validation
from gpu_report.analyse.rules.epochs.validation_advice import WRITE, ValidationAdvice, last_epoch_only, without_files
from gpu_report.analyse.rules.epochs.work_at_ends import WorkAtEnds, cause_at_ends, saving_advice, work_at_ends
from gpu_report.analyse.signals.thresholds import MOSTLY_SHARE
from gpu_report.analyse.timeline.trainings import BYTES_PER_PIXEL, Training, whole
from gpu_report.analyse.timeseries.interval_cover import IntervalCover, interval_cover
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.catalogue import ENDS_EPOCHS_KEY, ENDS_SHARE_KEY, RULES, SWAPPED_KEY, WORK_AT_ENDS_KEY
from gpu_report.model import Advice, Cause, Evidence, Finding, Setting
from gpu_report.wording import and_words, length, upper_first

MIB = 2**20


@dataclass(frozen=True)
class _EpochParts:
    """What an epoch takes (s, medians) in training, in its validation and in saving, and how many epochs say so.

    `typical` are the parts of the validations, None where they did not report them. `reported_s` is what other
    findings say of an epoch's end (median): it is not in the others. `saving` and `validating` are what the main
    process did in both, None where nobody knows.
    """

    train_s: float
    validation_s: float
    checkpoint_s: float
    epochs: int
    typical: TypicalValidation | None
    reported_s: float
    validating: WorkAtEnds | None = None
    saving: WorkAtEnds | None = None

    @property
    def end_s(self) -> float:
        return self.validation_s + self.checkpoint_s

    @property
    def share(self) -> float:
        """Return the share (0 to 1) of an epoch that its end takes."""
        return self.end_s / self.epoch_s

    @property
    def mostly_validates(self) -> bool:
        """Tell whether validation takes so much of an epoch that its parts matter."""
        return self.validation_s >= th.VALIDATION_SHARE * self.epoch_s

    @property
    def is_long_at_once(self) -> bool:
        """Tell whether one part is so long, and longer than the training before it, that the first epoch tells."""
        recurs_s = self.typical.of(RECURRING) if self.typical else 0.0
        long_validation = self.validation_s >= max(th.LONG_VALIDATION_S, self.train_s)
        long_validation |= recurs_s >= max(th.LONG_END_S, th.ENDS_SHARE * (self.train_s + recurs_s))
        return long_validation or self.checkpoint_s >= max(th.SAVING_LONG_S, self.train_s)

    @property
    def saves_long(self) -> bool:
        """Tell whether saving takes far longer than weights need, and is what matters of the end of an epoch."""
        long = self.checkpoint_s >= max(th.SAVING_LONG_S, th.SAVING_SHARE * self.epoch_s)
        else_short = self.share < th.ENDS_SHARE and not self.mostly_validates
        return long and (else_short or self.checkpoint_s > self.validation_s)

    @property
    def is_large(self) -> bool:
        """Tell whether the end of an epoch, or saving alone, takes so much that it is plain from outside."""
        saving_s = max(th.SAVING_LONG_S, th.LARGE_SAVING_SHARE * self.epoch_s)
        return self.share >= th.LARGE_ENDS_SHARE or self.checkpoint_s >= saving_s

    @property
    def computed_s(self) -> float:
        """Return for how long of a validation the main process computes with an idle GPU, 0 where that is not known."""
        work = self.validating
        return work.share * self.validation_s if work is not None and work.work == "computed" else 0.0

    @property
    def is_mostly_saving(self) -> bool:
        """Tell whether saving and callbacks are what matters of the end of an epoch, and not validation."""
        return self.saves_long or self.validation_s < self.checkpoint_s

    @property
    def work(self) -> WorkAtEnds | None:
        """Return what the main process did in the part that matters, None where nobody knows."""
        return self.saving if self.is_mostly_saving else self.validating

    @property
    def epoch_s(self) -> float:
        """Return what an epoch takes with its end, and with what other findings say of that."""
        return self.train_s + self.end_s + self.reported_s

    def named(self, validation: Sequence[str], checkpoint: Sequence[str]) -> list[str]:
        """Return the words for the parts of its end that are worth one."""
        parts = ((validation, self.validation_s), (checkpoint, self.checkpoint_s))
        return [word for words, seconds in parts if seconds >= th.ENDS_NAMED_S for word in words]


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
    if parts.saves_long:
        yield _finding(context, training, mine, parts, (_of_saving(parts),))
    elif parts.named(["validation"], ["checkpoint"]) and (parts.share >= th.ENDS_SHARE or parts.mostly_validates):
        starved = [f for f in found if f.rule == "starved" and f.severity != "info"]  # more is advised on its steps
        is_starved = any(context.training_at(f.start_t_s, f.gpu) is training for f in starved)
        validating = _of_validation(context, training, parts, of_steps=not is_starved)
        waits = _of_waits(context, training, parts)
        smaller = tuple(_smaller_set(training, parts))
        advice = tuple(_of_sets(training, parts)) or (*_advice(training, parts), *smaller, *validating, *waits)
        yield _finding(context, training, mine, parts, advice)


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


def _parts(context: Context, training: Training, epochs: Sequence[TrainedEpoch], told: IntervalCover) -> _EpochParts:
    validations = [(each.span[1], each.span[1] + each.validation_s) for each in epochs]
    checkpoints = [(end, end + each.checkpoint_s) for (_, end), each in zip(validations, epochs, strict=True)]
    return _EpochParts(
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
    parts: _EpochParts,
    advice: tuple[Advice, ...],
) -> Finding:
    saving = ["saving"] if context.run.stacks else ["saving", "callbacks"]  # which only stacks tell apart
    named = saving if parts.saves_long else parts.named(["validation"], saving)
    largest = "" if parts.saves_long else _of_validations(context, training, epochs, parts)
    last = epochs[-1]
    return context.finding(
        "long-epoch-ends",
        "warning" if _swapped(training, parts) or parts.saves_long or _writes_files(advice, parts) else "info",
        (epochs[0].span[0], last.span[1] + last.validation_s + last.checkpoint_s),
        _summary(parts, named, largest),
        gpu=min(training.gpus, default=None),
        epoch=None,
        phase=None,
        evidence=_numbers(training, parts),
        cause=_cause(parts, named),
        advice=tuple(replace(each, of_epoch=True) for each in advice),
    )


def _writes_files(advice: Sequence[Advice], parts: _EpochParts) -> bool:
    """Tell whether to write predictions as files, off unless asked for, takes most of the ends of epochs."""
    return any(each.argument in WRITE and (each.gain_at_most or 0.0) >= MOSTLY_SHARE * parts.share for each in advice)


def _cause(parts: _EpochParts, named: Sequence[str]) -> Cause:
    saves = parts.is_mostly_saving
    if saves and parts.saving:
        return cause_at_ends(parts.saving)
    why = f"{and_words(named)} after every {parts.train_s:.1f} s of training"
    return Cause("checkpoint" if saves else "validation", LIKELY, why)


def _summary(parts: _EpochParts, named: Sequence[str], largest: str) -> str:
    takes = "take" if len(named) > 1 else "takes"
    share = parts.checkpoint_s / parts.epoch_s if parts.saves_long else parts.share
    besides = ", without the stalls there" if parts.reported_s >= th.ENDS_NAMED_S else ""
    mostly = f"; {largest}" if largest else ""
    return f"{upper_first(and_words(named))} {takes} {100 * share:.0f} % of each epoch{besides}{mostly}"


def _numbers(training: Training, parts: _EpochParts) -> tuple[Evidence, ...]:
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


def _of_validations(context: Context, training: Training, epochs: Sequence[TrainedEpoch], parts: _EpochParts) -> str:
    """Return who waits for whom in validations, else which of their parts takes longest; empty where nobody knows."""
    validations = [(each.span[1], each.span[1] + each.validation_s) for each in epochs if each.validation_s]
    alone = lone_validation(context, training, validations)
    if alone is not None:
        return alone.words
    large = _large_set(training, parts)
    if large is not None:
        return f"{large[0]:,.0f} images validate, {large[1]:,.0f} train"
    return parts.typical.largest_words if parts.typical else _computing(parts)


def _computing(parts: _EpochParts) -> str:
    """Return for how long of a validation the main process computes with an idle GPU; empty where that is not known."""
    if not parts.computed_s or not parts.mostly_validates:
        return ""
    return f"the main process computes alone for {length(parts.computed_s)} of it"


def _of_saving(parts: _EpochParts) -> Advice:
    """Return what to do about what takes long once weights are to be saved; nearly all of it can be won."""
    return replace(saving_advice(parts.saving), gain_at_most=parts.checkpoint_s / parts.epoch_s)


def _of_images(training: Training, parts: _EpochParts) -> Iterator[Evidence]:
    sets = _swapped(training, parts)
    if sets is not None:
        yield Evidence("images to validate, for each to train", sets[1] / sets[0], key=SWAPPED_KEY)


def _of_validation(context: Context, training: Training, parts: _EpochParts, *, of_steps: bool) -> list[Advice]:
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


def _of_waits(context: Context, training: Training, parts: _EpochParts) -> list[Advice]:
    if not parts.mostly_validates or parts.typical is None:
        return []
    return ValidationAdvice(context, training, parts.typical, parts.epoch_s).on_waits()


def _swapped(training: Training, parts: _EpochParts) -> tuple[float, float] | None:
    """Return how many images train, and how many validate, where those are far more and take much of an epoch.

    Not of a `fraction`, which ultralytics takes of the training images alone.
    """
    train, validate = training.quantity("images"), training.quantity("val_images")
    is_whole = training.args.get("fraction", 1.0) in {None, 1}
    if not train or not validate or not is_whole or not parts.mostly_validates:
        return None
    return (train, validate) if validate >= th.SWAPPED_TIMES * train else None


def _of_sets(training: Training, parts: _EpochParts) -> Iterator[Advice]:
    """Yield to look at the data sets where far more images validate than train: what is won is that of as many."""
    sets = _swapped(training, parts)
    if sets is not None:
        train, validate = sets
        gain = parts.validation_s * (1 - train / validate) / parts.epoch_s
        short = f"Check `train` and `val` in `data.yaml` ({train:,.0f} images train, {validate:,.0f} validate)"
        yield Advice(f"{short}. They may be swapped; else validate on fewer", gain_at_most=gain, short=short)


def _large_set(training: Training, parts: _EpochParts) -> tuple[float, float, float] | None:
    """Return how many images validate, how many train, and how many would be enough, where they are far more.

    None where they do not matter or may be swapped, and of a `fraction`, which is of training images alone.
    """
    train, validate = training.quantity("images"), training.quantity("val_images")
    is_whole = training.args.get("fraction", 1.0) in {None, 1}
    if not train or not validate or not is_whole or not parts.mostly_validates or _swapped(training, parts):
        return None
    enough = max(float(th.ENOUGH_VAL_IMAGES), th.ENOUGH_VAL_SHARE * train)
    return (validate, train, enough) if validate >= th.LARGE_VAL_TIMES * enough else None


def _smaller_set(training: Training, parts: _EpochParts) -> Iterator[Advice]:
    """Yield to validate on fewer images, where a large set takes much of each epoch."""
    large = _large_set(training, parts)
    if large is not None:
        validate, train, enough = large
        short, now = "Validate on fewer images", f"{validate:,.0f} now, {train:,.0f} train"
        why = f"{enough:,.0f} are mostly enough to show which epoch is better. Evaluate on all after the training"
        gain = parts.validation_s * (1 - enough / validate) / parts.epoch_s
        yield Advice(f"{short} ({now}): {why}", gain_at_most=gain, short=short)


def _advice(training: Training, parts: _EpochParts) -> Iterator[Advice]:
    """Yield how to make epochs longer, so that fewer end, where that leaves the training as it is otherwise.

    It is told as whole arguments: ultralytics takes no fraction for most of them, and 0 switches some of them off.
    """
    times = _times(training)
    if times is None:
        return
    gain = parts.share * (1 - 1 / times)
    shorter = tuple(_shorter(training.args, times))
    typed = " ".join(f"{each.argument}={each.to_value}" for each in shorter)
    often = "twice" if times == 2 else f"{times} times"
    less = " and ".join(parts.named(["validates"], ["saves"]))
    rarely = upper_first(" and ".join(parts.named(["validate"], ["save"])))
    do = "Validate on fewer images, or" if _large_set(training, parts) else rarely
    yield Advice(
        f"List the training images {often} in `data.yaml` (`train: [images/train, images/train, ...]`) and set "
        f"`{typed}`. The training then takes about as many steps, and {less} less often",
        gain_estimate=gain,
        short=f"{do} less often, in epochs {often} as long",
        also=shorter,
        images_times=times,
    )


def _times(training: Training) -> int | None:
    """Return how many times as long epochs can be: EPOCHS_KEPT are left, and the steps are about as many.

    None where no number of times will do: classes are folders, `time` says how long to train whatever the epochs, and a
    cache in memory holds each image as often as it is listed.
    """
    args, asked = training.args, whole(training.args.get("epochs"))
    if asked is None or args.get("time") or args.get("task") == "classify":
        return None
    fits = (times for times in range(th.LONGER_EPOCHS, 1, -1) if asked // times >= th.EPOCHS_KEPT)
    return next((times for times in fits if _keeps_steps(training, asked, times) and _fits(training, times)), None)


def _keeps_steps(training: Training, epochs: int, times: int) -> bool:
    """Tell whether there are about as many steps then: the last batch of an epoch, and of all epochs, may be cut."""
    images, batch = training.quantity("images"), whole(training.args.get("batch"))
    if not images or not batch:
        return epochs % times <= (1 - th.STEPS_KEPT) * epochs
    now = ceil(images / min(batch, images)) * epochs
    then = ceil(images * times / min(batch, images * times)) * (epochs // times)
    return th.STEPS_KEPT <= then / now <= 1 / th.STEPS_KEPT


def _fits(training: Training, times: int) -> bool:
    """Tell whether the images that a cache in memory would hold then are few enough not to be asked about."""
    if str(training.settings.get("cache", training.args.get("cache"))) not in {"ram", "True"}:
        return True
    images, side = training.quantity("images"), whole(training.args.get("imgsz"))
    if not images or not side:
        return False
    return times * images * BYTES_PER_PIXEL * side**2 <= th.CACHED_TIMES_MIB * MIB


def _shorter(args: Mapping[str, object], times: int) -> Iterator[Setting]:
    """Yield the arguments that count epochs, with a share of their value that ultralytics takes.

    A patience that is as long as the training is left out: it never ends one.
    """
    epochs = (whole(args.get("epochs")) or 0) // times
    for name in ("epochs", "close_mosaic", "patience", "save_period"):
        value = whole(args.get(name))
        shorter = epochs if name == "epochs" else max(round((value or 0) / times), 1)
        if value and not (name == "patience" and shorter >= epochs):
            yield Setting(name, str(value), str(shorter))
    warm_up = args.get("warmup_epochs")
    if isinstance(warm_up, int | float) and warm_up > 0:
        yield Setting("warmup_epochs", f"{warm_up:g}", f"{warm_up / times:g}")

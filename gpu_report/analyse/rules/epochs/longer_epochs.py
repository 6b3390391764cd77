"""Advice to make epochs longer, so that fewer of them end: which arguments keep the training as it is otherwise."""

from collections.abc import Iterator, Mapping
from math import ceil

from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.epochs.epoch_parts import EpochParts
from gpu_report.analyse.rules.epochs.validation_sets import large_validation_set
from gpu_report.analyse.timeline.trainings import BYTES_PER_PIXEL, Training, whole
from gpu_report.model import Advice, Setting
from gpu_report.wording import upper_first

MIB = 2**20


def longer_epochs(training: Training, parts: EpochParts) -> Iterator[Advice]:
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
    do = "Validate on fewer images, or" if large_validation_set(training, parts) else rarely
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

"""When the epochs of a YOLO training ended, by the times of the scalars that YOLO itself writes for TensorBoard.

ultralytics (utils/callbacks/tensorboard.py) writes `train/` and `lr/` at on_train_epoch_end, before the validation, and
`metrics/` and `val/` at on_fit_epoch_end, after the checkpoint. The step is the epoch, counted from 1. The final
evaluation writes `metrics/` once more, at the last epoch's step or at one more: the first time counts, and what has no
train part is no epoch.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from gpu_report.tfevents.events import EventFile, Scalar

OF_TRAIN_PART: Final = ("train/", "lr/")
OF_EPOCH: Final = ("metrics/", "val/")
LARGEST_EPOCH: Final = 10_000_000
FLOAT_DIGITS: Final = 7  # significant ones of a float of four bytes
MOST_METRICS: Final = 100  # of an epoch: YOLO has 20


@dataclass
class TensorBoardEpoch:
    """An epoch: when its train part ended and when all of it did (s since 1970; None: not written), and its figures."""

    epoch: int
    trained_wall_s: float | None = None
    ended_wall_s: float | None = None
    metrics: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class LoggedTraining:
    """What one process wrote: when it began (to train where it wrote its graph, else to prepare that), its epochs."""

    start_wall_s: float | None
    epochs: tuple[TensorBoardEpoch, ...]


def is_of_epoch(tag: str) -> bool:
    """Tell whether YOLO writes a tag at the end of an epoch, or of its train part."""
    return tag.startswith((*OF_TRAIN_PART, *OF_EPOCH))


def logged_trainings(files: Sequence[EventFile]) -> list[LoggedTraining]:
    """Return what each file says, in order of time; each process of YOLO makes a file of its own."""
    found = []
    for file in files:
        epochs = _epochs([scalar for scalar in file.scalars if is_of_epoch(scalar.tag)])
        if epochs:
            found.append(LoggedTraining(_start_s(file, _first_s(epochs)), tuple(epochs)))
    return sorted(found, key=lambda each: _first_s(each.epochs))


def _start_s(file: EventFile, first_s: float) -> float | None:
    """Return when a training began: the latest that the file says before its first epoch's scalars."""
    return max((at_s for at_s in (file.begun_s, file.graph_s) if at_s is not None and at_s <= first_s), default=None)


def _first_s(epochs: Sequence[TensorBoardEpoch]) -> float:
    times = (each.trained_wall_s or each.ended_wall_s for each in epochs)
    return next((time for time in times if time is not None), math.inf)


def _epochs(scalars: Sequence[Scalar]) -> list[TensorBoardEpoch]:
    """Return the epochs in the order in which they ended: one that was trained again stands there twice."""
    epochs: list[TensorBoardEpoch] = []
    for scalar in scalars:
        if not 0 < scalar.step <= LARGEST_EPOCH:
            continue
        trained = scalar.tag.startswith(OF_TRAIN_PART)
        if not epochs or _begins_another(epochs[-1], scalar, trained=trained):
            epochs.append(TensorBoardEpoch(scalar.step))
        _add(epochs[-1], scalar, trained=trained)
    return [each for each in epochs if each.trained_wall_s is not None] or epochs


def _begins_another(last: TensorBoardEpoch, scalar: Scalar, *, trained: bool) -> bool:
    """Tell whether a scalar is of another epoch than the one before: of another step, or of the same one once more."""
    return scalar.step != last.epoch or (trained and last.ended_wall_s is not None)


def _add(epoch: TensorBoardEpoch, scalar: Scalar, *, trained: bool) -> None:
    if trained and epoch.trained_wall_s is None:
        epoch.trained_wall_s = scalar.wall_s
    elif not trained and epoch.ended_wall_s is None:
        epoch.ended_wall_s = scalar.wall_s
    if math.isfinite(scalar.value) and len(epoch.metrics) < MOST_METRICS:
        epoch.metrics.setdefault(scalar.tag, float(f"{scalar.value:.{FLOAT_DIGITS}g}"))


def moments(trainings: Sequence[LoggedTraining]) -> Iterator[tuple[float, dict[str, object]]]:
    """Yield the fields of schema.EVENT_KINDS["tensorboard"], but for the run, with their wall times (s since 1970)."""
    for number, training in enumerate(trainings, start=1):
        if training.start_wall_s is not None:
            yield training.start_wall_s, {"training": number, "part": "start", "epoch": None, "metrics": {}}
        for each in training.epochs:
            if each.trained_wall_s is not None:
                yield each.trained_wall_s, {"training": number, "part": "train", "epoch": each.epoch, "metrics": {}}
            if each.ended_wall_s is not None:
                fields = {"training": number, "part": "epoch", "epoch": each.epoch, "metrics": each.metrics}
                yield each.ended_wall_s, fields

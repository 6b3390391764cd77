"""What YOLO did and when: its runs, epochs, phases and validations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from gpu_report.model.time_span import TimeSpan


@dataclass(frozen=True)
class EpochRow:
    """A row of results.csv and when it appeared: after the epoch's validation, before its checkpoint.

    `epoch` is 1-based; `run` counts YOLO runs in this recording from 1; `segment` counts resumes from 1.
    `metrics` holds the row's other columns by their names in the file. `saved_t_s` is when its checkpoint had been
    written, by the files' times; None where nobody looked at them in time. `trained_t_s` is when the epoch's train part
    ended, by the times that YOLO's own TensorBoard events carry; None without those.
    """

    run: int
    segment: int
    epoch: int
    row_t_s: float
    start_t_s: float
    metrics: Mapping[str, float] = field(default_factory=dict)
    saved_t_s: float | None = None
    trained_t_s: float | None = None


@dataclass(frozen=True)
class YoloRun:
    """The YOLO run that was watched: where it lay, its arguments, and how its epochs were put on our clock.

    `anchor` is recorded (rows stamped as they appeared), tensorboard (YOLO's events there), file-time, train-start,
    fitted, none, or no-epoch (nothing to place, since it did not come to the end of one);
    `uncertainty_s` is the stated error of that placement, None where it is exact to the tick. `started_t_s` is when
    args.yaml was written, which YOLO does first of all; `checkpoint_s` how long its last checkpoint took to write, by
    the files' times; both None where those are not known.
    """

    number: int
    path: str | None
    args: Mapping[str, object]
    anchor: Literal["recorded", "tensorboard", "file-time", "train-start", "fitted", "none", "no-epoch"]
    uncertainty_s: float | None
    note: str = ""
    started_t_s: float | None = None
    checkpoint_s: float | None = None


PhaseName = Literal["startup", "train", "validation", "checkpoint", "final evaluation", "idle", "predict", "export"]
OF_EPOCHS: frozenset[PhaseName] = frozenset({"train", "validation", "checkpoint"})  # the phases of an epoch
AT_EPOCH_END: frozenset[PhaseName] = OF_EPOCHS - {"train"}
ValidationPart = Literal[
    "data", "preprocess", "inference", "loss", "postprocess", "metrics", "plots", "gather", "other"
]
VALIDATION_PARTS: tuple[ValidationPart, ...] = get_args(ValidationPart)


@dataclass(frozen=True)
class Validation(TimeSpan):
    """A validation as our callbacks saw it on rank 0, from on_val_start to on_val_end, and where its time went.

    `seconds` are those of its parts, which add up to its length; what is not known is not in it. `data` is the wait for
    the loader, `first_wait_s` what of it came before the first batch. `preprocess` to `postprocess` (NMS, where the
    model has it) are as ultralytics counts them, the GPU waited for. `plots` is none of `metrics`, `gather` the wait
    for other ranks. `images` are of all ranks, `batches` of this one, of `batch` images each. None: not known.
    """

    start_t_s: float
    end_t_s: float
    epoch: int | None
    images: int | None
    batches: int
    seconds: Mapping[ValidationPart, float]
    first_wait_s: float = 0.0
    batch: int | None = None
    workers: int | None = None

    @property
    def images_per_s(self) -> float | None:
        """Return how many images a second it validated, None where that is not known."""
        return self.images / self.duration_s if self.images and self.duration_s > 0 else None


# Sources of phases of which more is said than their name: YOLO's callbacks, its own events there.
FROM_CALLBACKS, FROM_TENSORBOARD = "callbacks", "TensorBoard"


@dataclass(frozen=True)
class Phase(TimeSpan):
    """What YOLO was doing from `start_t_s` to `end_t_s`, and where that is known from.

    `detail` names the part of a phase where that is known: of startup `imports`, `setup`, `data set`, `model` or
    `first batch`, of train `close mosaic`. Its edges are known to `uncertainty_s`, None where nobody can say how well.
    `validated` is the validation that lies in it, None where none does, or nothing is known of its parts.
    """

    name: PhaseName
    epoch: int | None
    start_t_s: float
    end_t_s: float
    source: str
    detail: str = ""
    uncertainty_s: float | None = None
    validated: Validation | None = field(default=None, hash=False)

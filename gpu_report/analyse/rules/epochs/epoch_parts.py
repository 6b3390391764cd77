"""What an epoch takes in its training and at its end: which of them matters, and for how much of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.epochs.typical_validation import RECURRING, TypicalValidation
from gpu_report.analyse.rules.epochs.work_at_ends import WorkAtEnds


@dataclass(frozen=True)
class EpochParts:
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
        """Return what validation and saving take of an epoch together."""
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
        long_validation |= recurs_s >= max(th.LONG_END_S, th.VALIDATION_SHARE * (self.train_s + recurs_s))
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

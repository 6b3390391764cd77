"""What an epoch takes now, what it could take without one cause, and what a fix comes to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpu_report.model.code import CodeLocation

LEAST_SPEED_UP = 1.05  # times as fast: less is not worth a person's time, and within what epochs differ by anyway


@dataclass(frozen=True)
class SpeedupLimit:
    """What the training part of an epoch could be without one cause, in seconds.

    `epoch_s_now` is the median of steady epochs where the cause holds all the time, else the mean of all; the first
    epoch of a process and the one that closes the mosaic are in neither.
    `epoch_s_at_best` cannot be beaten by removing this cause alone; `epoch_s_estimate` is what the best fix among
    the advice (`fix`, as it is typed) is likely to reach, None where that cannot be worked out. `basis` says what
    the best rests on, `now_is` which epochs the epoch now is of, and `is_mean` that it is their mean. `rest_s`
    is what an epoch takes besides training (validation, checkpoint): it stays. `at_epoch_ends` says that it is of whole
    epochs, whose ends the cause makes longer, `in_epochs` the first and the last that
    it made longer, where it is of some of them, None of a last one where it lasts to the end. `location` is the line of
    the user's own function that it is of; None where it is of none, or of several. `waits_s` is what the training part
    waits for data now, 0 where that is not known. `since` is the first of the last epochs, which the epoch now is of
    where the cause goes on since then. `costs_in_run_s` is what the cause cost in the recorded run in all, None where
    that is not known: no other place works that out again.
    """

    cause: str
    epoch_s_now: float
    epoch_s_at_best: float
    basis: str
    epoch_s_estimate: float | None = None
    fix: str = ""
    rest_s: float = 0.0
    now_is: str = ""
    at_epoch_ends: bool = False
    is_mean: bool = False
    location: CodeLocation | None = None
    waits_s: float = 0.0
    in_epochs: tuple[int, int | None] | None = None
    since: int | None = None
    costs_in_run_s: float | None = None

    @property
    def whole_s(self) -> float:
        """Return what an epoch takes now with all that it takes besides training, in seconds."""
        return self.epoch_s_now + self.rest_s

    @property
    def saves_at_most_s(self) -> float:
        """Return the seconds of an epoch that go with its cause."""
        return self.epoch_s_now - self.epoch_s_at_best

    @property
    def saves_s(self) -> float | None:
        """Return the seconds of an epoch that the fix is likely to save, None without an estimate."""
        return None if self.epoch_s_estimate is None else self.epoch_s_now - self.epoch_s_estimate

    @property
    def saves_in_run_s(self) -> float | None:
        """Return the seconds that would have been saved in the recorded run: with the fix where that is estimated."""
        if self.costs_in_run_s is None or self.saves_s is None or not self.saves_at_most_s:
            return self.costs_in_run_s
        return self.costs_in_run_s * self.saves_s / self.saves_at_most_s

    @property
    def speed_up_at_most(self) -> float:
        """Return now over at best, 1 where nothing can be won."""
        return self.epoch_s_now / self.epoch_s_at_best

    @property
    def is_worthwhile(self) -> bool:
        """Tell whether it is worth a person's time: it is a limit of the analysis only then."""
        return self.speed_up_at_most >= LEAST_SPEED_UP

    @property
    def speed_up_estimate(self) -> float | None:
        """Return now over the estimate, None without one."""
        return self.epoch_s_now / self.epoch_s_estimate if self.epoch_s_estimate else None


def epoch_now_s(limits: Sequence[SpeedupLimit]) -> float | None:
    """Return the length in seconds of the epoch that all limits are compared with, None without any.

    It is the mean of all epochs where a limit is of what disturbed some of them, else the median of the steady ones.
    """
    return None if (longest := longest_now(limits)) is None else longest.epoch_s_now + longest.rest_s


def longest_now(limits: Sequence[SpeedupLimit]) -> SpeedupLimit | None:
    """Return the limit whose epoch now is the longest, by which all are shown; None without any."""
    return max(limits, key=lambda limit: limit.epoch_s_now + limit.rest_s, default=None)


@dataclass(frozen=True)
class EpochNow:
    """What an epoch of the run takes, in seconds: the one length that every place of a report gives.

    `now_is` says of which epochs it is, and whether their median or mean. The parts are the same of the same epochs;
    None where they are not known.
    """

    seconds: float
    now_is: str
    train_s: float | None = None
    validation_s: float | None = None
    checkpoint_s: float | None = None
    data_wait_s: float | None = None
    images_per_s: float | None = None

    @property
    def train_share(self) -> float:
        """Return the share (0 to 1) of it that training steps take, all where that is not known."""
        return min(self.train_s / self.seconds, 1.0) if self.train_s and self.seconds else 1.0

    @property
    def model_share(self) -> float:
        """Return the share (0 to 1) of it in which the model runs: training steps and validation, all if not known."""
        if not self.train_s or not self.seconds:
            return 1.0
        return min((self.train_s + (self.validation_s or 0.0)) / self.seconds, 1.0)


@dataclass(frozen=True)
class Projection:
    """What one fix is likely to do to a whole epoch, and to all epochs that are projected, in seconds.

    `epochs` are those that were left when the training ended or the recording did (`left`), from where it can be
    resumed, else all that were asked for. Start-up and final evaluation are not in it. `price_per_s` is that of all
    GPUs of the training, None without a price. `recorded_s` is what all epochs took, and what they would have taken
    with the fix, where all were recorded and some were far shorter; else None.
    """

    fix: str
    cause: str
    epoch_s_now: float
    epoch_s_expected: float
    epochs: int | None = None
    left: bool = False
    price_per_s: float | None = None
    recorded_s: tuple[float, float] | None = None

    @property
    def seconds(self) -> tuple[float, float] | None:
        """Return what all the epochs take now, and with the fix; None where nobody knows how many there are."""
        if self.recorded_s is not None:
            return self.recorded_s
        return None if not self.epochs else (self.epochs * self.epoch_s_now, self.epochs * self.epoch_s_expected)

    @property
    def money(self) -> tuple[float, float] | None:
        """Return what all the epochs cost now, and with the fix; None without a price."""
        if self.seconds is None or self.price_per_s is None:
            return None
        now_s, expected_s = self.seconds
        return now_s * self.price_per_s, expected_s * self.price_per_s

"""A training as its callbacks show it: startup, epochs of train, validation and checkpoint, final evaluation."""

from __future__ import annotations

import sys
import time
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

from . import exceptions, facts, setting_locations
from .batch_tensors import METHOD, BatchTensors
from .batches import PROGRESS_EVERY_S, PROGRESS_SHARE, TOTALS_EVERY_S, Batches
from .lines import LINES, now
from .memory.watch import MemoryWatch
from .runs import ReportedRun
from .startup import MOSAIC, PARTS, GflopsListener, unwrap, wrap

if TYPE_CHECKING:
    from collections.abc import Callable

BATCHES = Batches()
OUT_OF_MEMORY = "OutOfMemoryError"  # torch's, whose type an older torch has under another name


class ReportedTraining(ReportedRun):
    """The training of one trainer in one process (one of several ranks in DDP)."""

    def __init__(self, trainer: Any) -> None:
        """Begin with startup; ranks other than 0 are first heard of when theirs is over."""
        super().__init__("train", trainer)
        self._trainer = _reference(trainer)
        self.epoch = 0
        self.attempt = 1
        self.final = False
        self._epoch_open = False
        self._begun: tuple[float, float] = now()
        self._heard_of_s = self._begun[1]
        self._totals_due_s = float("-inf")
        self._gflops = GflopsListener()
        self._parts = ["setup"]
        self._memory_retries = 0
        self._memory = MemoryWatch()
        self._tensors, self._looked_in = BatchTensors(), 0
        self.phase("startup", "setup")

    def is_of(self, trainer: Any) -> bool:
        """Say whether it is this trainer's: an id alone may be that of one that is gone."""
        if self._trainer is not None:
            return self._trainer() is trainer
        return (self.instance, self.save_dir) == (id(trainer), facts.save_dir(trainer))

    def validates_with(self, validator: Any) -> bool:
        """Say whether a validation is the trainer's, of an epoch or its final evaluation; others are a callback's."""
        trainer = None if self._trainer is None else self._trainer()
        return validator.training or trainer is None or getattr(trainer, "validator", validator) is validator

    def watch_startup(self, trainer: Any) -> None:
        """Tell the parts of startup apart, as far as the trainer's methods let us."""
        for name, part in PARTS.items():
            wrap(trainer, name, partial(self._part_begins, part), self._part_ends)
        self._gflops.listen()

    def set_up(self, trainer: Any) -> None:
        """Model and loaders stand."""
        unwrap(trainer, *PARTS)
        self._gflops.stop()
        wrap(trainer, MOSAIC, self._mosaic_closes, lambda: None)

    def settings(self, trainer: Any) -> None:
        """Say with what it trains, in effect."""
        told = {**facts.read(facts.TRAINING, trainer), "gflops": self._gflops.gflops}
        LINES.write("settings", told)
        if facts.rank() == 0 or told.get("world_size", 1) > 1:
            self.tell_places(setting_locations.switched_on(told))

    def epoch_begins(self, trainer: Any) -> None:
        """Begin an epoch, or begin it again: NaN recovery and an out-of-memory retry come back to the same one.

        Ultralytics counts epochs from 0. A retry has a smaller batch, so the settings are reported anew.
        """
        epoch = trainer.epoch + 1
        self.final = False
        self._leave_epoch()
        self.attempt = self.attempt + 1 if epoch == self.epoch else 1
        self.epoch, self._epoch_open, self._begun = epoch, True, now()
        BATCHES.begin()
        if self.attempt > 1:
            self.settings(trainer)
            self._memory.ran_out(epoch)
        if self._in_startup():
            self.phase("startup", "first batch", epoch, self._begun)
        else:
            self.phase("train", "", epoch, self._begun)
            self.tell_slow_modes()  # what a callback at an epoch's end has switched on

    def batches_done(self) -> None:
        """Say how far the epoch is, now and then; with its first batch startup ends, or the closing of the mosaic."""
        first_of_all = self._in_startup()
        if first_of_all:
            self.phase("train", "", self.epoch)
        elif BATCHES.count == 0 and BATCHES.starts:
            self.phase("train", "", self.epoch, _at(BATCHES.starts[0]))
        self._tell_slow_modes()
        if self._looked_in != self.epoch:
            self._looked_in = self.epoch
            self._tensors.look(None if self._trainer is None else self._trainer())
        at = time.monotonic()
        BATCHES.due = at + max(PROGRESS_EVERY_S, PROGRESS_SHARE * (at - self._heard_of_s))
        if first_of_all or at >= self._totals_due_s:
            self._totals_due_s = at + TOTALS_EVERY_S
            self._totals()
        elif BATCHES.count > 0:
            self._progress()
        self._memory.within_epoch(self.epoch)

    def epoch_trained(self, trainer: Any) -> None:
        """Sum up the training part of an epoch. Ranks other than 0 read no loss: that would wait for their GPU."""
        end = now()
        seconds = end[1] - self._begun[1]
        BATCHES.end()
        totals = BATCHES.totals()
        images = min(BATCHES.count * trainer.batch_size, len(trainer.train_loader.dataset))
        fields = {
            **self._which(),
            "start_wall_s": round(self._begun[0], 6),
            "start_mono_s": round(self._begun[1], 6),
            "images": images,
            **totals,
            "images_per_s": round(images / seconds, 3) if seconds > 0 else None,
            "loss": facts.plain(facts.loss(trainer)) if facts.rank() == 0 else None,
            "lr": facts.plain(facts.lr(trainer)),
        }
        self._epoch_open = False
        LINES.write("epoch", fields, end)
        self._tell_slow_modes()
        validates = trainer.args.val or self.epoch >= trainer.epochs
        self.phase("validation" if validates else "checkpoint", "", self.epoch, end)

    def validation_begins(self, *, standalone: bool) -> int | None:
        """Take a validation of the trainer's as part of the epoch, one of a saved model as the final evaluation.

        Return the epoch that it is part of, None for none.
        """
        self.final |= standalone and not self._in_startup()
        if self.final:
            self.phase("final evaluation")
        elif not standalone:
            self.phase("validation", "", self.epoch)
            return self.epoch
        return None

    def validation_ends(self) -> None:
        """Go on to results.csv and the checkpoint."""
        if not self.final and not self._in_startup():
            self.phase("checkpoint", "", self.epoch)

    def epoch_ends(self, trainer: Any) -> None:
        """Begin the final evaluation when this was the last epoch; else see whether memory has grown."""
        if not (self.final or trainer.stop):
            self._memory.epoch_ends(self.epoch)
        if trainer.stop:
            self.final = True
            self.phase("final evaluation")

    def over(self, trainer: Any) -> str:
        """Return how a training ended that ended by itself."""
        whole = self.epoch >= trainer.epochs or bool(trainer.args.time)
        return "finished" if whole else "early stop"

    def torn_down(self, trainer: Any) -> tuple[str, dict[str, Any]]:
        """Return how it ended, and what its exception says of itself, when nothing has said so before.

        Ranks other than 0 never hear of the end; rank 0 does, unless an exception came first.
        """
        error = sys.exc_info()[1]
        if error is None and facts.rank() > 0 and getattr(trainer, "stop", False):
            return self.over(trainer), {"error": None}
        if type(error).__name__ == OUT_OF_MEMORY:
            self._memory.ran_out(self.epoch)
        self.tell_places(facts.slow_modes())
        return "exception", exceptions.described(error, self.save_dir)

    def abandoned(self) -> tuple[float, float]:
        """Return when it was last heard of: versions up to some 8.4 do not tell that an exception ended it."""
        return _at(max(LINES.last[1], BATCHES.mark, *BATCHES.ends[-1:]))

    def leave(self, trainer: Any) -> None:
        """Take back what was put on the trainer."""
        self._leave_epoch()
        unwrap(trainer, *PARTS, MOSAIC, METHOD)
        self._gflops.stop()

    def end_silently(self) -> None:
        """Take back what an exception has left, of which nobody told."""
        trainer = None if self._trainer is None else self._trainer()
        if trainer is not None:
            unwrap(trainer, *PARTS, MOSAIC, METHOD)
        self._gflops.stop()

    def _part_begins(self, part: str) -> None:
        self._parts.append(part)
        self.phase("startup", part)

    def _part_ends(self) -> None:
        """Go back to the part that this one was called from."""
        self._parts.pop()
        self.phase("startup", self._parts[-1])

    def _in_startup(self) -> bool:
        return self.phase_now is not None and self.phase_now[0] == "startup"

    def _mosaic_closes(self) -> None:
        if self._epoch_open and not self._in_startup():
            self.phase("train", "close mosaic", self.epoch)

    def _leave_epoch(self) -> None:
        """Say how far an epoch came that does not end."""
        if self._epoch_open:
            self._totals()
            self._epoch_open = False

    def _tell_slow_modes(self) -> None:
        """Say what slows the training, so does GPU memory that is full: torch frees its own then, and asks again."""
        self.tell_slow_modes()
        retries = facts.memory_retries()
        if retries is not None and retries != self._memory_retries:
            self._memory_retries = retries
            LINES.write("settings", {"memory_retries": retries})

    def _totals(self) -> None:
        begun = {"start_wall_s": round(self._begun[0], 6), "start_mono_s": round(self._begun[1], 6)}
        LINES.write("batches", {**self._which(), **begun, **BATCHES.totals(), **self._now()})

    def _progress(self) -> None:
        totals = BATCHES.totals()
        done = {name: totals[name] for name in ("batches", "data_wait_s")}
        LINES.write("progress", {**done, **self._memory.now()})

    def _now(self) -> dict[str, Any]:
        """Return what may grow from batch to batch: memory of tensors, hooks, callbacks; to count takes a ms or two."""
        trainer = None if self._trainer is None else self._trainer()
        return {**self._memory.now(), **(facts.registered(trainer) if trainer is not None else {})}

    def _which(self) -> dict[str, int]:
        return {"epoch": self.epoch, "attempt": self.attempt}


def _reference(trainer: Any) -> Callable[[], Any] | None:
    try:
        return weakref.ref(trainer)
    except TypeError:  # a class that allows none
        return None


def _at(mono_s: float) -> tuple[float, float]:
    """Return a moment of the monotonic clock, not long ago, on both clocks."""
    wall_s, now_s = now()
    return wall_s - (now_s - mono_s), mono_s

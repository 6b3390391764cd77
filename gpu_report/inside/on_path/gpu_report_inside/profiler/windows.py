"""When PyTorch's profiler runs for a few steps of a training: by the plan of the command, and by requests."""

from __future__ import annotations

import atexit
import os
import threading
import time
from typing import TYPE_CHECKING, Any

from ..lines import RUN_FOLDER_VARIABLE, report
from ..threads import BEAT
from ..training import BATCHES
from .requests import FOLDER, REQUEST, VARIABLE, ProfilerPlan, is_recorded, plan_of, request_in, written_ns
from .window import ProfilerSession

if TYPE_CHECKING:
    from collections.abc import Callable

LOOK_EVERY_S = 1.0  # for a request
DISCARDED = 3  # steps before those that are kept: the GPU's events come only after a while
FIRST_BATCHES = 20  # of a training, which are slow: cuDNN tries its algorithms, and memory grows
VALIDATION_STEPS = 4
BEGAN_S = time.time()  # requests that are older are none of this process's


class Windows:
    """The windows of this process: planned, asked for, and the one that is open."""

    def __init__(self) -> None:
        self._plans: list[ProfilerPlan] = []
        self._window: ProfilerSession | None = None
        self._validated: ProfilerPlan | None = None  # what the next validation is profiled for
        self._followed: tuple[int, str | None] = (0, None)
        self._number = 0
        self._is_recorded = True
        self._closes_at_exit_of = 0

    @property
    def wanted(self) -> bool:
        """Whether there is anything to do at the end of a batch."""
        return self._window is not None or bool(self._plans)

    @property
    def is_open(self) -> bool:
        """Whether the profiler runs because of us."""
        return self._window is not None

    def follow(self) -> None:
        """Take the plan of the command, and look for requests from now on; once a process and run folder."""
        folder = os.environ.get(RUN_FOLDER_VARIABLE)
        if not folder or self._followed == (os.getpid(), folder):
            return
        self._followed = os.getpid(), folder
        plan = plan_of(os.environ.get(VARIABLE))
        if plan is not None:
            self._plans.append(plan)
        threading.Thread(target=self._follow, args=(folder,), name="gpu-report-profile", daemon=True).start()

    def batch_done(self, trainer: Any) -> None:
        """Go on with the open window, or open one that is due; never raises."""
        self._guarded(lambda: self._next(trainer))

    def close(self) -> None:
        """End an open window: nothing is profiled across the end of an epoch or of a validation; never raises."""
        self._guarded(self._stop)

    def abandon(self) -> None:
        """End an open window without a trace: its epoch begins again, or the training is over; never raises."""
        self._validated = None
        self._guarded(self._drop)

    def validated(self) -> None:
        """End the window of a validation that is over; never raises."""
        self._validated = None
        self._guarded(self._stop)

    def validation_batch_done(self, validator: Any) -> None:
        """Profile some steps of a validation that is part of a planned epoch; never raises."""
        if self._window is not None:
            self._guarded(self._step)
        elif self._validated is not None:
            self._guarded(lambda: self._begin_validation(validator))

    def _guarded(self, function: Callable[[], None]) -> None:
        try:
            function()
        except Exception as error:  # noqa: BLE001 - the training must go on
            window, self._window = self._window, None
            if window is not None:
                window.fail(error)
            report("profile", error)

    def _next(self, trainer: Any) -> None:
        if self._window is not None:
            self._step()
            return
        epoch, done, left = _place(trainer)
        started = getattr(trainer, "start_epoch", 0)  # a resumed training's first epoch is slow, too
        first = 1 if epoch > started + 1 else min(FIRST_BATCHES, (done + left) // 3)
        due = next((plan for plan in self._plans if epoch >= _due(plan, started, trainer.epochs)), None)
        if due is None or done < first or left <= DISCARDED + 1:
            return
        if not self._is_recorded:  # nobody would pack the trace
            self._plans.clear()
            return
        self._plans.remove(due)
        steps = min(due.steps, left - DISCARDED - 1)
        said = {"phase": "train", "epoch": epoch, "first_batch": done}
        self._validated = due if due.epoch is not None and trainer.args.val else None
        self._open(due._replace(steps=steps), said, DISCARDED, trainer.model)

    def _begin_validation(self, validator: Any) -> None:
        plan, self._validated = self._validated, None
        steps = min(VALIDATION_STEPS, len(validator.dataloader) - 3)
        if plan is not None and steps > 0:
            self._open(plan._replace(steps=steps), {"phase": "validation", "epoch": None}, 1)

    def _open(self, plan: ProfilerPlan, said: dict[str, Any], discarded: int, model: Any = None) -> None:
        if self._closes_at_exit_of != os.getpid():
            self._closes_at_exit_of = os.getpid()
            atexit.register(self._at_exit)  # an interpreter that ends with the profiler on crashes
        self._number += 1
        self._window = ProfilerSession(plan, {"number": self._number, **said}, discarded, model)
        self._window.begin()

    def _step(self) -> None:
        if self._window is not None and self._window.step():
            self._window = None

    def _stop(self) -> None:
        window, self._window = self._window, None
        if window is not None:
            window.stop()

    def _drop(self) -> None:
        window, self._window = self._window, None
        if window is not None:
            window.abandon()

    def _at_exit(self) -> None:
        if self._closes_at_exit_of == os.getpid():
            self.abandon()

    def _follow(self, folder: str) -> None:
        """Wait for requests in a run folder, in a thread of its own: a disk that hangs holds nobody else."""
        path = os.path.join(folder, FOLDER, REQUEST)  # noqa: PTH118 - as in writer.py
        seen = 0 if written_ns(path) > BEGAN_S * 1e9 else written_ns(path)
        try:
            while os.environ.get(RUN_FOLDER_VARIABLE) == folder:
                written = written_ns(path)
                plan = request_in(path) if written != seen else None
                seen = written
                if plan is not None:
                    self._plans.append(plan)
                BEAT.wait(LOOK_EVERY_S)
                self._is_recorded = is_recorded(folder)
        except Exception as error:  # noqa: BLE001 - nobody may hear of it
            report("profile requests", error)


def _place(trainer: Any) -> tuple[int, int, int]:
    """Return the epoch, from 1, how many of its batches are done with this one, and how many are left."""
    done = BATCHES.count + len(BATCHES.ends) + 1
    return trainer.epoch + 1, done, max(len(trainer.train_loader) - done, 0)


def _due(plan: ProfilerPlan, started: int, epochs: int) -> int:
    """Return from which epoch on a plan is due; one that a resumed training has behind it, in its second."""
    if plan.epoch is None:
        return 0
    return min(plan.epoch if plan.epoch > started else started + 2, epochs)


WINDOWS = Windows()

"""Predictions: each call of a model, with what its parts took, and which models there are in this process.

A call is one batch, from `on_predict_batch_start` to `on_predict_batch_end`. A service makes one a request, a video one
a frame. The parts are ultralytics' own, which waits for the GPU at each; its `speed` is the batch's time divided by
its images, and is multiplied by them here.
"""

from __future__ import annotations

import os
import weakref
from typing import Any

from . import facts
from .calls_file import CallRows
from .lines import LINES, RUN_FOLDER_VARIABLE, now
from .runs import CURRENT, ReportedRun

REPORT_EVERY_S = 10.0  # how many calls there were so far is written so often, while there are any
MOST_MODELS = 200  # of one process; what comes beyond them are told apart no more
NO_SHAPE = ","  # between two empty cells
PARTS = ("preprocess", "inference", "postprocess")
MS = 1000.0


class CallClock:
    """The call of one predictor that is going on: when it began (0: none is), and the shape of what the model gets."""

    __slots__ = ("begun_s", "model", "shape", "size", "weak")

    def __init__(self, model: int) -> None:
        self.model = model
        self.begun_s = 0.0
        self.shape: Any = None
        self.size = NO_SHAPE
        self.weak: Any = None

    def seen(self, tensor: Any) -> None:
        """Take what the model gets next: N x C x H x W."""
        shape: Any = getattr(tensor, "shape", ())
        if shape != self.shape:
            self.shape = shape
            self.size = f"{shape[2]:d},{shape[3]:d}" if len(shape) == 4 else NO_SHAPE


class Preprocess:
    """A predictor's `preprocess`, whose result is looked at; it pickles as the method."""

    def __init__(self, predictor: Any, clock: CallClock) -> None:
        self._predictor = weakref.ref(predictor)
        self._clock = clock

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do what the class's method does."""
        predictor: Any = self._predictor()
        tensor = type(predictor).preprocess.__get__(predictor)(*args, **kwargs)
        self._clock.seen(tensor)
        return tensor

    def __reduce__(self) -> tuple[Any, ...]:
        """Become the copy's own method: this comes within the pickling of the predictor."""
        return getattr, (self._predictor(), "preprocess")


def row(call: Any) -> str:
    """Return a call as its row."""
    clock, begun_s, end_s, last_s, size, images, speed = call
    # Calls of several threads overlap: then there is no gap.
    gap = "" if last_s is None else f"{max((begun_s - last_s) * MS, 0.0):.3f}"
    parts = ",,"
    if speed is not None:
        before, model, after = (speed[name] * images for name in PARTS)
        parts = f"{before:.3f},{model:.3f},{after:.3f}"
    return f"{begun_s:.6f},{clock.model},{images},{size},{parts},{(end_s - begun_s) * MS:.3f},{gap}\n"


# By the predictor's id, for as long as it lives: at each call two look-ups of some 50 ns, where weak keys take 700.
CLOCKS: dict[int, CallClock] = {}
MODELS: dict[str, int] = {}  # the number of a model in this process, by its facts
_PID = [0]


class Prediction(ReportedRun):
    """All calls of this process, until it does something else; `failed` began and never ended."""

    def __init__(self, predictor: Any) -> None:
        super().__init__("predict", predictor)
        self.pid = os.getpid()
        self.calls = self.failed = self.predictors = 0
        self._rows = CallRows(row)
        self._folder = os.environ.get(RUN_FOLDER_VARIABLE, "")
        self._last_end_s: float | None = None
        self._due_s = 0.0
        if _PID[0] != self.pid:  # a fork tells anew which models it has
            _PID[0] = self.pid
            MODELS.clear()
        CLOCKS.clear()
        LINES.write("settings", facts.read(facts.PREDICTION, predictor))
        self.phase("predict")

    def predicts(self, predictor: Any) -> None:
        """Take a predictor that begins; what it began before and did not end has failed, or was given up."""
        clock = CLOCKS.get(id(predictor))
        if clock is None:
            self._watch(predictor)
        elif clock.begun_s:
            self.failed += 1
            clock.begun_s = 0.0

    def ends(self, clock: CallClock, end_s: float, images: int, speed: dict[str, float] | None) -> None:
        """Keep a call. Of embeddings nobody says which part took how long: there is no `speed`.

        Its row is written by another thread, a second later and many together: at a call, caches are cold.
        """
        self._rows.add(self._folder, (clock, clock.begun_s, end_s, self._last_end_s, clock.size, images, speed))
        clock.begun_s, self._last_end_s = 0.0, end_s
        self.calls += 1
        if end_s >= self._due_s:
            self._due_s = end_s + REPORT_EVERY_S
            LINES.write("calls", self._counts())

    def close(self) -> None:
        """End the run at the last call's end."""
        wall_s, now_s = now()
        end_s = now_s if self._last_end_s is None else self._last_end_s
        self._rows.drain()
        CURRENT.end("finished", (wall_s - (now_s - end_s), end_s), **self._counts())

    def _counts(self) -> dict[str, int]:
        counts = {"calls": self.calls, "predictors": self.predictors, "failed": self.failed}
        return {**counts, "dropped": self._rows.dropped} if self._rows.dropped else counts

    def _watch(self, predictor: Any) -> None:
        number = id(predictor)
        clock = CLOCKS[number] = CallClock(self._model(predictor))
        clock.weak = weakref.ref(predictor, lambda _: CLOCKS.pop(number, None))
        if isinstance(vars(predictor).get("preprocess"), (Preprocess, type(None))):  # else somebody's own: no shape
            predictor.preprocess = Preprocess(predictor, clock)

    def _model(self, predictor: Any) -> int:
        """Return the number of a predictor's model, whose facts are written where they are new; 0 beyond the most."""
        self.predictors += 1
        known = facts.read(facts.MODEL, predictor)
        key = repr(known)
        if key not in MODELS and len(MODELS) < MOST_MODELS:
            MODELS[key] = len(MODELS) + 1
            LINES.write("model", {"number": MODELS[key], **known})
        return MODELS.get(key, 0)

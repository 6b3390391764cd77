"""Predictions: each call of a model, with what its parts took, and which models there are in this process.

A call is one batch, from `on_predict_batch_start` to `on_predict_batch_end`. A service makes one a request, a video one
a frame. The parts are ultralytics' own, which waits for the GPU at each; its `speed` is the batch's time divided by
its images, and is multiplied by them here.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from typing import Any

from . import facts, setting_locations
from .calls_file import CallRows
from .lines import LINES, RUN_FOLDER_VARIABLE, now, report
from .rebuilt import Predictors
from .runs import CURRENT, ReportedRun, at_exit

REPORT_EVERY_S = 10.0  # how many calls there were so far is written so often, while there are any
MOST_MODELS = 200  # of one process; what comes beyond them are told apart no more
MOST_REBUILT = 20  # different ways in which a YOLO object's predictor was built anew: each is written once
NO_SHAPE = ","  # between two empty cells
PARTS = ("preprocess", "inference", "postprocess")
MS = 1000.0
SAMPLES = 300  # values of an image by which it is known again: 2 us, and two photos of one scene differ in many
PLAIN = 8  # different bytes in a sample: with fewer (masks, drawings, empty tiles) two images may well have the same
GOLDEN = 0.618  # of a row, by which each value lies further to the right: so they spread evenly over its columns


class CallClock:
    """The call of one predictor that is going on: when it began (0: none is), and the shape of what the model gets."""

    __slots__ = ("again", "begun_s", "largest_px", "model", "sample", "shape", "size", "weak")

    def __init__(self, model: int) -> None:
        self.model = model
        self.begun_s = 0.0
        self.largest_px = 0
        self.sample: Any = None  # of the image of the call before
        self.again = False  # that call had that of the one before it
        self.shape: Any = None
        self.size = NO_SHAPE
        self.weak: Any = None

    def given(self, images: Any) -> None:
        """Take the images that the model is given next, H x W x C each, as ultralytics has read them."""
        if images.__class__ is not list:
            return
        sides = [max(image.shape[:2]) for image in images if len(getattr(image, "shape", ())) >= 2]
        if sides and max(sides) > self.largest_px:
            self.largest_px = int(max(sides))
            KNOWN.saw(self.model, self.largest_px)
        before, self.sample = self.sample, sample_of(images[0]) if len(images) == 1 else None
        if self.sample is not None:
            again = self.sample == before and len(set(self.sample[1])) >= PLAIN
            KNOWN.compared(self.model, again=again, first=again and not self.again)
            self.again = again

    def seen(self, tensor: Any) -> None:
        """Take what the model gets next: N x C x H x W."""
        shape: Any = getattr(tensor, "shape", ())
        if shape != self.shape:
            self.shape = shape
            self.size = f"{shape[2]:d},{shape[3]:d}" if len(shape) == 4 else NO_SHAPE


def sample_of(image: Any) -> Any:
    """Return an image's shape and values spread over it, None of what is no array in one piece.

    What an image holds is compared, no object's identity: buffers are filled anew, and addresses are used again.
    """
    if not getattr(getattr(image, "flags", None), "c_contiguous", False) or not image.size:
        return None
    row = max(image.size // image.shape[0], 1)
    rows = image.size // SAMPLES // row
    step = max(rows * row + int(GOLDEN * row), 1)  # whole rows alone would see one column
    return image.shape, image.reshape(-1)[::step].tobytes()


class Preprocess:
    """A predictor's `preprocess`, whose result is looked at; it pickles as the method, and keeps no predictor alive."""

    def __init__(self, predictor: Any, clock: CallClock) -> None:
        self._predictor = weakref.ref(predictor)
        self._function = predictor.preprocess.__func__
        self._clock = clock

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do what the class's method does."""
        tensor = self._function(self._predictor(), *args, **kwargs)
        try:
            self._clock.seen(tensor)
            self._clock.given(args[0])
        except Exception as error:  # noqa: BLE001 - the service must go on
            report("preprocess", error)
        return tensor

    def __reduce__(self) -> tuple[Any, ...]:
        """Become the copy's own method: this comes within the pickling of the predictor."""
        return getattr, (self._predictor(), "preprocess")


def row(call: Any) -> str:
    """Return a call as its row."""
    clock, begun_s, end_s, last_s, size, images, speed, new_thread = call
    # Calls of several threads overlap: then there is no gap.
    gap = "" if last_s is None else f"{max((begun_s - last_s) * MS, 0.0):.3f}"
    parts = ",,"
    if speed is not None:
        before, model, after = (speed[name] * images for name in PARTS)
        parts = f"{before:.3f},{model:.3f},{after:.3f}"
    return f"{begun_s:.6f},{clock.model},{images},{size},{parts},{(end_s - begun_s) * MS:.3f},{gap},{new_thread:d}\n"


# By the predictor's id, for as long as it lives: at each call two look-ups of some 50 ns, where weak keys take 700.
CLOCKS: dict[int, CallClock] = {}


class ThisThread(threading.local):
    """Which models the calling thread has called: an identifier would be given again to another thread."""

    def __init__(self) -> None:
        self.models: set[int] = set()


THREAD = ThisThread()


class KnownCalls:
    """What is known of the calls of this process; `beginning` lets one thread begin a run."""

    def __init__(self) -> None:
        self.folder = ""
        self.models: dict[str, int] = {}  # the number of a model, by its facts
        self.objects: dict[int, int] = {}  # how many predictors there were of each model
        self.predictors = Predictors()  # of each YOLO object
        self.rebuilt: dict[int, int] = {}  # how many of a model's took the place of another of the same YOLO object
        self._rebuilt_ways: set[str] = set()
        self.largest_px: dict[int, int] = {}  # the longer side of the largest image that each was given
        self.repeated: dict[int, int] = {}  # calls of each with the image of the call before; none: none was compared
        self.repeated_images: dict[int, int] = {}  # how many images these were: a stream that pauses repeats one
        self.rows = CallRows(row)
        self.beginning = threading.Lock()
        self._ends = False

    def saw(self, model: int, longer_side_px: int) -> None:
        """Take the size of an image that a model was given."""
        self.largest_px[model] = max(self.largest_px.get(model, 0), longer_side_px)

    def compared(self, model: int, *, again: bool, first: bool) -> None:
        """Take that a call's image was held against that of the call before, which it may be again, or `first`."""
        self.repeated[model] = self.repeated.get(model, 0) + again
        self.repeated_images[model] = self.repeated_images.get(model, 0) + first

    def counts_rebuilt(self, predictor: Any, number: int) -> None:
        """Take a model's predictor that calls for the first time: it may be another one's of the same YOLO object."""
        told = self.predictors.comes(predictor, number)
        if told is None:
            return
        self.rebuilt[number] = self.rebuilt.get(number, 0) + 1
        way = repr(told)
        if way not in self._rebuilt_ways and len(self._rebuilt_ways) < MOST_REBUILT:
            self._rebuilt_ways.add(way)
            LINES.write("rebuilt", told)

    def goes_to(self, folder: str) -> None:
        """Take the run folder: a new one is told anew which models there are."""
        if folder != self.folder:
            self.folder = folder
            self.models.clear()
            self.objects.clear()
            self.rebuilt.clear()
            self._rebuilt_ways.clear()
            self.largest_px.clear()
            self.repeated.clear()
            self.repeated_images.clear()
            CLOCKS.clear()
        util = sys.modules.get("multiprocessing.util")
        if util is not None and not self._ends:  # a child that it made ends without what Python does at exit
            self._ends = True
            util.Finalize(None, at_exit, exitpriority=0)


KNOWN = KnownCalls()


def _in_child() -> None:
    """Begin anew in a fork: the parent's locks may be held for ever there, and its calls are none of the child's."""
    KNOWN.__init__()  # type: ignore[misc] # in place: others have imported it
    CLOCKS.clear()
    if isinstance(CURRENT.run, Prediction):
        CURRENT.run = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


class Prediction(ReportedRun):
    """All calls of this process, until it does something else; `failed` began and never ended."""

    def __init__(self, predictor: Any) -> None:
        super().__init__("predict", predictor)
        self.calls = self.failed = 0
        KNOWN.goes_to(os.environ.get(RUN_FOLDER_VARIABLE, ""))
        self._last_end_s: float | None = None
        self._due_s = 0.0
        told = facts.read(facts.PREDICTION, predictor)
        LINES.write("settings", told)
        self.tell_places(setting_locations.switched_on(told))
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
        new_thread = clock.model not in THREAD.models
        if new_thread:
            THREAD.models.add(clock.model)
        call = (clock, clock.begun_s, end_s, self._last_end_s, clock.size, images, speed, new_thread)
        KNOWN.rows.add(KNOWN.folder, call)
        clock.begun_s, self._last_end_s = 0.0, end_s
        self.calls += 1
        if end_s >= self._due_s:
            self._due_s = end_s + REPORT_EVERY_S
            LINES.write("calls", self._counts())
            self.tell_slow_modes()

    def close(self) -> None:
        """End the run at the last call's end."""
        wall_s, now_s = now()
        end_s = now_s if self._last_end_s is None else self._last_end_s
        KNOWN.rows.drain()
        CURRENT.end("finished", (wall_s - (now_s - end_s), end_s), **self._counts())

    def _counts(self) -> dict[str, Any]:
        dropped = KNOWN.rows.dropped
        counts = {
            "calls": self.calls,
            "failed": self.failed,
            "objects": dict(KNOWN.objects),
            "rebuilt": dict(KNOWN.rebuilt),
            "largest_px": dict(KNOWN.largest_px),
            "repeated": dict(KNOWN.repeated),
            "repeated_images": dict(KNOWN.repeated_images),
        }
        return {**counts, "dropped": dropped} if dropped else counts

    def _watch(self, predictor: Any) -> None:
        number = id(predictor)
        clock = CLOCKS[number] = CallClock(self._model(predictor))
        clock.weak = weakref.ref(predictor, lambda _: CLOCKS.pop(number, None))
        if isinstance(vars(predictor).get("preprocess"), Preprocess):  # of a parent: its clock is another
            del predictor.preprocess
        if number == id(getattr(predictor.preprocess, "__self__", None)):  # else somebody's own: no shape is known
            predictor.preprocess = Preprocess(predictor, clock)

    def _model(self, predictor: Any) -> int:
        """Return the number of a predictor's model, whose facts are written where they are new; 0 beyond the most."""
        known, models = facts.read(facts.MODEL, predictor), KNOWN.models
        key = repr(known)
        if key not in models and len(models) < MOST_MODELS:
            models[key] = len(models) + 1
            LINES.write("model", {"number": models[key], **known})
        number = models.get(key, 0)
        KNOWN.objects[number] = KNOWN.objects.get(number, 0) + 1
        try:
            KNOWN.counts_rebuilt(predictor, number)
        except Exception as error:  # noqa: BLE001 - arguments and YOLO objects may be of any kind; calls are kept
            report("rebuilt", error)
        return number

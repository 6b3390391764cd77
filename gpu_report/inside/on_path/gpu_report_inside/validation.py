"""Where the time of a validation goes: each second of it, from its beginning to its end, is of exactly one part.

Ultralytics itself counts four parts of a batch, and waits for the GPU to do so. The rest is told by its callbacks and
by the validator's methods, which are wrapped on this one instance while it validates. We wait for no GPU ourselves.
"""

from __future__ import annotations

import sys
import time
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

from . import facts
from .lines import LINES, now
from .startup import unwrap, wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# The validator's methods, by the part that each is. Pictures of batches are drawn in threads: only their start counts.
METHODS = {
    "update_metrics": "metrics",
    "get_stats": "metrics",
    "gather_stats": "gather",
    "finalize_metrics": "metrics",
    "plot_val_samples": "plots",
    "plot_predictions": "plots",
}
IN_PLOTS = {
    **METHODS,
    "finalize_metrics": "plots",
}  # it draws the confusion matrix then, and does nothing else to speak of
# The curves, which are drawn in the middle of `get_stats`: functions, not methods.
CURVES, DRAWS_CURVES = ("plot_pr_curve", "plot_mc_curve"), "get_stats"
METRICS_MODULE = "ultralytics.utils.metrics"
COUNTED = ("preprocess", "inference", "loss", "postprocess")  # by ultralytics: in its `speed`, ms an image
BATCH = "batch"

ABOUT: Mapping[str, facts.Reader] = {
    "images": lambda v: len(v.dataloader.dataset),
    "batch": lambda v: v.dataloader.batch_size,
    "workers": lambda v: v.dataloader.num_workers,
    "plots": lambda v: bool(v.args.plots),
}


class Parts:
    """Seconds by part: what is entered within a part is none of it."""

    __slots__ = ("_mark", "_within", "batches", "first_wait", "seconds")

    def __init__(self) -> None:
        """Begin with the wait for the first batch."""
        self.seconds = dict.fromkeys(("data", BATCH, "metrics", "plots", "gather", "other"), 0.0)
        self.batches = 0
        self.first_wait = 0.0
        self._within = ["data"]
        self._mark = time.monotonic()

    def enter(self, part: str) -> None:
        """Begin a part within the one that goes on."""
        self._count()
        self._within.append(part)

    def leave(self) -> None:
        """Go back to the part around it."""
        self._count()
        if len(self._within) > 1:  # another thread's, or one that was begun before we looked
            self._within.pop()

    def turn_to(self, part: str) -> None:
        """End what goes on; this part is next."""
        self._count()
        self._within[:] = [part]

    def batch_begins(self) -> None:
        """Note that a batch was fetched."""
        self.turn_to(BATCH)
        if self.batches == 0:
            self.first_wait = self.seconds["data"]
        self.batches += 1

    def _count(self) -> None:
        at = time.monotonic()
        self.seconds[self._within[-1]] += at - self._mark
        self._mark = at


class WatchedValidation:
    """The validation that is going on in this process, if any; never one of a rank beyond the first.

    Those are not told that theirs is over. Rank 0 waits for them: that is its `gather`.
    """

    def __init__(self) -> None:
        self._validator: Callable[[], Any] = _nobody
        self._parts: Parts | None = None
        self._begun = (0.0, 0.0)
        self._epoch: int | None = None
        self._about: dict[str, Any] = {}
        self._curves: dict[str, Any] = {}

    def begin(self, validator: Any, epoch: int | None) -> None:
        """Watch a validator until it is done."""
        self.abandon()
        if facts.rank() > 0:
            return
        self._validator, self._epoch, self._about = weakref.ref(validator), epoch, facts.read(ABOUT, validator)
        self._begun, self._parts = now(), Parts()
        for name, part in (IN_PLOTS if self._about.get("plots") else METHODS).items():
            self._wrap(validator, name, part, self._parts)

    def batch_begins(self) -> None:
        """Note that a batch was fetched."""
        if self._parts is not None:
            self._parts.batch_begins()

    def batch_ends(self) -> None:
        """Note that a batch is done: the next one is waited for."""
        if self._parts is not None:
            self._parts.turn_to("data")

    def end(self, validator: Any) -> None:
        """Write the parts of a validation that is over."""
        parts = self._parts
        if parts is None or self._validator() is not validator:
            return
        parts.turn_to("other")
        end = now()
        self.abandon()
        counted = _counted(validator, self._about.get("images"))
        seconds = {**parts.seconds, **counted, "first_wait": parts.first_wait}
        seconds["other"] += max(seconds.pop(BATCH) - sum(counted.values()), 0.0)
        begun = {"start_wall_s": round(self._begun[0], 6), "start_mono_s": round(self._begun[1], 6)}
        said = {"epoch": self._epoch, **begun, **self._about, "batches": parts.batches}
        LINES.write("validation", {**said, **{f"{part}_s": round(s, 6) for part, s in seconds.items()}}, end)

    def abandon(self) -> None:
        """Take back what was put on a validator, whatever became of it."""
        validator, self._validator, self._parts = self._validator(), _nobody, None
        self._give_curves_back()
        if validator is not None:
            unwrap(validator, *METHODS)

    def _wrap(self, validator: Any, name: str, part: str, parts: Parts) -> None:
        if name == DRAWS_CURVES and self._about.get("plots"):
            wrap(validator, name, partial(self._stats_begin, parts), partial(self._stats_end, parts))
        else:
            wrap(validator, name, partial(parts.enter, part), parts.leave)

    def _stats_begin(self, parts: Parts) -> None:
        parts.enter("metrics")
        module = sys.modules.get(METRICS_MODULE)
        for name in CURVES:
            if hasattr(module, name):
                self._curves[name] = getattr(module, name)
                setattr(module, name, _as_plots(self._curves[name], parts))

    def _stats_end(self, parts: Parts) -> None:
        self._give_curves_back()
        parts.leave()

    def _give_curves_back(self) -> None:
        while self._curves:
            name, function = self._curves.popitem()
            setattr(sys.modules[METRICS_MODULE], name, function)


def _as_plots(function: Callable[..., Any], parts: Parts) -> Callable[..., Any]:
    """Return a function that does the same, and counts as plots."""

    def counted(*args: Any, **kwargs: Any) -> Any:
        parts.enter("plots")
        try:
            return function(*args, **kwargs)
        finally:
            parts.leave()

    return counted


def _counted(validator: Any, images: Any) -> dict[str, float]:
    """Return the seconds that ultralytics counted, which it gives in milliseconds an image; empty where it does not."""
    speed = getattr(validator, "speed", None)
    if not images or not isinstance(speed, dict):
        return {}
    return {part: speed[part] * images / 1e3 for part in COUNTED if isinstance(speed.get(part), (int, float))}


def _nobody() -> None:
    """Return no validator."""


VALIDATION = WatchedValidation()

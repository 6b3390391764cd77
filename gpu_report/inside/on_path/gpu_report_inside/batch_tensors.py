"""How many tensors a batch has as it comes from the loader: each is handed over by a shared-memory file of its own."""

from __future__ import annotations

import re
import sys
from itertools import islice
from typing import Any

from .lines import LINES, report
from .setting_locations.user_files import INSTALLED
from .startup import TimedMethod, can_be_wrapped, unwrap

METHOD = "preprocess_batch"  # of a trainer: the first that is given a batch
MOST_LOOKED_AT = 10_000  # values of a batch: 3 ms, once an epoch. What has more is known to have many
MANY = 100  # tensors: YOLO's own batch has 4 to 8
SAMPLE = "__getitem__"  # a data set's
YOLO = re.compile(r"[\\/]ultralytics[\\/]")
MOST_KEYS = 100  # of a batch: one of YOLO has a dozen
MIB = 2**20


class BatchTensors:
    """Looks into one batch of an epoch, and says how many tensors it has where that has changed."""

    def __init__(self) -> None:
        self._said = 0

    def look(self, trainer: Any) -> None:
        """Have the next batch of this trainer looked into, unless somebody has replaced its method."""
        if trainer is not None and can_be_wrapped(trainer, METHOD):
            setattr(trainer, METHOD, _Looked(trainer, self))

    def of(self, batch: Any, trainer: Any) -> None:
        """Say what a batch has, and under which key most of it; half as many again is chance (people in images)."""
        count, size_bytes = tensors_in(batch)
        if count != self._said and not self._said / 2 < count < 2 * self._said:
            first, self._said = self._said < MANY <= count, count
            told = {"batch_tensors": count, "batch_tensors_mib": round(size_bytes / MIB, 3)}
            LINES.write("settings", {**told, "batch_tensors_key": _key_of_most(batch)})
            if first:
                self._tell_place(type(trainer.train_loader.dataset))

    def _tell_place(self, dataset: type) -> None:
        """Say in which line the user's own data set begins to make a sample; nothing of a library's."""
        made_by = next((vars(part)[SAMPLE] for part in dataset.__mro__ if SAMPLE in vars(part)), None)
        code = getattr(made_by, "__code__", None)  # a function of C has none
        if code is not None and not INSTALLED.search(code.co_filename) and not YOLO.search(code.co_filename):
            LINES.write("set_in", {"name": "batch_tensors", "file": code.co_filename, "line": code.co_firstlineno})


class _Looked(TimedMethod):
    """The method, for one call: then it is the class's own again."""

    def __init__(self, trainer: Any, into: BatchTensors) -> None:
        super().__init__(trainer, METHOD, _nothing, _nothing)
        self._into = into

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Look into the batch before the class's method does what it does."""
        try:
            unwrap(self._trainer(), METHOD)
            self._into.of(next(iter((*args, *kwargs.values())), None), self._trainer())
        except Exception as error:  # noqa: BLE001 - it stands in the trainer's own call
            report("batch_tensors", error)
        return super().__call__(*args, **kwargs)


def tensors_in(batch: Any, left: int = MOST_LOOKED_AT) -> tuple[int, int]:
    """Return how many tensors dicts, lists and tuples hold, and their bytes, of so many values that are `left` to see.

    No code of the user's is called.
    """
    tensor, count, size_bytes = sys.modules["torch"].Tensor, 0, 0
    waiting = [batch]
    while waiting:
        item = waiting.pop()
        if isinstance(item, tensor):
            count, size_bytes = count + 1, size_bytes + item.numel() * item.element_size()
            continue
        kind = next((each for each in (dict, list, tuple) if isinstance(item, each)), None)
        if kind is not None:
            values = list(islice(dict.values(item) if kind is dict else kind.__iter__(item), left))
            left -= len(values)
            waiting += values
    return count, size_bytes


def _key_of_most(batch: Any) -> str | None:
    """Return the key of a batch under which most of its tensors lie; None of one that is no dict, or of no text.

    To make text of another key would call the user's code.
    """
    if type(batch) is not dict or not 0 < len(batch) <= MOST_KEYS:
        return None
    each_at_most = MOST_LOOKED_AT // len(batch)  # in all no more than to count them took
    counts = [(tensors_in(value, each_at_most)[0], key) for key, value in batch.items()]
    _, most = max(counts, key=lambda each: each[0], default=(0, None))
    return most if type(most) is str else None


def _nothing() -> None:
    pass

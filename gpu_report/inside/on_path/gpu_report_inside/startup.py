"""The parts of a trainer's startup that have no callback of their own: its methods, wrapped on this one instance.

The wrappers go again when startup is over, the one for the mosaic when the training is.
"""

from __future__ import annotations

import logging
import re
import weakref
from typing import TYPE_CHECKING, Any

from .lines import report

if TYPE_CHECKING:
    from collections.abc import Callable

# The trainer's methods, by the part of startup that each does.
PARTS = {"get_dataset": "data set", "get_dataloader": "data set", "setup_model": "model", "get_model": "model"}
MOSAIC = "_close_dataloader_mosaic"

_GFLOPS = re.compile(r"parameters.*?([\d.,]+) GFLOPs")


class TimedMethod:
    """A method that says when it begins and when it is over; it keeps no trainer alive, and pickles as the method."""

    def __init__(self, trainer: Any, name: str, before: Callable[[], None], after: Callable[[], None]) -> None:
        self._trainer = weakref.ref(trainer)
        self._name = name
        self._before = before
        self._after = after

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do what the class's method does."""
        trainer = self._trainer()
        method = _of_class(trainer, self._name).__get__(trainer, type(trainer))
        _quietly(self._before)
        try:
            return method(*args, **kwargs)
        finally:
            _quietly(self._after)

    def __reduce__(self) -> tuple[Any, ...]:
        """Become the copy's own method: this comes within the pickling of the trainer."""
        return getattr, (self._trainer(), self._name)


def wrap(trainer: Any, name: str, before: Callable[[], None], after: Callable[[], None]) -> None:
    """Wrap a method of the class on this instance, unless somebody has replaced it there."""
    if can_be_wrapped(trainer, name):
        setattr(trainer, name, TimedMethod(trainer, name, before, after))


def can_be_wrapped(trainer: Any, name: str) -> bool:
    """Tell whether a method of the class can be wrapped on this instance: nobody has replaced it by something else."""
    return name not in vars(trainer) and hasattr(_of_class(trainer, name), "__get__")


def _of_class(trainer: Any, name: str) -> Any:
    return next((vars(part)[name] for part in type(trainer).__mro__ if name in vars(part)), None)


def unwrap(trainer: Any, *names: str) -> None:
    """Let the class's own methods be seen again."""
    for name in names:
        if isinstance(vars(trainer).get(name), TimedMethod):
            delattr(trainer, name)


class GflopsListener(logging.Handler):
    """Hears what ultralytics itself says of the model that it builds: to count anew would take a second."""

    def __init__(self) -> None:
        super().__init__()
        self.gflops: float | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Remember the number in `YOLO26n summary: ..., 5.4 GFLOPs`."""
        try:
            found = _GFLOPS.search(record.getMessage())
            if found:
                self.gflops = float(found.group(1).replace(",", ""))
        except Exception as error:  # noqa: BLE001 - logging must not fail because we listen
            report("GflopsListener", error)

    def listen(self) -> None:
        """Begin to listen."""
        logging.getLogger("ultralytics").addHandler(self)

    def stop(self) -> None:
        """Hear no more."""
        logging.getLogger("ultralytics").removeHandler(self)


def _quietly(action: Callable[[], None]) -> None:
    try:
        action()
    except Exception as error:  # noqa: BLE001 - it stands in the trainer's own call
        report("startup", error)

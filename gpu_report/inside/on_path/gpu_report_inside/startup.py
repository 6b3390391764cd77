"""The parts of a trainer's startup that have no callback of their own: its methods, wrapped on this one instance.

The wrappers go again when startup is over, the one for the mosaic when the training is.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any

from .lines import report

if TYPE_CHECKING:
    from collections.abc import Callable

# The trainer's methods, by the part of startup that each does.
PARTS = {"get_dataset": "data set", "get_dataloader": "data set", "setup_model": "model", "get_model": "model"}
MOSAIC = "_close_dataloader_mosaic"

_GFLOPS = re.compile(r"parameters.*?([\d.,]+) GFLOPs")


class Around:
    """A method that says when it begins and when it is over."""

    def __init__(self, method: Callable[..., Any], before: Callable[[], None], after: Callable[[], None]) -> None:
        self._method = method
        self._before = before
        self._after = after

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do what the method does."""
        _quietly(self._before)
        try:
            return self._method(*args, **kwargs)
        finally:
            _quietly(self._after)


def wrap(trainer: Any, name: str, before: Callable[[], None], after: Callable[[], None]) -> None:
    """Wrap a method on this instance, where it has one that nobody has replaced there."""
    method = getattr(trainer, name, None)
    if callable(method) and name not in vars(trainer):
        setattr(trainer, name, Around(method, before, after))


def unwrap(trainer: Any, *names: str) -> None:
    """Let the class's own methods be seen again."""
    for name in names:
        if isinstance(vars(trainer).get(name), Around):
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

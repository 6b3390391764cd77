"""Arrays that count how many readings were worked on, whatever the machine does meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd

OF_ONE_PLACE = {np.searchsorted}  # a binary search does not look at what it searches


class Elements:
    """How many elements of arrays were worked on so far."""

    seen = 0


class Counted(np.ndarray):
    """An array that adds to `Elements.seen` what is worked out of it, and of what comes of it."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        Elements.seen += sum(np.size(each) for each in inputs)
        out = options.get("out") or ()
        if out:
            options["out"] = tuple(map(_plain, out))
        options = {name: _plain(value) for name, value in options.items()}
        found = getattr(ufunc, method)(*map(_plain, inputs), **options)
        return out[0] if len(out) == 1 else _counted(found)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        arrays = [each for each in arguments if isinstance(each, np.ndarray)]
        Elements.seen += 0 if function in OF_ONE_PLACE else sum(each.size for each in arrays)
        return super().__array_function__(function, types, arguments, options)

    def __getitem__(self, rows: Any) -> Any:
        Elements.seen += rows.size if isinstance(rows, np.ndarray) else 0
        return super().__getitem__(rows)


@contextmanager
def counted_readings(monkeypatch: Any) -> Iterator[type[Elements]]:
    """Count what is worked out of the columns of tables."""
    to_numpy = pd.Series.to_numpy
    with monkeypatch.context() as patch:
        patch.setattr(Elements, "seen", 0)
        patch.setattr(pd.Series, "to_numpy", lambda *given, **named: _counted(to_numpy(*given, **named)))
        yield Elements


def _counted(value: Any) -> Any:
    is_plain = type(value) is np.ndarray and value.dtype != object
    return value.view(Counted) if is_plain else value


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Counted) else value

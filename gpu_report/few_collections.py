"""Python's search for garbage in cycles, of which our work makes little."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

TIMES_AS_SELDOM: Final = 100  # so that hardly one is left in the making of a report


@contextmanager
def few_collections() -> Iterator[None]:
    """Look for garbage in cycles less often: looking takes a tenth of a short run's report, imports included."""
    before = gc.get_threshold()
    gc.set_threshold(TIMES_AS_SELDOM * before[0], *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)

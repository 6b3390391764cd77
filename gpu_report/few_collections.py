"""Python's search for garbage in cycles, of which our work makes little."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

TIMES_AS_SELDOM: Final = 1000  # at a hundredth an hour's report looks twice, for 40 ms, and finds nothing of use


@contextmanager
def few_collections() -> Iterator[None]:
    """Look for garbage in cycles less often: looking takes a sixth of a short run's report, imports included."""
    before = gc.get_threshold()
    gc.set_threshold(TIMES_AS_SELDOM * before[0], *before[1:])
    try:
        yield
    finally:
        gc.freeze()
        gc.unfreeze()  # what there is counts as old: else the next object that is made has all of it looked at
        gc.set_threshold(*before)

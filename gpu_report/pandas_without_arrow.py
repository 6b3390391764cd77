"""pandas as it is without pyarrow, for a process of our own that needs no Arrow."""

import sys
from importlib import import_module


def import_pandas_without_arrow() -> None:
    """Import pandas so that it sees no pyarrow, wherever one is installed; nothing where either was imported before.

    pandas has no option for it: it imports what it finds, which takes 40 MB and an eighth of a second. The few texts of
    a run are then kept as Python's, in which nothing reads otherwise. pyarrow itself may be imported afterwards.
    """
    if "pandas" in sys.modules or "pyarrow" in sys.modules:
        return
    sys.modules["pyarrow"] = None  # type: ignore[assignment] # what Python's import system takes as "there is none"
    try:
        import_module("pandas")
    finally:
        del sys.modules["pyarrow"]

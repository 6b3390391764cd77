"""Which files of a folder are TensorBoard's."""

import os
from itertools import islice
from pathlib import Path
from typing import Final

MARK: Final = "tfevents"  # in the name of each: it is what TensorBoard itself looks for
MOST_FILES: Final = 100  # of a folder: each start of a training makes one
MOST_ENTRIES: Final = 100_000  # of a folder that are looked at


def is_event_file(path: Path) -> bool:
    """Tell by its name whether a file is one of TensorBoard's."""
    return MARK in path.name


def event_files(folder: Path) -> list[Path]:
    """Return the event files that lie in a folder itself, the newest MOST_FILES of them, by name: by age, mostly."""
    try:
        with os.scandir(folder) as entries:
            names = [each.name for each in islice(entries, MOST_ENTRIES) if MARK in each.name and each.is_file()]
    except OSError:
        return []
    return [folder / name for name in sorted(names)[-MOST_FILES:]]

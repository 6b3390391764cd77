"""Run folders that are kept packed, several in an archive of tests/data."""

import tarfile
from pathlib import Path

from conftest import REPOSITORY


def unpacked(into: Path, *archives: str) -> Path:
    """Return the folder `into` with the runs of some archives, by name."""
    for name in archives:
        with tarfile.open(REPOSITORY / "tests" / "data" / f"{name}.tar.xz") as archive:
            archive.extractall(into, filter="data")
    return into

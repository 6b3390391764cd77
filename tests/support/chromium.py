"""Which Chromium the tests drive: Debian's without a window is the same engine, and opens a page a third faster."""

import shutil

PROGRAMS = ("chromium-headless-shell", "chromium")


def find_chromium() -> str | None:
    """Return the program's path, None where there is none."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)

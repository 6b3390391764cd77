"""Which Chromium the tests drive: Debian's without a window is the same engine, and opens a page a third faster."""

import os
import shutil
from pathlib import Path

# The same names as in .ci/needs.
PROGRAMS = ("chromium-headless-shell", "chromium", "google-chrome", "google-chrome-stable", "chromium-browser")
SNAP = "/snap/"  # opens no file under /tmp
HOW = "Chromium is missing: apt-get install chromium-headless-shell, or playwright install chromium-headless-shell"


def find_chromium() -> str | None:
    """Return the program's path: of the system's, else of what Playwright has fetched; None where there is none."""
    found = (path for path in map(shutil.which, PROGRAMS) if path and not path.startswith(SNAP))
    return next(found, None) or next(map(str, _of_playwright()), None)


def _of_playwright() -> list[Path]:
    folder = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache" / "ms-playwright")
    return sorted(folder.glob("chromium*/*/*headless*shell"), reverse=True)

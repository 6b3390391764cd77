"""Where the reports of runs lie, as links from the page of a fleet."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from gpu_report.fleet.remote import is_url

# What is put behind a run's path: its report lies in its folder, or beside it under its name; else the folder.
REPORTS = ("/report.html", ".html")
SUFFIXES = ("", *REPORTS)


def suffix_of(path: str) -> str | None:
    """Return what of SUFFIXES makes a run's path that of its report; None where nobody can open run nor report."""
    if is_url(path) or not os.path.exists(path):  # noqa: PTH110 - Path's raises where the reader may not enter a folder
        return None
    return next((each for each in REPORTS if os.path.isfile(f"{path}{each}")), "")  # noqa: PTH113 - as above


def link(path: str, page: Path) -> str | None:
    """Return the link to a run's report, else to its folder, as seen from the page; None where there is neither."""
    suffix = suffix_of(path)
    return None if suffix is None else from_page(f"{path}{suffix}", page)


def from_page(target: str, page: Path) -> str:
    """Return the link to a file or folder of this machine, as seen from the page."""
    here = os.path.relpath(target, page.absolute().parent)
    return quote(here if here.startswith(".") else f"./{here}")

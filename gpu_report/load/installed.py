"""Which files belong to packages that were installed into a folder of the user's (`pip install --target`).

`site-packages` and `dist-packages` are known by their names. Another folder is known by what lies in it: two packages
that nobody writes himself. Alone, ultralytics may be a checkout, with the user's own code beside it.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Final

from gpu_report.model import Frame, ProcessStacks

NAMES = "torch|torchvision|ultralytics|numpy|cv2|PIL|matplotlib|pandas|polars|scipy|yaml|requests|psutil|tqdm"
PACKAGE = re.compile(rf"^(?P<folder>.*?)/(?P<name>{NAMES})/")
NAMED = re.compile(r"/(?:site|dist)-packages/")
LEAST: Final = 2  # packages in one folder


def with_installed(processes: Sequence[ProcessStacks]) -> tuple[ProcessStacks, ...]:
    """Return the notes of processes, each frame of a package that was installed into a folder of the user's marked.

    A file that lies in the folder itself is the user's, such as its `train.py`: packages are folders.
    """
    folders = _folders({frame.file for each in processes for stack in each.stacks.values() for frame in stack})
    if not folders:
        return tuple(processes)
    installed = re.compile(rf"^(?:{'|'.join(map(re.escape, folders))})/[^/]+/")

    @cache
    def marked(frame: Frame) -> Frame:
        return frame._replace(installed=True) if installed.match(frame.file) else frame

    return tuple(
        replace(each, stacks={number: tuple(map(marked, stack)) for number, stack in each.stacks.items()})
        for each in processes
    )


def _folders(files: Iterable[str]) -> list[str]:
    """Return the folders with at least LEAST of the packages in them."""
    names: dict[str, set[str]] = {}
    for file in files:
        if (found := PACKAGE.match(file)) and not NAMED.search(file):
            names.setdefault(found["folder"], set()).add(found["name"])
    return [folder for folder, known in names.items() if len(known) >= LEAST]

"""Which processes py-spy is to look at: main processes on a GPU that has nothing to do, and a few of their workers."""

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from gpu_report.record.proc_files import stat_fields

MOST_MAINS = 4  # ranks of one machine wait for each other; of eight the other four come at the next dump
MOST_WORKERS = 4  # likewise of the workers, which take turns
MOST_ANCESTORS = 8  # a worker of a fork server under its main process is two
GPU_DEVICE = re.compile(r"/dev/nvidia[0-9]+")
MOST_FILES = 4096  # open ones of a process that are looked at


T = TypeVar("T")


@dataclass(frozen=True)
class Candidates:
    """Processes of a training: its `mains` (on a GPU, else the command), what those started, and who is on the GPUs."""

    mains: frozenset[int]
    workers: frozenset[int]
    on_gpus: frozenset[int]


@dataclass(frozen=True)
class Target:
    """A process to dump; `parent` is the main process of a worker, None of a main one."""

    pid: int
    parent: int | None = None


class Targets:
    """Chooses from the candidates of each dump; who was not chosen comes first at the next one."""

    def __init__(self, own_notes: Path, proc: Path = Path("/proc")) -> None:
        """Leave out the processes in which our hook notes lines itself, into the folder `own_notes`."""
        self._own_notes, self._proc = own_notes, proc
        self._turn = 0

    def choose(self, candidates: Candidates) -> list[Target]:
        """Return main processes, then workers of theirs."""
        mains = [pid for pid in self._mains(candidates) if not (self._own_notes / f"{pid}.jsonl").exists()]
        mains = self._some(mains, MOST_MAINS)
        workers = [
            Target(pid, parent)
            for pid in sorted(candidates.workers - set(mains))
            if (parent := next((pid for pid in self._ancestors(pid) if pid in mains), None)) is not None
            and self._is_python(pid)
        ]
        self._turn += 1
        return [*map(Target, mains), *self._some(workers, MOST_WORKERS)]

    def _mains(self, candidates: Candidates) -> list[int]:
        """Return the Python processes that work on the GPUs in question.

        Where the driver names none that is visible here, as in a container, they are those that hold a GPU's device
        open. A launcher such as `torchrun` does not; a forked worker does, and is known by the process above it.
        """
        on_gpus = candidates.mains & candidates.on_gpus
        if on_gpus:
            return [pid for pid in sorted(on_gpus) if self._is_python(pid)]
        if any((self._proc / str(pid)).exists() for pid in candidates.on_gpus):
            return []  # of another training
        family = candidates.mains | candidates.workers
        holding = [pid for pid in sorted(family) if self._is_python(pid) and self._holds_gpu(pid)]
        return [pid for pid in holding if not any(above in holding for above in self._ancestors(pid))]

    def _some(self, of: Sequence[T], most: int) -> list[T]:
        """Return at most so many, from another place on at each turn."""
        if len(of) <= most:
            return list(of)
        first = self._turn * most
        return [of[(first + at) % len(of)] for at in range(most)]

    def _is_python(self, pid: int) -> bool:
        """Tell whether a process runs a Python interpreter; of another user's process py-spy is left to say so."""
        try:
            return (self._proc / str(pid) / "exe").readlink().name.startswith("python")
        except PermissionError:
            return True
        except OSError:
            return False

    def _holds_gpu(self, pid: int) -> bool:
        with contextlib.suppress(OSError), os.scandir(self._proc / str(pid) / "fd") as files:
            for _, file in zip(range(MOST_FILES), files, strict=False):
                with contextlib.suppress(OSError):
                    if GPU_DEVICE.fullmatch(str(Path(file).readlink())):
                        return True
        return False

    def _ancestors(self, pid: int) -> Iterator[int]:
        for _ in range(MOST_ANCESTORS):
            parent = self._parent(pid)
            if not parent:
                return
            yield parent
            pid = parent

    def _parent(self, pid: int) -> int:
        try:
            return int(stat_fields(pid, self._proc)[1])
        except (ValueError, IndexError):
            return 0

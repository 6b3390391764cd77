"""Lines of code: the frames of a stack, and how long processes stood where."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MOST_SHARE = 0.5  # of some time: what took so much of it is what was waited for


class Frame(NamedTuple):
    """A line of Python that a thread stood in, and the function around it; a tuple, for stacks are keys all over.

    `called` is the function of C that the innermost frame of a stack calls, empty where it calls none, or not known.
    `installed` says that its file belongs to a package which was installed into a folder of the user's.
    """

    file: str
    line: int
    function: str
    called: str = ""
    installed: bool = False

    @property
    def named(self) -> str:
        """Return its function with the file: one name for all of its lines."""
        return f"{self.function} {self.file}"


Stack = tuple[Frame, ...]  # innermost frame first


@dataclass(frozen=True)
class CodeLocation:
    """A line in which a process stood while the GPU had nothing to do, and its share (0 to 1) of that time.

    `process` is `main`, `rank N`, or `workers` for those of a loader together; `thread` is one beside the main thread,
    its share that of all time. `dumps` is how many dumps by py-spy a
    share was estimated from; None where notes of our own hook, 20 a second, say it. `with_calls` says that the share is
    that of its function with all that this calls; lines of what it calls may follow.
    """

    process: str
    function: str
    file: str
    line: int
    share: float
    dumps: int | None = None
    with_calls: bool = False

    @classmethod
    def in_main(cls, line: Frame, share: float) -> CodeLocation:
        """Return a line in which the main process stood, and its share of the time."""
        return cls("main", line.function, line.file, line.line, share)

    @property
    def is_yolo(self) -> bool:
        """Tell whether a line is YOLO's own, which no user can change."""
        return "ultralytics" in re.split(r"[\\/]", self.file)

    @property
    def is_most(self) -> bool:
        """Tell whether it took most of the time: then that is what the GPU waited for."""
        return self.share >= MOST_SHARE


CodeKind = Literal["own", "yolo", "library", "loader", "gpu", "ranks"]


@dataclass(frozen=True)
class CodeFrame:
    """A frame of a stack, and whose code it is: the user's own, YOLO's, a library's, or torch's data loader.

    `gpu` is a call that waits for the GPU, `ranks` one that waits for the other ranks of a training. What a line calls
    in C is a frame of its own, of the same line: `item()`.
    """

    function: str
    file: str
    line: int
    kind: CodeKind


@dataclass(frozen=True, eq=False)
class CodeTime:
    """Where the processes of one role spent their time, and for how long GPUs were idle meanwhile.

    `role` is `main`, `rank N`, or `workers` for all of the loaders'. Each stack has its outermost frame first. Row i is
    of stack `stack[i]` in stretch number `bucket[i]`, each `bucket_s` seconds long, within phases of the name
    `phases[phase[i]]`, empty outside all: `seconds[i]` of processes, `idle_gpu_s[i]` GPU seconds.
    `with_startup` says that start-up counts as all other time does, as where the report begins with it.
    """

    role: str
    bucket_s: float
    stacks: tuple[tuple[CodeFrame, ...], ...]
    phases: tuple[str, ...]
    bucket: npt.NDArray[np.int64]
    phase: npt.NDArray[np.int64]
    stack: npt.NDArray[np.int64]
    seconds: npt.NDArray[np.float64]
    idle_gpu_s: npt.NDArray[np.float64]
    with_startup: bool = False

    @property
    def after_startup(self) -> npt.NDArray[np.bool_]:
        """Return which rows are not of start-up; all where that counts, too, or the processes came no further."""
        every: npt.NDArray[np.bool_] = self.phase >= 0
        later: npt.NDArray[np.bool_] = self.phase != (self.phases.index("startup") if "startup" in self.phases else -1)
        return later if later.any() and not self.with_startup else every


@dataclass(frozen=True)
class CodeLine:
    """A line of code, and how long processes of one role (`process`) stood in it, or in what it called.

    `seconds` are of processes, `idle_gpu_s` GPU seconds in which a GPU was idle meanwhile, most of it in `phase` (empty
    outside all). `waits_for` says that it asked the loader for a batch (`data`), or the GPU for a result (`gpu`), or
    waited for the other ranks (`ranks`).
    """

    process: str
    function: str
    file: str
    line: int
    seconds: float
    idle_gpu_s: float
    phase: str
    waits_for: Literal["data", "gpu", "ranks"] | None = None

    def ranked_s(self, *, by_idle: bool) -> float:
        """Return the seconds that it is listed with: those of an idle GPU, or its own where no GPU was read."""
        return self.idle_gpu_s if by_idle else self.seconds

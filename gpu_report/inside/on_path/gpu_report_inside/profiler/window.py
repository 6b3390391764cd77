"""One session of PyTorch's profiler, between two batches of a training or a validation.

Only started, stopped and exported here. Reading the trace takes far longer than writing it, and is done by others. It
is written to this machine's temporary folder, not to the run folder, whose disk may hang: the recorder packs it there.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import time
import warnings
from typing import TYPE_CHECKING, Any

from ..compiled import breaks, graphs
from ..layer_names import LayerNames
from ..lines import LINES
from ..secrets.hide import hide_and_cut
from .lines import WindowNotes

if TYPE_CHECKING:
    from collections.abc import Callable

    from .requests import ProfilerPlan

LONGEST_S = 60.0  # of a window: then it ends with the steps that it has ...
MOST_EVENTS = 1_500_000  # ... or with so many events: 400 MB of JSON
EVENT_BYTES = 210  # of memory an event takes until it is written (torch 2.14, YOLO26n: 138,000 took 29 MB)
CLEARS = "(Warning: )?Profiler clears events"  # as is meant
SPACE_MIB = 512  # free on the temporary disk before a window ...
STEP_MIB = 20  # ... and for each step: eight took 60 to 90 MB
TEARDOWN = "TEARDOWN_CUPTI"  # libkineto: without it the GPU is watched for ever, and each step stays slower
TEARDOWN_SAFE = (12, 6)  # CUDA: before it, tearing down crashes programs that replay CUDA graphs


class ProfilerSession:
    """One session of the profiler, from its first discarded step to the exported trace."""

    def __init__(self, plan: ProfilerPlan, said: dict[str, Any], discarded: int, model: Any = None) -> None:
        self._name = f"{os.getpid()}-{said['number']}"
        self._said = {"name": self._name, **plan._asdict(), "discarded": discarded, **said}
        self._plan, self._discarded = plan, discarded
        self._layers = LayerNames(model) if plan.full else None
        self._lines = WindowNotes()
        self._profiler: Any = None
        self._began_s = 0.0
        self._starts_s: list[float] = []  # of each step: the profiler has just marked it
        self._memory = 0  # bytes that the process had when the first step was kept
        self._count = 0

    def begin(self) -> None:
        """Start, in a callback between two steps."""
        self._began_s = time.monotonic()
        self._said["begin_mono_s"] = round(self._began_s, 6)
        torch = sys.modules["torch"]
        if torch.autograd._profiler_enabled():  # the user's own, which ours would end
            self._tell(failed="other_profiler")
            return
        space = SPACE_MIB + STEP_MIB * self._plan.steps
        if shutil.disk_usage(tempfile.gettempdir()).free < space << 20:
            self._tell(failed="no_space")
            return
        _release_cupti()
        self._profiler = _profiler(self._discarded, self._plan, self._export)
        if self._layers is not None:
            self._layers.name()
        self._profiler.start()
        self._said["enter_s"] = _since(self._began_s)

    def step(self) -> bool:
        """Go on to the next step; return whether the window is over."""
        if self._profiler is None:
            return True
        began_s = time.monotonic()
        self._count += 1
        over = self._count >= self._discarded + self._plan.steps
        if over:
            self._lines.stop()  # torch gathers its events in the call that follows
        self._profiler.step()
        now_s = time.monotonic()
        if self._count == self._discarded:
            self._keep(began_s)
        if not over:
            self._starts_s.append(round(now_s, 6))
            self._said["cut"] = "time" if now_s - self._began_s > LONGEST_S else "events" if self._is_large() else ""
        if over or self._said["cut"]:
            self.stop()
        return self._profiler is None

    def _keep(self, mono_s: float) -> None:
        """Begin what goes with the kept steps, of which the first began at `mono_s`."""
        self._said.update(kept_mono_s=round(mono_s, 6), graphs_before=graphs())
        self._memory = _memory()
        self._lines.start()

    def _is_large(self) -> bool:
        """Tell whether the trace has grown too large, by the memory that the process took meanwhile, for whatever."""
        return bool(self._memory) and _memory() - self._memory > MOST_EVENTS * EVENT_BYTES

    def stop(self) -> None:
        """End it with the steps that it has; without any it is of no use."""
        profiler, self._profiler = self._profiler, None
        self._lines.stop()
        if profiler is not None:
            if self._layers is not None:
                self._layers.forget()
            profiler.stop()
            if "failed" not in self._said and "file" not in self._said:
                self._tell(failed="too_short")

    def abandon(self) -> None:
        """End it without a trace: the training has come to something else, or to its end."""
        if self._profiler is not None:
            self._tell(failed="interrupted")
            self.stop()

    def fail(self, error: BaseException) -> None:
        """Say why there is no trace, and let go of everything; whatever that raises is one more reason to be silent."""
        self._tell(failed="error", error=hide_and_cut(f"{type(error).__name__}: {error}"))
        with contextlib.suppress(Exception):  # it has been said already
            self.stop()

    def _export(self, profiler: Any) -> None:
        """Write the trace: called by the profiler's last step."""
        if "failed" in self._said:
            return
        if self._count <= self._discarded:
            self._tell(failed="too_short")
            return
        began_s = time.monotonic()
        folder = tempfile.mkdtemp(prefix="gpu-report-profile-")
        path = os.path.join(folder, f"{self._name}.json")  # noqa: PTH118 - as in writer.py
        try:
            profiler.export_chrome_trace(path)
            size = os.path.getsize(path)  # noqa: PTH202 - likewise
        except (OSError, RuntimeError, ValueError) as error:
            shutil.rmtree(folder, ignore_errors=True)
            self._tell(failed="export", error=hide_and_cut(f"{type(error).__name__}: {error}"))
            return
        self._said["kept_steps"] = self._count - self._discarded
        self._said.update(graphs=graphs(), breaks=breaks(), starts_mono_s=self._starts_s[self._discarded - 1 :])
        self._said.update(self._lines.told())
        self._tell(file=path, bytes=size, export_s=_since(began_s))

    def _tell(self, **more: Any) -> None:
        self._said.update(more)
        LINES.write("profile", self._said)


def _profiler(discarded: int, plan: ProfilerPlan, export: Callable[[Any], None]) -> Any:
    torch = sys.modules["torch"]
    kineto = torch.profiler
    activities = [kineto.ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(kineto.ProfilerActivity.CUDA)
    if not any(getattr(known[1], "pattern", None) == CLEARS for known in warnings.filters):
        warnings.filterwarnings("ignore", message=CLEARS)
    schedule = kineto.schedule(wait=0, warmup=discarded, active=plan.steps, repeat=1)
    # Without `acc_events`: with it, the last step reads all events into Python. That took 16 s (torch 2.11, H100).
    return kineto.profile(activities=activities, schedule=schedule, on_trace_ready=export, record_shapes=plan.full)


def _release_cupti() -> None:
    """Have the GPU no longer watched after the window, where that is safe and nobody has decided it.

    On an H100 steps stayed 60 % slower without (torch 2.11, YOLO26n, batch 4), and were as before with it.
    """
    torch = sys.modules["torch"]
    version = tuple(int(part) for part in str(torch.version.cuda or "0").split(".")[:2])
    if version >= TEARDOWN_SAFE:
        os.environ.setdefault(TEARDOWN, "1")


def _memory() -> int:
    """Return how many bytes of memory this process has, 0 where that is not known."""
    try:
        with open("/proc/self/statm", "rb", buffering=0) as file:  # noqa: PTH123 - as in writer.py
            return int(file.read(64).split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):  # not Linux
        return 0


def _since(mono_s: float) -> float:
    return round(time.monotonic() - mono_s, 6)

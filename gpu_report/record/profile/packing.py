"""The thread that packs traces into the run folder: a trace of eight steps has 60 MB, packed 6 MB."""

import contextlib
import os
import queue
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from gpu_report import schema
from gpu_report.packed_trace import pack_trace
from gpu_report.record import clocks
from gpu_report.record.clocks import Clocks

MADE_IN = "gpu-report-profile-"  # how the folder's name begins that a trace lies in, and that is removed with it
FORGOTTEN_S = 86_400.0  # a trace is packed within seconds

Event = Callable[[str, Clocks, Mapping[str, object]], object]


class TracePacker:
    """Packs what the training has exported, one trace after the other."""

    def __init__(self, folder: Path, event: Event) -> None:
        """Write into a run folder, and failures as events."""
        self._into = folder / schema.PROFILE_DIR
        self._event = event
        self._waiting: queue.SimpleQueue[Path | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def pack(self, trace: Path) -> None:
        """Have a trace packed, and removed where it lay."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="traces", daemon=True)
            self._thread.start()
        self._waiting.put(trace)

    def finish(self, limit_s: float) -> None:
        """Wait for what is left; a disk that hangs is left behind."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join(limit_s)

    def _run(self) -> None:
        _remove_forgotten()
        while (trace := self._waiting.get()) is not None:
            try:
                self._into.mkdir(exist_ok=True)
                pack_trace(trace, self._into / f"{trace.name}.gz")
            except (OSError, ValueError, EOFError) as error:
                self._event("trace_lost", clocks.now(), {"reason": f"{type(error).__name__}: {error}"})
            finally:
                if trace.parent.name.startswith(MADE_IN):
                    shutil.rmtree(trace.parent, ignore_errors=True)


def _remove_forgotten() -> None:
    """Remove the traces of recorders that were killed before they packed them."""
    for folder in Path(tempfile.gettempdir()).glob(f"{MADE_IN}*"):
        with contextlib.suppress(OSError):
            status = folder.lstat()
            if status.st_uid == os.getuid() and time.time() - status.st_mtime > FORGOTTEN_S:
                shutil.rmtree(folder, ignore_errors=True)

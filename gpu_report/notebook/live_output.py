"""One output in the cell that trains, renewed in place from a thread: the training never waits for it.

Nothing that goes wrong here may reach the training: no exception, no slow call, no full disk.
"""

import contextlib
import importlib
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from gpu_report.errors import ERROR_AS_JSON, error_in
from gpu_report.notebook import live_view
from gpu_report.notebook.live_state import LiveReader
from gpu_report.notebook.live_view import Bundle

UPDATE_EVERY_S = 5.0
VERDICT_LIMIT_S = 300.0  # for reading the recording; one of a day and eight GPUs takes a tenth of it
CELL_WAITS_S = 10.0  # for the verdict, which may come later; a notebook that is run as a whole would lack it
SENTENCES = 4  # of the verdict
NAME = "gpu-report-live"  # its beginning marks our own threads, whose stacks are not noted
NO_NOTEBOOK = "gpu-report: live=True needs a notebook. This training is recorded without a live output."


class LiveOutput:
    """The live output of one training: `begin` where it starts, `end` when it and its recording are over."""

    def __init__(self, folder: Path, update_every_s: float = UPDATE_EVERY_S) -> None:
        """Show nothing yet."""
        self._folder = folder
        self._update_every_s = update_every_s
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._handle: Any = None
        self.cpu_s = 0.0  # of a core, used by the thread so far

    def begin(self) -> None:
        """Show the output in the cell that runs now, and renew it from now on."""
        if not in_notebook():
            print(NO_NOTEBOOK, flush=True)  # noqa: T201 - there is no command line here
            return
        display = importlib.import_module("IPython.display").display  # it is there, for a kernel runs us
        self._handle = display(live_view.starts_bundle(), raw=True, display_id=True)
        since = time.monotonic()
        self._thread = threading.Thread(target=self._run, args=(since,), name=NAME, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Show the verdict in its place; the cell waits CELL_WAITS_S for it at most."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(CELL_WAITS_S)

    def _run(self, since_mono_s: float) -> None:
        reader = LiveReader(self._folder, since_mono_s)  # here: the training waits for no disk
        while not self._over.wait(self._update_every_s):
            self._show(lambda: live_view.bundle(reader.state()))
            self.cpu_s = time.thread_time()
        self._show(live_view.over_bundle)
        self._show(lambda: _final(self._folder))

    def _show(self, make: Any) -> None:
        """Renew the output. What fails is left out: what stands there says of which moment it is."""
        with contextlib.suppress(BaseException):  # also while the interpreter shuts down: nobody may hear of it
            self._handle.update(make(), raw=True)


def in_notebook() -> bool:
    """Tell whether a kernel runs this process: its outputs can be renewed, those of a terminal cannot."""
    ipython = sys.modules.get("IPython")
    shell = getattr(ipython, "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def _final(folder: Path) -> Bundle:
    """Return the verdict, from a process of its own: neither memory nor time of it are the notebook's."""
    shown = _short(folder)
    command = [sys.executable, "-m", "gpu_report", "summary", "--format", "json", str(folder)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=VERDICT_LIMIT_S,
            check=False,
            env={**os.environ, ERROR_AS_JSON: "1"},
        )
    except (OSError, subprocess.SubprocessError) as error:
        return live_view.final_bundle(shown, [], f"The recording could not be read ({type(error).__name__}).")
    if done.returncode:
        return live_view.final_bundle(shown, [], error_in(done.stderr))
    verdict = [str(sentence["text"]) for sentence in json.loads(done.stdout)["verdict"][:SENTENCES]]
    return live_view.final_bundle(shown, verdict)


def _short(folder: Path) -> str:
    """Return the folder as seen from the working folder, whole where it lies elsewhere."""
    try:
        return os.fspath(folder.relative_to(Path.cwd()))
    except (OSError, ValueError):
        return os.fspath(folder)

"""The verdict's first sentence for whoever sits at the terminal, after a recording has been closed.

Another process works it out: a recorder loads no pandas. It is waited for no longer than LIMIT_S, and not against any
signal; whatever goes wrong is silent. It delays the exit, by a second or two: so it is asked for on a terminal alone,
never in a script's log or in CI, where the next command waits for this one.
"""

import subprocess
import sys
import time
from pathlib import Path

from gpu_report.record.lifecycle import signals
from gpu_report.terminal import ProgressLine

LIMIT_S = 5.0  # a recording of some hours takes one or two
MODULE = "gpu_report.cli.first_sentence"


def first_result(folder: Path, limit_s: float = LIMIT_S) -> str:
    """Return the first sentence of a run's verdict, empty where that takes too long, fails or is interrupted.

    To be called with signals blocked (`signals.blocked`). A process that does not end by SIGKILL (it hangs in the disk)
    is left behind.
    """
    try:
        child = subprocess.Popen(
            [sys.executable, "-m", MODULE, str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for us to hear
        )
    except OSError:
        return ""
    with ProgressLine("reading the recording ... (Ctrl-C skips this)"):
        has_ended = _ends_within(child, limit_s)
    if not has_ended:
        child.kill()
        return ""
    said, _ = child.communicate()  # it has ended, and a sentence fits into the pipe
    return said.decode("utf-8", "replace").strip() if child.returncode == 0 else ""


def _ends_within(child: subprocess.Popen[bytes], limit_s: float) -> bool:
    until_s = time.monotonic() + limit_s
    while child.poll() is None:
        arrived = signals.wait_until(until_s)
        if arrived is None or arrived.number in signals.FORWARDED:
            return False
    return True

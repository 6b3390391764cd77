"""A recorder that ends with the process that started it: with a notebook's kernel, whatever ends that."""

import os
import signal
import threading
import time

PARENT_EVERY_S = 1.0  # how often a recorder looks whether its parent is still there


def die_with(pid: int) -> None:
    """Have this process get SIGTERM when its parent `pid` ends, within a second.

    (PR_SET_PDEATHSIG would do that when the parent's thread ends that started us, a worker of a web server say.)
    """
    threading.Thread(target=_watch_parent, args=(pid,), name="parent", daemon=True).start()


def _watch_parent(pid: int) -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # it is for the thread that waits for signals
    while os.getppid() == pid:
        time.sleep(PARENT_EVERY_S)
    os.kill(os.getpid(), signal.SIGTERM)

"""Causes that the kernel names: a process of the training waited for a file, and for which."""

from gpu_report.analyse.causes import thresholds as th
from gpu_report.analyse.causes.candidate import Candidate, waits_for_loader
from gpu_report.analyse.causes.confidence import CERTAIN, STRONG
from gpu_report.analyse.causes.slower_storage import advice_on_remote, stood_words
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.signals.host.process_waits import FileWait
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.thresholds import MOSTLY_SHARE
from gpu_report.catalogue import WAITING_FOR_PEER
from gpu_report.model import Evidence
from gpu_report.wording import brief_seconds

# Causes in which a process waits: what it waited for belongs to their evidence.
WAITING = frozenset(
    {"trainer-blocked", "main-process", "input-storage", "input-stalled", "input-latency", WAITING_FOR_PEER}
)


def main_waits_for_file(signals: IntervalSignals) -> Candidate | None:
    """Find the main process in one system call on a file for most of the interval: a state is no guess.

    Where it loads the data itself (workers=0), that is storage which the loader waits for.
    """
    wait = signals.main_file_wait
    if wait is None or not wait.is_named or not _took(signals, wait):
        return None
    name = "input-storage" if waits_for_loader(signals) else "trainer-blocked"
    return Candidate(name, CERTAIN, f"the main process waited in {wait_words(wait)}")


def workers_wait_for_file(signals: IntervalSignals) -> Candidate | None:
    """Find a worker in one system call on a remote filesystem for most of it, while training waited for data."""
    wait, idle_location = signals.worker_file_wait, signals.idle_location
    elsewhere = idle_location is not None and idle_location.in_loader < MOSTLY_SHARE
    if wait is None or not wait.is_remote or not _took(signals, wait) or elsewhere:
        return None
    on = ", on a network filesystem" if wait.is_network else ""
    text = stood_words(signals) or f"a loader worker waited in {wait_words(wait)}{on}"
    return Candidate("input-storage", STRONG, text, advice=advice_on_remote(signals))


def gil_held(signals: IntervalSignals) -> Candidate | None:
    """Find that nothing of the main process could run Python for most of it: C code had the lock, and worked or waited.

    However busy the machine is: who waits for a core does not ask for the lock meanwhile.
    """
    kept = signals.gil_held
    if signals.busy_thread is not None:  # who asks for the lock beside a thread that runs Python may wait for long, too
        return None
    if kept is None or kept.seconds < MOSTLY_SHARE * (signals.end_t_s - signals.start_t_s):
        return None
    computes = kept.cpu_share >= MOSTLY_SHARE
    what = "computed" if computes else "waited"
    text = f"C code {what} without releasing the GIL (Python's lock), so no thread of the main process could run"
    return Candidate("main-process" if computes else "trainer-blocked", CERTAIN, text)


def wait_evidence(signals: IntervalSignals) -> tuple[Evidence, ...]:
    """Return for how long of the interval processes waited for which file, and kept Python's lock."""
    whole_s = signals.end_t_s - signals.start_t_s
    of = f" (of {brief_seconds(whole_s)})"
    waits = (("the main process", signals.main_file_wait), ("a loader worker", signals.worker_file_wait))
    found = (
        (f"{who} waited in {wait_words(wait)}{of}", min(wait.seconds, whole_s), "s")
        for who, wait in waits
        if wait is not None
    )
    kept = signals.gil_held
    held_s = None if kept is None or kept.seconds < th.LOCK_SHOWN_SHARE * whole_s else min(kept.seconds, whole_s)
    return evidence(*found, (f"C code held the GIL (Python's lock){of}", held_s, "s"), *_of_line(signals))


def _of_line(signals: IntervalSignals) -> tuple[Evidence, ...]:
    """Return in how many holds the line was seen that had called the C code, where others are taken for its, too."""
    held = None if signals.gil_held is None else signals.gil_held.inferred
    if held is None:
        return ()
    return evidence((f"times that the line that called it was seen (of {held.alike})", float(held.seen), ""))


def wait_words(wait: FileWait) -> str:
    """Return what was waited for, in words: `read of /mnt/x/a.jpg (nfs4)`."""
    told = wait.wait
    if not told.file:
        where = f" ({told.channel})" if told.channel else ""
        return f"{told.call or 'a wait'} that cannot be interrupted{where}"
    what = told.file if wait.is_named else f"a {told.file}"
    what = f"files under {wait.folder}" if wait.folder else what
    return f"{told.call} of {what}{f' ({told.filesystem})' if told.filesystem else ''}"


def _took(signals: IntervalSignals, wait: FileWait) -> bool:
    return wait.seconds >= MOSTLY_SHARE * (signals.end_t_s - signals.start_t_s)

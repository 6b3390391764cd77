"""What to do about weights that take long to be saved: where they go, and how many files an epoch writes."""

from collections.abc import Mapping, Sequence

from gpu_report.analyse.causes import thresholds as th
from gpu_report.analyse.signals.host.filesystems import is_remote
from gpu_report.analyse.signals.host.process_waits import is_named
from gpu_report.model import Advice, ProcessWait

WRITES = frozenset({"write", "pwrite64", "writev", "fsync", "fdatasync", "rename", "ftruncate"})


def waits_to_write(waits: Sequence[ProcessWait]) -> list[ProcessWait]:
    """Return the waits of main processes while they wrote a file whose name is known."""
    return [wait for wait in waits if wait.role == "main" and wait.call in WRITES and is_named(wait)]


def save_elsewhere(wait: ProcessWait) -> Advice:
    """Return where to save to: what lies across a network may be slow for others' sake, whichever disk is there."""
    on = f" ({wait.filesystem})" if wait.filesystem else ""
    short = f"Save to a {'local' if is_remote(wait.filesystem) else 'faster'} disk (set `project`)"
    return Advice(f"{short}: the training waited while it wrote {wait.file}{on}", "project", short=short)


def fewer_files(args: Mapping[str, object]) -> tuple[Advice, ...]:
    """Return to leave out `save_period` where it adds a file to every epoch, or to every few; nothing elsewhere.

    `args` are the training's, as args.yaml has them.
    """
    period = args.get("save_period")
    if isinstance(period, bool) or not isinstance(period, int) or not 0 < period <= th.SAVED_OFTEN_EPOCHS:
        return ()
    often = "each epoch" if period == 1 else f"every {period} epochs"
    short = f"Leave out `save_period={period}`"
    return (Advice(f"{short}: {often} it writes one more file (`epochN.pt`), as large as `last.pt`", short=short),)

"""Cause: Python's garbage collector, which looks through all objects while nothing else of Python runs."""

from dataclasses import replace

from gpu_report.analyse.causes import thresholds as th
from gpu_report.analyse.causes.candidate import Candidate
from gpu_report.analyse.causes.confidence import CERTAIN
from gpu_report.analyse.causes.main_process import CODE_CAUSES
from gpu_report.analyse.causes.slow_modes import switch_off
from gpu_report.analyse.signals.code.garbage import Garbage
from gpu_report.analyse.signals.code.stack_kinds import kind_of
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.thresholds import MOSTLY_SHARE
from gpu_report.catalogue import CAUSES, GARBAGE_KEY
from gpu_report.model import Advice, Evidence
from gpu_report.wording import brief_seconds, counted, length, place_words

FREQUENT = "frequent_gc"  # of the settings that slow a training
TENTHS_UNDER_S = 10.0  # "0 s of 2 s" says nothing
FREEZE = Advice(
    "Call `gc.freeze()` once your data are loaded: the garbage collector then leaves out what was made up to there. "
    "Fewer Python objects help, too: NumPy arrays instead of lists and dictionaries",
    short="Call `gc.freeze()` once your data are loaded",
)


def garbage_collected(signals: IntervalSignals) -> Candidate | None:
    """Find that Python's garbage collector ran for most of the time that the GPU was idle, and longer than data took.

    It says so itself.
    """
    found, util = signals.garbage, signals.gpu_within("gpu_util_pct")
    idle = 1.0 if util is None else 1 - util / 100
    least = max(MOSTLY_SHARE * idle, th.GARBAGE_LEAST_SHARE, signals.waited_share or 0.0)
    if found is None or found.share < least:
        return None
    do = against_garbage(found, signals)
    return Candidate("main-process", CERTAIN, took_words(found), (_evidence(found),), (do,))


def took_words(found: Garbage) -> str:
    """Return how often it ran, and what it took of which time."""
    took = f"{_length(found.seconds)} of {_length(found.of_s)}"
    return f"Python's garbage collector ran {counted(found.times, 'time')}, {took}"


def _length(seconds: float) -> str:
    return brief_seconds(seconds) if seconds < TENTHS_UNDER_S else length(seconds)


def is_own_call(found: Garbage) -> bool:
    """Tell whether a line of the user's called it."""
    return found.is_called and found.line is not None and kind_of(found.line) == "own"


def garbage_beside(signals: IntervalSignals, best: Candidate) -> tuple[tuple[Evidence, ...], tuple[Advice, ...]]:
    """Return what the collector took of the main process, or of the workers, beside the cause that is in these.

    It is some of what they did: the advice is no more than one of several.
    """
    of_workers = CAUSES[best.name].is_input
    found = signals.workers_garbage if of_workers else signals.garbage if best.name in CODE_CAUSES else None
    if found is None or found.share < th.GARBAGE_LEAST_SHARE or any(each.key == GARBAGE_KEY for each in best.evidence):
        return (), ()
    return (_evidence(found, "of data-loader workers " if of_workers else ""),), (
        replace(against_garbage(found, signals), short=""),
    )


def _evidence(found: Garbage, whose: str = "") -> Evidence:
    return Evidence(f"time {whose}in Python's garbage collector", 100 * found.share, "%", key=GARBAGE_KEY)


def against_garbage(found: Garbage, signals: IntervalSignals | None = None) -> Advice:
    """Return what makes it run less: a setting, the user's own call of it, or fewer objects to look through."""
    if signals is not None and FREQUENT in signals.slow_modes:
        return switch_off(FREQUENT, signals.setting_locations)
    if found.line is not None and is_own_call(found):
        short = f"Remove `gc.collect()` in {place_words(found.line)}, or call it once an epoch"
        why = "Python frees most objects at once without it, and it looks through all that are alive each time"
        return Advice(f"{short}. {why}", short=short)
    return FREEZE

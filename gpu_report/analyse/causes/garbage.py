"""Cause: Python's garbage collector, which looks through all objects while nothing else of Python runs."""

from gpu_report.analyse.causes import thresholds as th
from gpu_report.analyse.causes.candidate import Candidate
from gpu_report.analyse.causes.confidence import CERTAIN
from gpu_report.analyse.causes.slow_modes import switch_off
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.signals.garbage import Garbage
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.stack_notes import kind_of
from gpu_report.analyse.signals.thresholds import STOOD_SHARE
from gpu_report.model import Advice
from gpu_report.wording import counted, length, place_words

FREQUENT = "frequent_gc"  # of the settings that slow a training
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
    least = max(STOOD_SHARE * idle, th.GARBAGE_LEAST_SHARE, signals.waited_share or 0.0)
    if found is None or found.share < least:
        return None
    took = f"{length(found.seconds)} of {length(found.of_s)}"
    text = f"Python's garbage collector ran {counted(found.times, 'time')}, {took}"
    numbers = evidence(("time in Python's garbage collector", 100 * found.share, "%"))
    return Candidate("main-process", CERTAIN, text, numbers, (_do(signals, found),))


def _do(signals: IntervalSignals, found: Garbage) -> Advice:
    """Return what makes it run less: a setting, the user's own call of it, or fewer objects to look through."""
    if FREQUENT in signals.slow_modes:
        return switch_off(FREQUENT, signals.setting_locations)
    if found.is_called and found.line is not None and kind_of(found.line) == "own":
        short = f"Remove `gc.collect()` in {place_words(found.line)}, or call it once an epoch"
        why = "Python frees most objects at once without it, and it looks through all that are alive each time"
        return Advice(f"{short}. {why}", short=short)
    return FREEZE

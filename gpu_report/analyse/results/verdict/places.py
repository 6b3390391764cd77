"""The line of code that a sentence names."""

from dataclasses import replace

from gpu_report.analyse.signals.code.stack_kinds import kind_of
from gpu_report.analyse.signals.thresholds import MOSTLY_SHARE
from gpu_report.analyse.timeseries.sums import sums_by_key
from gpu_report.model import CodeLocation, Finding, Frame


def worst_place(finding: Finding, own_share: float = MOSTLY_SHARE) -> CodeLocation | None:
    """Return the function in which the training stood for most of the time, at its worst line; None where none is.

    Of a function of the user's `own_share` of the time is enough: that one can be changed.
    """
    shares = sums_by_key((function_of(at), at.share) for at in finding.where)
    own = [at for at in finding.where if is_own(at) and shares[function_of(at)] >= own_share]
    worst = max(own or finding.where, key=lambda at: at.share, default=None)
    if worst is None:
        return None
    whole = replace(worst, share=shares[function_of(worst)])
    return whole if whole.is_most or own else None


def function_of(at: CodeLocation) -> tuple[str, str, str]:
    """Return which function a line is in, of which process."""
    return at.process, at.file, at.function


def is_own(at: CodeLocation) -> bool:
    """Tell whether a line is the user's own code."""
    return kind_of(Frame(at.file, at.line, at.function)) == "own"

"""Possible speed-up: an epoch now and with one cause removed, what a fix is expected to reach, and the limit."""

from gpu_report.catalogue import row_words
from gpu_report.model import Analysis, SpeedupLimit, epoch_now_s
from gpu_report.render.formatting import duration
from gpu_report.render.page.view import Table

COLUMNS = ("Without", "Epoch now", "Expected", "Limit")
NUMERIC = (False, True, True, False)
NOT_ESTIMATED = "not estimated"
NO_FIX = "no fix known"  # nobody can act on it
GAPS = "short gaps"  # what is left where nothing explains it


def limits(analysis: Analysis) -> Table:
    """Return one row for each cause: what a fix is expected to save first, what nobody can act on last.

    All are compared with the same epoch, which has its validation and checkpoint in it.
    """
    now_s = epoch_now_s(analysis.speedup_limits)
    rows = sorted(analysis.speedup_limits, key=_place)
    return Table(COLUMNS, NUMERIC, tuple(_row(limit, now_s) for limit in rows if now_s is not None))


def _place(limit: SpeedupLimit) -> tuple[bool, bool, float]:
    return limit.cause == GAPS, limit.saves_s is None, -(limit.saves_s or limit.saves_at_most_s)


def note(analysis: Analysis) -> str:
    """Return which epochs the epoch now is of."""
    longest = max(analysis.speedup_limits, key=lambda limit: limit.epoch_s_now, default=None)
    which = f" Epoch now: {longest.now_is}." if longest and longest.now_is else ""
    return f"One epoch now, and with one cause removed. The rest of the epoch stays as it is.{which}"


def _row(limit: SpeedupLimit, now_s: float) -> tuple[str, ...]:
    best_s = now_s - limit.saves_at_most_s
    expected = NO_FIX if limit.cause == GAPS else NOT_ESTIMATED
    if limit.saves_s is not None:
        expected = _expected(limit, now_s, now_s - limit.saves_s)
    return (
        row_words(limit.cause),
        duration(now_s, aligned=True),
        expected,
        f"{duration(best_s, aligned=True)} ({limit.basis})",
    )


def _expected(limit: SpeedupLimit, now_s: float, then_s: float) -> str:
    return f"{duration(then_s, aligned=True)} with {limit.fix}, {now_s / then_s:.1f}\u00d7 faster"

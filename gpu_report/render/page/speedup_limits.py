"""Possible speed-up: an epoch now and with one cause removed, what a fix is expected to reach, and the limit."""

from gpu_report.model import Analysis, longest_now
from gpu_report.render.formatting import duration
from gpu_report.render.page.view import Table
from gpu_report.render.speedup_rows import SpeedupRow, speedup_rows
from gpu_report.wording import shown_ratio

COLUMNS = ("If fixed", "Epoch now", "Estimate", "Best case")
NUMERIC = (False, True, True, False)


def limits(analysis: Analysis) -> Table:
    """Return one row for each cause (see `speedup_rows`); none where nobody can act on any."""
    rows = speedup_rows(analysis)
    return Table(COLUMNS, NUMERIC, tuple(map(_row, rows)) if any(not row.has_no_fix for row in rows) else ())


def note(analysis: Analysis) -> str:
    """Return which epochs the epoch now is of."""
    longest = longest_now(analysis.speedup_limits)
    which = f" Epoch now: {longest.now_is}." if longest and longest.now_is else ""
    return f"One epoch now, and with one cause removed. The rest of the epoch stays as it is.{which}"


def _row(row: SpeedupRow) -> tuple[str, ...]:
    now, limit = (duration(seconds, aligned=True) for seconds in (row.now_s, row.limit_s))
    return row.name, now, _expected(row), f"{limit} ({row.limit.basis})"


def _expected(row: SpeedupRow) -> str:
    if row.expected_s is None:
        return row.why_not_expected
    faster = f"{shown_ratio(row.now_s, row.expected_s):.1f}\u00d7 faster"
    return f"{duration(row.expected_s, aligned=True)} with {row.limit.fix}, {faster}"

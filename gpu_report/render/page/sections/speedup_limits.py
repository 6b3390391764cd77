"""Possible speed-up: an epoch now and with one cause removed, what a fix is expected to reach, and the limit."""

from gpu_report.model import Analysis, longest_now
from gpu_report.render.formatting import duration, with_amounts_unbroken
from gpu_report.render.page.views.tables import TextTable
from gpu_report.render.speedup_rows import SpeedupRow, not_listed, shown_rows
from gpu_report.wording import about_length, shown_ratio

COLUMNS = ("If fixed", "Epoch now", "Estimate", "Best case", "Saves in this run")
NUMERIC = (False, True, False, False, False)


def limits(analysis: Analysis) -> TextTable:
    """Return one row for each cause (see `speedup_rows`); none where nobody can act on any."""
    rows = shown_rows(analysis)
    if all(row.has_no_fix for row in rows):
        return TextTable(COLUMNS, NUMERIC, ())
    saved = [_saves(row) for row in rows]
    if not any(saved):  # in a run without a whole epoch
        return TextTable(COLUMNS[:-1], NUMERIC[:-1], tuple(map(_row, rows)))
    return TextTable(COLUMNS, NUMERIC, tuple((*_row(row), each) for row, each in zip(rows, saved, strict=True)))


def note(analysis: Analysis) -> str:
    """Return which epochs the epoch now is of."""
    longest = longest_now(analysis.speedup_limits)
    which = f" Epoch now: {longest.now_is}." if longest and longest.now_is else ""
    text = f"One epoch now, and with one cause removed. The rest of the epoch stays as it is.{which}"
    return f"{text} {not_listed(analysis)}".strip()


def _row(row: SpeedupRow) -> tuple[str, ...]:
    now, limit = (duration(seconds, aligned=True) for seconds in (row.now_s, row.limit_s))
    return row.name, now, _expected(row), f"{limit} ({row.limit.basis})"


def _saves(row: SpeedupRow) -> str:
    """Return what a fix would have saved in all of the recording; empty where nobody can act on it, or knows."""
    seconds = row.limit.saves_in_run_s
    if row.has_no_fix or seconds is None:
        return ""
    return with_amounts_unbroken(f"{'up to' if row.expected_s is None else 'about'} {about_length(seconds)}")


def _expected(row: SpeedupRow) -> str:
    if row.expected_s is None:
        return row.why_not_expected
    faster = f"{shown_ratio(row.now_s, row.expected_s):.1f}\u00d7 faster"
    return f"{duration(row.expected_s, aligned=True)} with {row.limit.fix}, {faster}"

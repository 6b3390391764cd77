"""Possible speed-up, as the page and the terminal list it: one row for each cause, all compared with the same epoch."""

from dataclasses import dataclass

from gpu_report.catalogue import row_words
from gpu_report.model import Analysis, SpeedupLimit, epoch_now_s
from gpu_report.wording import shown_ratio

RATIO_FROM = 1.2  # times as fast; less is said in percent
GAPS = "short gaps"  # what is left where nothing explains it: nobody can act on it


@dataclass(frozen=True)
class SpeedupRow:
    """A whole epoch in seconds: now, expected (None where that is not estimated), and the limit."""

    limit: SpeedupLimit
    now_s: float
    expected_s: float | None
    limit_s: float

    @property
    def has_no_fix(self) -> bool:
        """Tell whether nobody can act on it."""
        return self.limit.cause == GAPS

    @property
    def name(self) -> str:
        """Return the cause, or the user's function, and that it lies in the ends of epochs where it does."""
        what = f"Your {self.limit.function}" if self.limit.function else row_words(self.limit.cause)
        return what + (", at the ends of epochs" if self.limit.at_epoch_ends else "")

    @property
    def why_not_expected(self) -> str:
        """Return what stands for an expected epoch where there is none."""
        ratio = shown_ratio(self.now_s, self.limit_s)
        shorter = f"{100 * (1 - self.limit_s / self.now_s):.0f} % shorter"  # 1.0 times as fast would read as nothing
        most = f"{ratio:.1f}\u00d7 faster" if ratio >= RATIO_FROM else shorter
        return "no fix known" if self.has_no_fix else f"up to {most}"


def speedup_rows(analysis: Analysis) -> list[SpeedupRow]:
    """Return what a fix is expected to save first, what nobody can act on last."""
    now_s = epoch_now_s(analysis.speedup_limits)
    if now_s is None:
        return []
    return [
        SpeedupRow(
            limit, now_s, None if limit.saves_s is None else now_s - limit.saves_s, now_s - limit.saves_at_most_s
        )
        for limit in sorted(analysis.speedup_limits, key=_place)
    ]


def _place(limit: SpeedupLimit) -> tuple[bool, bool, float]:
    return limit.cause == GAPS, limit.saves_s is None, -(limit.saves_s or limit.saves_at_most_s)

"""Possible speed-up, as the page and the terminal list it: one row for each cause, all compared with the same epoch."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpu_report.catalogue import CAUSES, GAPS, LAUNCH_BOUND, RULES, UNEXPLAINED, row_words
from gpu_report.model import LEAST_SPEED_UP, Analysis, EpochSummary, Finding, SpeedupLimit, epoch_now_s
from gpu_report.wording import shown_ratio, where_it_is

LEAST_SHARE = 1 - 1 / LEAST_SPEED_UP  # of an epoch (0 to 1): the analysis has no limit for what takes less
RATIO_FROM = 1.2  # times as fast; less is said in percent
SLOWER_EPOCHS = "Slower epochs (unknown cause)"


@dataclass(frozen=True)
class SpeedupRow:
    """A whole epoch in seconds: now, expected (None where that is not estimated), and the limit.

    `has_no_fix` says that nobody can act on it, or that what is to be tried may win anything (`to_try`).
    """

    limit: SpeedupLimit
    now_s: float
    expected_s: float | None
    limit_s: float
    has_no_fix: bool = False
    to_try: str = ""

    @property
    def name(self) -> str:
        """Return the cause or the user's function, and where in the training it lies; slower epochs say so."""
        limit = self.limit
        what = f"Your {where_it_is(limit.location)}" if limit.location else row_words(limit.cause)
        if limit.at_epoch_ends:
            return f"{what}, at the ends of epochs"
        if limit.in_epochs is None:
            return what
        of_epochs = SLOWER_EPOCHS if limit.cause == UNEXPLAINED else what
        return f"{of_epochs}, {in_epochs(*limit.in_epochs)}"

    @property
    def why_not_expected(self) -> str:
        """Return what stands for an expected epoch where there is none."""
        ratio = shown_ratio(self.now_s, self.limit_s)
        shorter = f"{100 * (1 - self.limit_s / self.now_s):.0f} % shorter"  # 1.0 times as fast would read as nothing
        most = f"{ratio:.1f}\u00d7 faster" if ratio >= RATIO_FROM else shorter
        return (self.to_try or "no fix known") if self.has_no_fix else f"up to {most}"


def in_epochs(first: int, last: int | None) -> str:
    """Return in which epochs something was, in words; without a last one it goes on."""
    if last is None:
        return f"from epoch {first} on"
    return f"in epoch {first}" if first == last else f"in epochs {first} to {last}"


def speedup_rows(analysis: Analysis) -> list[SpeedupRow]:
    """Return what a fix is expected to save first, what nobody can act on last."""
    now_s = epoch_now_s(analysis.speedup_limits)
    if now_s is None:
        return []
    return [
        SpeedupRow(
            limit,
            now_s,
            None if limit.saves_s is None else now_s - limit.saves_s,
            now_s - limit.saves_at_most_s,
            _has_no_fix(limit, analysis),
            _to_try(limit, analysis),
        )
        for limit in sorted(analysis.speedup_limits, key=lambda limit: _place(limit, analysis))
    ]


def _has_no_fix(limit: SpeedupLimit, analysis: Analysis) -> bool:
    """Tell whether nobody can act on what holds training back: gaps, or small steps without a larger batch to try."""
    mine = [finding for finding in analysis.findings if finding.cause and finding.cause.name == limit.cause]
    is_stuck = limit.cause == LAUNCH_BOUND and not limit.fix and not any(finding.advice for finding in mine)
    return limit.cause == GAPS or is_stuck


def shown_rows(analysis: Analysis) -> list[SpeedupRow]:
    """Return the rows that somebody can act on: a row without a fix is no possible speed-up."""
    return [row for row in speedup_rows(analysis) if row.to_try or not row.has_no_fix]


def not_listed(analysis: Analysis) -> str:
    """Return why what the verdict begins with has no row, where others have one; empty where it has, or needs none.

    Epochs that are judged are those that only train: in these it took less than is listed.
    """
    sentences = analysis.verdict.sentences
    lead = next((each for each in sentences if each.kind in {"fix", "look"} and each.about in CAUSES), None)
    rows = shown_rows(analysis)
    if lead is None or not rows or lead.about in {UNEXPLAINED, *(row.limit.cause for row in rows)}:
        return ""
    led = [finding for finding in analysis.findings if finding.id in lead.findings]
    if not led or not all(RULES[finding.rule].takes_epoch_time for finding in led):
        return ""
    if _share_of_epochs(led, analysis.epochs) >= LEAST_SHARE:  # it has no row since nobody can say what it cost
        return ""
    return f"{row_words(lead.about)} took under {100 * LEAST_SHARE:.0f} % of these epochs: it is not listed."


def _share_of_epochs(findings: Sequence[Finding], epochs: Sequence[EpochSummary]) -> float:
    """Return how much of the training of epochs that are judged findings lasted (0 to 1); all where there is none."""
    judged = [
        (each.start_t_s, each.start_t_s + each.train_s) for each in epochs if each.train_s and not each.is_special
    ]
    spans = [one.span for finding in findings for one in finding.each]
    lasted = sum(max(min(end, to) - max(start, since), 0.0) for start, end in judged for since, to in spans)
    in_all = sum(end - start for start, end in judged)
    return lasted / in_all if in_all else 1.0


def _to_try(limit: SpeedupLimit, analysis: Analysis) -> str:
    """Return what the verdict says to try against small steps, with nobody knowing what it wins."""
    said = any(each.kind == "look" and each.about == LAUNCH_BOUND for each in analysis.verdict.sentences)
    return "try a larger batch" if said and limit.cause == LAUNCH_BOUND else ""


def _place(limit: SpeedupLimit, analysis: Analysis) -> tuple[bool, bool, float]:
    return _has_no_fix(limit, analysis), limit.saves_s is None, -(limit.saves_s or limit.saves_at_most_s)

"""Possible speed-up: for each cause the training part of an epoch now, at best, and what a fix would reach."""

from gpu_report.catalogue import row_words
from gpu_report.model import Analysis, SpeedupLimit
from gpu_report.render.formatting import duration, sentence
from gpu_report.render.page.view import Table

COLUMNS = ("Without", "Training of an epoch now", "At best", "Times faster", "Likely", "At best means")
NO_ESTIMATE = "not estimated"
NUMERIC = (False, True, True, True, False, False)


def limits(analysis: Analysis) -> Table:
    """Return one row for each cause, the largest win first; no rows where epochs or causes are not known."""
    return Table(COLUMNS, NUMERIC, tuple(_row(limit) for limit in analysis.speedup_limits))


def _row(limit: SpeedupLimit) -> tuple[str, ...]:
    return (
        row_words(limit.cause),
        duration(limit.epoch_s_now),
        duration(limit.epoch_s_at_best),
        f"{limit.speed_up_at_most:.1f}",
        f"{duration(limit.epoch_s_estimate)} with {limit.fix}" if limit.epoch_s_estimate is not None else NO_ESTIMATE,
        sentence(limit.basis),
    )

"""What an expected drop is made of: the validation and checkpoint in it, and the training at its edges."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpu_report.analyse.causes.confidence import STRONG
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules.drops.at_epoch_end import AT_THE_END, CLOSING
from gpu_report.analyse.signals.gpu.utilisation_drops import Drop
from gpu_report.analyse.signals.thresholds import PHASE_EDGE_S
from gpu_report.analyse.timeline.epoch_ends import EpochEnd
from gpu_report.analyse.timeseries.intervals import IntervalIndex, Span, intersect, length_s, minus, union
from gpu_report.analyse.timeseries.thresholds import OUTLIER_AT_LEAST_S, OUTLIER_SHARE
from gpu_report.model import Cause, Evidence, Phase


@dataclass(frozen=True)
class EpochEndCause:
    """The end of an epoch as the cause of a drop, with the seconds of the drop that each part of it took."""

    cause: Cause
    evidence: tuple[Evidence, ...]


def epoch_end_cause(context: Context, drop: Drop) -> EpochEndCause:
    """Return the end of an epoch as the cause of a drop that it explains, whoever saw its phases."""
    span = drop.span
    near = context.cached(_phases)(*span)
    phases = [phase for phase in near if phase.end_t_s > span[0] and phase.start_t_s < span[1]]
    ends = union([phase.span for phase in phases if phase.name in AT_THE_END])
    closing = union([phase.span for phase in phases if phase.detail == CLOSING])
    at_the_end_s, anew_s = length_s(intersect([span], ends)), length_s(intersect([span], closing))
    epoch_end = context.epoch_ends.touching(*span)
    if _hides_validation(context, epoch_end):
        return EpochEndCause(Cause("validation", STRONG, _words(0.0, None, 0.0, epoch_end)), ())
    left = minus([span], [*ends, *closing])
    trained_s, before_s = length_s(left) if ends else 0.0, _before_s(left, ends)
    typical_s = _typical_s(context, epoch_end)
    if trained_s <= context.epoch_ends.edge_s:  # readings do not know the edges of a drop better than that
        trained_s = before_s = 0.0
    cause = Cause("validation", STRONG, _words(at_the_end_s, typical_s, trained_s, epoch_end))
    numbers = (
        ("of it, validation and checkpoint", at_the_end_s, "s"),
        ("of it, data loader restarted as the mosaic closes", anew_s, "s"),
        ("of it, training before them", before_s, "s"),
        ("of it, training after them", trained_s - before_s, "s"),
    )
    return EpochEndCause(cause, evidence(*(each for each in numbers if each[1] > PHASE_EDGE_S)))


def _hides_validation(context: Context, epoch_end: EpochEnd | None) -> bool:
    """Tell whether an epoch validates, and nobody knows when: its train phase, as rows have it, ends after that."""
    if epoch_end is None or epoch_end.from_callbacks or epoch_end.fitted:
        return False
    row = epoch_end.row
    training = context.training_at(row.start_t_s)
    near = context.cached(_phases)(row.start_t_s, row.row_t_s)
    known = any(phase.name == "validation" and phase.end_t_s > row.start_t_s for phase in near)
    return not known and (training is None or training.args.get("val") is not False)


def _phases(context: Context) -> IntervalIndex[Phase]:
    """Return the phases of the run, to be asked for those at a drop: a long run has thousands of either."""
    return IntervalIndex(context.phases, lambda phase: phase.span)


def _typical_s(context: Context, epoch_end: EpochEnd | None) -> float | None:
    """Return what validation and checkpoint take in the epochs beside it (median), None without any."""
    typical = context.epoch_ends.typical_s(epoch_end) if epoch_end else None
    return sum(typical) if typical else None


def _before_s(left: Sequence[Span], ends: Sequence[Span]) -> float:
    """Return how much of what is left lies before the first validation or checkpoint."""
    return length_s([each for each in left if each[1] <= ends[0][0]]) if ends else 0.0


def _words(at_the_end_s: float, typical_s: float | None, trained_s: float, epoch_end: EpochEnd | None) -> str:
    """Return the cause in a sentence that says of a first validation why it takes longer, and what is no part of it."""
    if not at_the_end_s:
        return "the epoch ended here: validation and checkpoint"
    took = f"the epoch ended here: validation and checkpoint took {at_the_end_s:.1f} s of it"
    if typical_s is not None:
        took += f", typical {typical_s:.1f} s"
        if (
            epoch_end
            and epoch_end.first
            and at_the_end_s > typical_s + max(OUTLIER_AT_LEAST_S, OUTLIER_SHARE * typical_s)
        ):
            took += " (the first takes longer: validation starts its data loader and prepares its kernels)"
    if trained_s:
        took += f"; {trained_s:.1f} s of it are training just before or after"
    return took

"""Why the first validation of a process takes longer than the others: what it does comes once."""

from statistics import median

from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.model import ValidationPart

# Parts of a validation in which that lies: its loader starts and reads its images for the first time, and the model's
# kernels are loaded for its sizes.
ONCE: tuple[ValidationPart, ...] = ("data", "inference")
ONCE_WORDS = "the first one starts its workers, reads its images for the first time and loads kernels"


def takes_longer_once(context: Context, span: Span) -> bool:
    """Tell whether most of what a first validation takes longer than later ones lies where that comes once.

    False where validations reported no parts.
    """
    known = [phase for phase in context.phases if phase.validated is not None and phase.validated.seconds]
    mine = next((p.validated for p in known if p.start_t_s < span[1] and p.end_t_s > span[0]), None)
    others = [p.validated for p in known if p.start_t_s >= span[1] and p.validated]
    if mine is None or not others:
        return False
    longer_s = {
        part: max(seconds - median(each.seconds.get(part, 0.0) for each in others), 0.0)
        for part, seconds in mine.seconds.items()
    }
    return sum(longer_s.get(part, 0.0) for part in ONCE) >= th.MOSTLY_ONCE * sum(longer_s.values())

"""Of several trainings in one recording: which of them something is about."""

from collections.abc import Sequence

from gpu_report.analyse.context import Context
from gpu_report.model import Finding


def which_training(context: Context, findings: Sequence[Finding]) -> str:
    """Return of which of several trainings findings are: training 1 of 2; empty where that is none or not one alone."""
    number_of = {id(training): number for number, training in enumerate(context.trainings, 1)}
    at = {id(context.training_at(one.start_t_s, one.gpu)) for finding in findings for one in finding.each}
    if len(number_of) < 2 or len(at) != 1:
        return ""
    number = number_of.get(at.pop())
    return "" if number is None else f"training {number} of {len(number_of)}"

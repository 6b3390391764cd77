"""Of several trainings in one recording: which of them something is about."""

from collections.abc import Sequence

from gpu_report.analyse.context import Context
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.catalogue import PAST_KEY
from gpu_report.model import Finding


def which_training(context: Context, findings: Sequence[Finding]) -> str:
    """Return of which of several trainings findings are: training 1 of 2; empty where that is none or not one alone."""
    at = {id(training): training for each in findings for training in _of_each(context, each)}
    return context.which_training(next(iter(at.values()))) if len(at) == 1 else ""


def current_training(context: Context, past: Sequence[Finding]) -> Training | None:
    """Return the training in which what held an earlier one back was over, the last of several; else None."""
    numbers = [number for each in past if (number := each.number(PAST_KEY)) is not None]
    return context.trainings[round(max(numbers)) - 1] if numbers else None


def _of_each(context: Context, finding: Finding) -> list[Training | None]:
    return [context.training_at(one.start_t_s, one.gpu) for one in finding.each]

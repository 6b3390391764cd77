"""Validations that no training made: `yolo val`, or `model.val()` in a program."""

from gpu_report.analyse.context import Context
from gpu_report.model import InsideRun, Phase


def nothing_trained(context: Context) -> bool:
    """Tell whether YOLO did other things than to train in this run: validate, predict, export."""
    return bool(context.run.inside) and not context.run.has_training


def is_validation(context: Context) -> bool:
    """Tell whether models were validated in this run, and nothing trained or was called."""
    validated = any(run.task == "val" for run in context.run.inside)
    return validated and nothing_trained(context) and not context.run.calls


def validations(context: Context) -> tuple[tuple[InsideRun, Phase], ...]:
    """Return the validations that told of their parts, in order, each with its process of YOLO."""
    of_val = [run for run in context.run.inside if run.task == "val" and run.rank <= 0]
    found = [(run, phase) for run in of_val for phase in run.phases if phase.validated is not None]
    return tuple(sorted(found, key=lambda each: each[1].start_t_s))

"""What a finding cost on the clock, and on how many GPUs."""

from collections.abc import Sequence

from gpu_report.analyse.context import Context
from gpu_report.model import Finding


def cost_on_the_clock_s(context: Context, findings: Sequence[Finding]) -> float | None:
    """Return what findings cost on the clock (s), None where none of them knows it.

    What one GPU lost its training lost; what is of no GPU alone all GPUs of the training lost.
    """
    known = [(finding, finding.lost_gpu_s) for finding in findings if finding.lost_gpu_s is not None]
    return sum(lost_s / _gpus_of(context, finding) for finding, lost_s in known) if known else None


def _gpus_of(context: Context, finding: Finding) -> int:
    training = context.training_at(finding.start_t_s)
    return 1 if finding.gpu is not None or training is None else max(len(training.gpus), 1)

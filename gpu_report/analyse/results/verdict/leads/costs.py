"""What findings cost on the clock, on however many GPUs."""

from bisect import bisect_right
from collections.abc import Sequence

from gpu_report.analyse.context import Context
from gpu_report.analyse.timeseries.intervals import union
from gpu_report.model import Finding, SpeedupLimit


def cost_on_the_clock_s(context: Context, findings: Sequence[Finding]) -> float | None:
    """Return what findings of one cause cost on the clock (s), None where none of them knows it.

    What one GPU lost its training lost; what is of no GPU alone all GPUs of the training lost. What slowed several GPUs
    of a training at once, or was two processes on one, cost as much as the worst of it.
    """
    known: dict[int, list[Finding]] = {}
    for one in (one for finding in findings for one in finding.each if one.lost_gpu_s is not None):
        known.setdefault(id(context.training_at(one.start_t_s, one.gpu)), []).append(one)
    return sum(_of_one_training(context, each) for each in known.values()) if known else None


def cost_in_run_s(context: Context, findings: Sequence[Finding], limit: SpeedupLimit | None) -> float | None:
    """Return what findings of one cause cost in the run (s): what the limit of it says, else that on the clock."""
    known_s = limit.costs_in_run_s if limit is not None else None
    return cost_on_the_clock_s(context, findings) if known_s is None else known_s


def _of_one_training(context: Context, findings: Sequence[Finding]) -> float:
    spans = [finding.span for finding in findings]
    begins = [start for start, _ in union(spans)]
    most_s = [0.0] * len(begins)
    for finding, span in zip(findings, spans, strict=True):
        at = bisect_right(begins, span[0]) - 1
        most_s[at] = max(most_s[at], (finding.lost_gpu_s or 0.0) / _gpus_of(context, finding))
    return sum(most_s)


def _gpus_of(context: Context, finding: Finding) -> int:
    training = context.training_at(finding.start_t_s)
    return 1 if finding.gpu is not None or training is None else max(len(training.gpus), 1)

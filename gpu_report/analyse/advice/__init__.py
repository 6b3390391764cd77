"""Advice for a run: a cause that holds it back all the time gets what can be changed against it, and what that wins."""

from collections.abc import Sequence
from dataclasses import replace

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.advice.fixes import Repair, repair
from gpu_report.analyse.advice.run_settings import setup_of
from gpu_report.analyse.advice.speedup_bounds import standing_causes, training_of_bounds
from gpu_report.analyse.context import Context
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.model import Advice, Bound, EpochSummary, Finding


def advise(
    context: Context, epochs: Sequence[EpochSummary], findings: Sequence[Finding], bounds: Sequence[Bound]
) -> tuple[list[Finding], tuple[Bound, ...]]:
    """Return the findings with advice against their causes, and the bounds with what the repair would reach.

    Advice is given where the cause held all the time, in the training that bounds are of: no argument would have kept a
    moment's fault away. None of it is for a training that ended for want of host memory: a larger batch, more workers
    and a cache all take more.
    """
    training = training_of_bounds(context, epochs)
    if training is None or any(_ran_out_of_memory(finding, training) for finding in findings):
        return list(findings), tuple(bounds)
    held_back = [f for f in standing_causes(context, training, findings) if f.severity != "info"]  # a note has none
    standing = {finding.cause.name for finding in held_back if finding.cause}
    offered = {
        bound.cause: found
        for bound in bounds
        if bound.cause in standing and (found := _repair(context, training, bound)) is not None
    }
    of = {bound.cause: bound for bound in bounds}
    advised = [
        replace(f, advice=(*f.advice, _advice(of[f.cause.name], offered[f.cause.name])))
        if f in held_back and f.cause and f.cause.name in offered
        else f
        for f in findings
    ]
    return advised, tuple(_with_estimate(bound, offered.get(bound.cause)) for bound in bounds)


def _ran_out_of_memory(finding: Finding, training: Training) -> bool:
    """Tell whether a training ended for want of host memory, for certain or likely."""
    start_s, end_s = training.span
    short = finding.cause is not None and finding.cause.runner_up == "memory-pressure"
    return finding.rule == "run-ended" and short and start_s <= finding.end_t_s <= end_s + th.TOGETHER_S


def _repair(context: Context, training: Training, bound: Bound) -> Repair | None:
    signals = context.signals.of_training(min(training.gpus), training) if training.gpus else None
    return None if signals is None else repair(setup_of(context, training), bound, signals)


def _advice(bound: Bound, found: Repair) -> Advice:
    return Advice(
        text=found.reason,
        argument=found.argument,
        from_value=found.from_value,
        to_value=found.to_value,
        gain_at_most=1 - bound.epoch_s_at_best / bound.epoch_s_now,
        gain_estimate=None if found.epoch_s is None else 1 - found.epoch_s / bound.epoch_s_now,
    )


def _with_estimate(bound: Bound, found: Repair | None) -> Bound:
    if found is None or found.epoch_s is None:
        return bound
    return replace(bound, epoch_s_estimate=found.epoch_s, repair=f"{found.argument}={found.to_value}")

"""Advice for a run: each finding gets what can be changed against its cause, with what that could win."""

from collections.abc import Sequence
from dataclasses import replace

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.context import Context
from gpu_report.analyse.repairs import Repair, repairs
from gpu_report.analyse.setup import setup_of
from gpu_report.model import Advice, Bound, EpochSummary, Finding


def advise(
    context: Context, epochs: Sequence[EpochSummary], findings: Sequence[Finding], bounds: Sequence[Bound]
) -> tuple[list[Finding], tuple[Bound, ...]]:
    """Return the findings with advice against their causes, and the bounds with what the best repair would reach.

    Advice is given where the cause held all the time: no argument would have kept a moment's fault away.
    """
    standing = {f.cause.name for f in findings if f.rule == "starved" and f.cause}
    offered: dict[str, list[Repair]] = {}
    for bound in bounds:
        if bound.cause in standing and context.scenes.calm:
            setup = setup_of(context, epochs[-1].run)
            scene = context.scenes.of_training(min(context.activity.used_gpus))
            offered[bound.cause] = repairs(setup, bound, scene)
    by_cause = {bound.cause: bound for bound in bounds}
    advised = [
        replace(f, advice=(*f.advice, *_advice(by_cause[f.cause.name], offered[f.cause.name])))
        if f.rule == "starved" and f.cause and offered.get(f.cause.name)
        else f
        for f in findings
    ]
    return advised, tuple(_with_estimate(bound, offered.get(bound.cause, [])) for bound in bounds)


def _advice(bound: Bound, found: Sequence[Repair]) -> list[Advice]:
    most = 1 - bound.epoch_s_at_best / bound.epoch_s_now
    return [
        Advice(
            text=repair.reason,
            argument=repair.argument,
            from_value=repair.from_value,
            to_value=repair.to_value,
            gain_at_most=most,
            gain_estimate=None if repair.epoch_s is None else 1 - repair.epoch_s / bound.epoch_s_now,
        )
        for repair in found[: th.MOST_ADVICE]
    ]


def _with_estimate(bound: Bound, found: Sequence[Repair]) -> Bound:
    best = next((repair for repair in found if repair.epoch_s is not None), None)
    if best is None:
        return bound
    return replace(bound, epoch_s_estimate=best.epoch_s, repair=f"{best.argument}={best.to_value}")

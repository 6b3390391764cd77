"""What a training would have saved in the recorded run without a cause: the one figure of table and verdict."""

from collections.abc import Sequence
from dataclasses import replace

from gpu_report.analyse.context import Context
from gpu_report.analyse.results.occurrences import lost_s
from gpu_report.analyse.results.verdict.leads.costs import cost_on_the_clock_s
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.catalogue import RULES
from gpu_report.model import EpochSummary, Finding, SpeedupLimit


def with_savings(
    context: Context, limits: Sequence[SpeedupLimit], epochs: Sequence[EpochSummary], findings: Sequence[Finding]
) -> tuple[SpeedupLimit, ...]:
    """Return limits with what each cause cost in all: in the epochs that a mean is of, else in all of the recording.

    What a cause cost elsewhere, such as in the first epoch, is added. Of several YOLO runs, of which a limit is of one,
    nothing is known.
    """
    return tuple(replace(limit, costs_in_run_s=_costs_s(context, limit, epochs, findings)) for limit in limits)


def _costs_s(
    context: Context, limit: SpeedupLimit, epochs: Sequence[EpochSummary], findings: Sequence[Finding]
) -> float | None:
    counted = [epoch for epoch in epochs if not (limit.is_mean and epoch.is_special)]
    counted = [epoch for epoch in counted if epoch.epoch >= (limit.since or 0)]
    if len({epoch.run for epoch in counted}) != 1:
        return None
    costs_s = limit.saves_at_most_s * len(counted)
    if not limit.is_mean or limit.in_epochs is not None:  # all epochs, or those that are known to be longer
        return costs_s
    return costs_s + (cost_on_the_clock_s(context, _elsewhere(limit, counted, findings)) or 0.0)


def _elsewhere(limit: SpeedupLimit, counted: Sequence[EpochSummary], findings: Sequence[Finding]) -> list[Finding]:
    """Return what took time for the cause of a limit, with the part of its cost that lies in no epoch of the limit."""
    cover = interval_cover((epoch.start_t_s, epoch.end_t_s) for epoch in counted)
    alike = (one for finding in findings if _is_of(finding, limit) for one in finding.each if one.duration_s > 0)
    parts = ((one, 1 - cover.seconds_in(one.span) / one.duration_s) for one in alike)
    return [replace(one, lost_gpu_s=part * lost_s(one)) for one, part in parts if part > 0]


def _is_of(finding: Finding, limit: SpeedupLimit) -> bool:
    """Tell whether a limit is of what took time in a finding, and how much that was."""
    rule = RULES[finding.rule]
    if finding.cause_name != limit.cause or finding.expected or finding.severity == "info":
        return False
    is_known = finding.lost_gpu_s is not None or rule.fall or rule.at_epoch_ends
    return rule.at_epoch_ends == limit.at_epoch_ends and (rule.takes_epoch_time or rule.at_epoch_ends) and is_known

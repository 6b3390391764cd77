"""Each metric of a model's calls in two runs: what it was, what it is, and whether the change is more than chance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from gpu_report.analyse.compare import thresholds as th
from gpu_report.analyse.compare.calls.estimates import Estimate, calls_for, change_ends
from gpu_report.analyse.compare.calls.matching import MatchedModel
from gpu_report.analyse.compare.calls.samples import CallSample
from gpu_report.analyse.compare.metrics import (
    LATENCY,
    MEMORY,
    METRICS,
    OF_CALLS,
    PARTS,
    STATISTICS_OF_CALLS,
    Metric,
)
from gpu_report.analyse.compare.significance import Basis, compared_figures, judge_by_band, with_judgement
from gpu_report.model import MetricComparison, calls_needed


def judge_models(models: Sequence[MatchedModel]) -> tuple[MetricComparison, ...]:
    """Return every metric that any side of a model has; memory is of a run as a whole, and said once."""
    found = [judge(model, *each) for model in models for each in OF_CALLS if each[0] != MEMORY or model is models[0]]
    return tuple(each for each in found if each.baseline is not None or each.run is not None)


def judge(model: MatchedModel, name: str, statistic: str) -> MetricComparison:
    """Return a metric of a model's calls by one of its statistics; without a baseline only the run's value."""
    metric, sides = METRICS[name], (*model.baselines, model.run)
    note = _missing(name, statistic, sides)
    known = [side.estimate(name, statistic) for side in sides]
    basis: Basis = "run" if name == MEMORY else "calls"
    figures = [None if each is None else each.value for each in known]
    compared = compared_figures(metric, statistic, figures, basis)
    counts = min((len(side.images) for side in model.baselines), default=0), len(model.run.images)
    counts = counts if basis == "calls" else (1, 1)
    compared = replace(compared, counts=counts, model="" if basis == "run" else model.model, note=note)
    before, after = [each for each in known[:-1] if each is not None], known[-1]
    if note or not before or after is None or compared.baseline is None:
        return compared
    compared = replace(compared, least_change=_least(model, metric, compared.baseline))
    return with_judgement(_with_interval(compared, _middle(before), after), metric)


def _with_interval(compared: MetricComparison, before: Estimate, after: Estimate) -> MetricComparison:
    """Return a metric with the interval of its change, and how many calls would make one certain that is not."""
    ends = change_ends(before, after)
    certain = ends[0] > 0 or ends[1] < 0
    if any(map(math.isfinite, ends)) and compared.basis == "calls":
        share = (max(ends[0] / before.value, -1.0), ends[1] / before.value) if before.value > 0 else None
        compared = replace(compared, interval=ends, interval_share=share)
    is_sure = certain or compared.basis == "run"
    held = judge_by_band(compared, is_sure=is_sure)
    return held if is_sure else replace(held, enough=rounded(calls_for(before, after)))


def _middle(baselines: Sequence[Estimate]) -> Estimate:
    """Return the median of several baselines, and of the ends of their intervals."""
    value, low, high = (median(getattr(each, end) for each in baselines) for end in ("value", "low", "high"))
    fewest = min(baselines, key=lambda each: each.count)
    return replace(fewest, value=value, low=low, high=high)


def _least(model: MatchedModel, metric: Metric, baseline: float) -> float:
    """Return the smallest change that counts; of a part of a call a share of the whole, not of a part near zero."""
    if metric.name not in PARTS:
        return metric.least_change(baseline)
    calls = [each.value for side in model.baselines if (each := side.estimate(LATENCY, "mean")) is not None]
    return max(metric.least_change(baseline), th.LEAST_PART_SHARE * median(calls))


def _missing(name: str, statistic: str, sides: Sequence[CallSample]) -> str:
    """Return that a percentile needs more calls than a side has; empty where it has them."""
    share = STATISTICS_OF_CALLS.get(statistic)
    fewest = min(len(side.images) for side in sides)
    if name != LATENCY or share is None:
        return ""
    needed = calls_needed(share) * (th.CALLS_TO_COMPARE if len(sides) > 1 else 1)
    return f"{statistic} needs {needed:,} calls, and there are {fewest:,}" if fewest < needed else ""


def rounded(calls: int) -> int:
    """Return a number of calls with two digits, upwards: more would pretend to know."""
    step: int = 10 ** max(len(str(calls)) - 2, 0)
    return -(-calls // step) * step

"""A run's figures for services that keep their history: Bencher, and github-action-benchmark."""

import math
import re
from typing import Any

from gpu_report.model import Comparison, MetricComparison
from gpu_report.render.comparison.rows import interval_words, label
from gpu_report.render.machine_values import json_ready

# Of the metrics that have a direction; utilisation is better high as long as nobody knows what the epoch time did.
BIGGER_IS_BETTER = frozenset({"images_per_s", "util"})
# What an epoch costs: they tell slower cores from a slower training, and a service would raise alarms about them.
WITHOUT_DIRECTION = frozenset({"main_cpu", "workers_cpu", "gpu_work"})

Json = dict[str, Any]


def bencher(comparison: Comparison) -> Json:
    """Return Bencher Metric Format: the set-up is the benchmark, a metric is a measure.

    Its lower and upper values are where the run lies by the interval of the change from the baseline.
    """
    found: Json = json_ready({comparison.setup: {_name(metric): _measure(metric) for metric in _known(comparison)}})
    return found


def _name(metric: MetricComparison) -> str:
    """Return a metric as a measure is called: epoch-time, latency-p95, latency-p95-yolo26n of one model of several."""
    statistic = metric.statistic if metric.metric == "latency" else ""
    name = "-".join(part for part in (metric.metric, statistic, metric.model) if part)
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")


def github_benchmark(comparison: Comparison, *, bigger_is_better: bool) -> list[Json]:
    """Return the rows of github-action-benchmark's customBiggerIsBetter or customSmallerIsBetter.

    A metric without a direction is in neither.
    """
    directed = [m for m in _known(comparison) if m.metric not in WITHOUT_DIRECTION]
    mine = [m for m in directed if (m.metric in BIGGER_IS_BETTER) == bigger_is_better]
    rows: list[Json] = json_ready([_row(comparison, metric) for metric in mine])
    return rows


def _known(comparison: Comparison) -> list[MetricComparison]:
    return [metric for metric in comparison.metrics if metric.run is not None]


def _measure(metric: MetricComparison) -> Json:
    measure = {"value": metric.run}
    if metric.baseline is None or metric.interval is None:
        return measure
    low, high = (metric.baseline + end for end in metric.interval)
    if not math.isfinite(low + high):
        return measure
    return {**measure, "lower_value": low, "upper_value": high}


def _row(comparison: Comparison, metric: MetricComparison) -> Json:
    row = {"name": f"{comparison.setup}: {label(metric)}", "unit": metric.unit, "value": metric.run}
    if metric.interval is not None and all(map(math.isfinite, metric.interval)):
        half = (metric.interval[1] - metric.interval[0]) / 2
        row |= {"range": f"\u00b1 {half:.3g}", "extra": f"99 % interval of the change: {interval_words(metric)}"}
    return row

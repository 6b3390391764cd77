"""What a comparison says of disturbed time: how much of it, what that was, and what the runs as a whole took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpu_report.analyse.compare import thresholds as th
from gpu_report.analyse.compare.comparability import has_windows
from gpu_report.analyse.compare.disturbances import cover_of, train_span
from gpu_report.analyse.compare.significance import SampleValues
from gpu_report.analyse.timeseries.sums import sums_by_key
from gpu_report.catalogue import cause_words, rule_words
from gpu_report.model import Finding, MetricComparison
from gpu_report.wording import amount, brief_seconds, lower_first, speed_change

KEPT = "Interruptions are compared, too, because too little training would be left without them: {}."


def with_enough_left(sides: Sequence[SampleValues]) -> tuple[list[SampleValues], tuple[str, ...]]:
    """Return the sides with what they set aside, and that in a sentence; nothing is where too little would be left."""
    told = [f"{said} in {whose}" for side, whose in _named(sides) if (said := _said(side))]
    if not told:
        return list(sides), ()
    if any(side.is_short for side in sides) and not has_windows(sides):
        return [replace(side, disturbances=()) for side in sides], (KEPT.format("; ".join(told)),)
    return list(sides), (f"Speed is compared in the steady state. Interruptions are left out: {'; '.join(told)}.",)


def whole_words(whole: MetricComparison | None) -> str:
    """Return in a sentence what became of the run as a whole; empty where nothing of it was set aside."""
    if whole is None or whole.change_share is None:
        return ""
    values = f"{brief_seconds(whole.baseline)} \u2192 {brief_seconds(whole.run)} ({speed_change(whole.change_share)})"
    return f"With interruptions, training per epoch {values}."


def likely_disturbances(
    sides: Sequence[SampleValues], whole: MetricComparison | None, time: MetricComparison | None
) -> str:
    """Return in a sentence what disturbed a run, where that makes most of the change of the run as a whole."""
    *_, run = sides
    if whole is None or time is None or not _is_large(whole) or whole.change is None or time.change is None:
        return ""
    disturbed = run if whole.change > 0 else max(sides[:-1], key=lambda side: len(side.disturbances))
    if not disturbed.disturbances or (whole.change - time.change) / whole.change < th.DISTURBANCES_SHARE:
        return ""
    which = "" if disturbed is run else " in the baseline"
    return f"Likely reason{which}: {_kinds(disturbed.disturbances)}."


def _is_large(whole: MetricComparison) -> bool:
    return whole.change_share is not None and abs(whole.change_share) >= th.LEAST_TIME_SHARE


def _named(sides: Sequence[SampleValues]) -> list[tuple[SampleValues, str]]:
    baseline = "the baseline" if len(sides) < 3 else "a baseline"
    return [*((side, baseline) for side in sides[:-1]), (sides[-1], "the run")]


def _said(side: SampleValues) -> str:
    """Return how much of a run's ordinary epochs is disturbed, and by what; empty where nothing is."""
    if not side.disturbances:
        return ""
    cover = cover_of(side.disturbances)
    spans = [train_span(epoch) for epoch in side.training.epochs]
    seconds = float(cover.seconds_in_each(spans).sum())
    whole = sum(end - start for start, end in spans)
    return f"{amount(seconds, 's')} of {amount(whole, 's')} of training ({_kinds(side.disturbances)})"


def _kinds(disturbances: Sequence[Finding]) -> str:
    """Return kinds of disturbances with their seconds, the longest first."""
    kinds = ((cause_words(each.cause.name) if each.cause else rule_words(each.rule), each) for each in disturbances)
    seconds = sums_by_key((lower_first(kind), each.duration_s) for kind, each in kinds)
    longest = sorted(seconds, key=lambda name: -seconds[name])
    return ", ".join(f"{name} ({amount(seconds[name], 's')})" for name in longest)

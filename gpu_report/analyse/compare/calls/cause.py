"""Why calls take longer or less time than in the baseline: the part of a call that most of the change lies in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from gpu_report.analyse.compare import thresholds as th
from gpu_report.analyse.compare.calls.estimates import Estimate, change_ends
from gpu_report.analyse.compare.calls.matching import MatchedModel
from gpu_report.analyse.compare.metrics import LATENCY
from gpu_report.model import CallCause, MetricComparison
from gpu_report.wording import amount

Part = Literal["preprocess", "inference", "postprocess", "other"]
WORDS: Final[Mapping[Part, str]] = {
    "preprocess": "pre-processing",
    "inference": "inference",
    "postprocess": "post-processing",
    "other": "tracking, drawing and saving",
}


def call_cause(model: MatchedModel, latency: MetricComparison) -> CallCause | None:
    """Return the part whose certain change is most of that of a call's mean, None where none is.

    `latency` is what changed for certain. A tail may grow while the mean does not: no part is to blame for it then.
    """
    if latency.judgement not in {"better", "worse"} or not model.baselines:
        return None
    whole = _change(model, LATENCY)
    if whole is None or (whole.run_ms > whole.baseline_ms) != ((latency.change or 0) > 0):
        return None
    parts = [(part, _change(model, part)) for part in WORDS]
    moved = whole.run_ms - whole.baseline_ms
    found = [
        CallCause(part, each.baseline_ms, each.run_ms, (each.run_ms - each.baseline_ms) / moved)
        for part, each in parts
        if each is not None
    ]
    return next((cause for cause in found if cause.share >= th.CAUSES_SHARE), None)


def because(cause: CallCause | None, *, slower: bool) -> str:
    """Return a cause as the end of a sentence on latency."""
    if cause is None:
        return "."
    takes = "take" if cause.kind == "other" else "takes"
    how = "longer" if slower else "less time"
    values = f"{amount(cause.baseline_ms, 'ms')} \u2192 {amount(cause.run_ms, 'ms')}"
    return f", because {WORDS[cause.kind]} {takes} {how}: {values} a call."


def _change(model: MatchedModel, metric: str) -> CallCause | None:
    """Return the means of a metric in the newest baseline and in the run, None where they may be the same."""
    before, after = model.baselines[0].estimate(metric, "mean"), model.run.estimate(metric, "mean")
    if before is None or after is None or not _is_certain(before, after):
        return None
    return CallCause("other", before.value, after.value, 1.0)


def _is_certain(before: Estimate, after: Estimate) -> bool:
    low, high = change_ends(before, after)
    return low > 0 or high < 0

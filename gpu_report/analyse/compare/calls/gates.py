"""What came of each gate on calls. Of several models the worst counts."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpu_report.analyse.compare.calls.estimates import Estimate
from gpu_report.analyse.compare.calls.judging import judge, rounded
from gpu_report.analyse.compare.calls.matching import MatchedModel
from gpu_report.analyse.compare.gate_results import bound_result, change_result, count_result, undecided, unknown_result
from gpu_report.analyse.compare.gate_syntax import COUNTS
from gpu_report.analyse.compare.metrics import METRICS, OF_CALLS
from gpu_report.model import Analysis, FindingChange, Gate, GateResult
from gpu_report.wording import amount, between

MEASURED = frozenset(metric for metric, _ in OF_CALLS)


def results_of_calls(
    gates: Sequence[Gate],
    models: Sequence[MatchedModel],
    run: Analysis,
    findings: Sequence[FindingChange] | None,
) -> tuple[GateResult, ...]:
    """Return the result of every gate; `findings` None without a baseline."""
    return tuple(_result(gate, models, run, findings) for gate in gates)


def _result(
    gate: Gate, models: Sequence[MatchedModel], run: Analysis, findings: Sequence[FindingChange] | None
) -> GateResult:
    if gate.metric in COUNTS:
        return count_result(gate, run, findings)
    if gate.metric not in MEASURED:
        return unknown_result(gate, "the run calls models and trains none", METRICS[gate.metric].label)
    if gate.limits_change and findings is None:
        return unknown_result(gate, "there is no baseline to compare with")
    return min((_of_model(gate, model) for model in models), key=_badness)


def _of_model(gate: Gate, model: MatchedModel) -> GateResult:
    compared = judge(model, gate.metric, gate.statistic)
    if gate.limits_change:
        return change_result(gate, compared, compared)
    result = bound_result(gate, compared, f": {compared.note}" if compared.note else "")
    estimate = model.run.estimate(gate.metric, gate.statistic)
    return result if estimate is None or result.value is None else _if_sure(result, estimate, compared.unit)


def _if_sure(result: GateResult, estimate: Estimate, unit: str) -> GateResult:
    """Return a result on a run's own value, undecided where the limit lies within the interval of the value."""
    low, high, limit = estimate.low, estimate.high, result.gate.limit
    if not low < limit < high:
        return result
    reach = between((low, high), unit) if math.isfinite(high) else f"{amount(low, unit)} or more"
    enough = f"about {rounded(estimate.calls_to_tell_from(limit)):,} calls would be enough"
    return undecided(result, "too few calls", f"with so few calls it may be {reach}; {enough}")


def _badness(result: GateResult) -> tuple[int, float]:
    """Return a key that puts the worst first: what failed, what could not decide, what was not measured, what passed.

    Of several that are alike the one that changed most in the direction of its limit.
    """
    order = 0 if result.outcome == "failed" else 1 if result.undecided else 2 if result.outcome == "not measured" else 3
    worse_is_less = result.gate.kind == "least" or result.gate.limit < 0
    value = result.value or 0.0
    return order, value if worse_is_less else -value

"""What came of each gate. One that measured nothing neither passes nor fails; what may be chance does not fail."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Protocol

from gpu_report.analyse.compare import thresholds as th
from gpu_report.analyse.compare.gate_counts import count
from gpu_report.analyse.compare.gate_syntax import COUNTS
from gpu_report.analyse.compare.metrics import (
    DATA_WAIT,
    EPOCH_TIME,
    METRICS,
    TYPICAL,
    UTILISATION,
    WAIT_SHARE,
    name_of,
)
from gpu_report.analyse.compare.samples import RunSample
from gpu_report.analyse.compare.significance import OF_A_WHOLE, SampleValues, judge, not_enough
from gpu_report.analyse.compare.slower_host import HostSlowdown
from gpu_report.model import Analysis, FindingChange, Gate, GateResult, MetricComparison, Obstacle, Outcome
from gpu_report.wording import RATIO_FROM, amount, between, change, counted, lower_first, share_change, speed_change

MIDDLE = frozenset({TYPICAL, "mean", "p50"})  # statistics that go with the cores as a whole


class Judge(Protocol):
    """Judges a metric by a statistic, against the baselines or alone; what was asked once is not worked out anew."""

    def __call__(self, metric: str, statistic: str, *, alone: bool) -> MetricComparison:
        """Return the comparison."""


def results(
    gates: Sequence[Gate],
    baselines: Sequence[SampleValues],
    run: SampleValues,
    findings: Sequence[FindingChange] | None,
    cores: HostSlowdown | None = None,
) -> tuple[GateResult, ...]:
    """Return the result of every gate; `findings` None without a baseline, `cores` where they were not as fast."""

    @cache
    def judged(metric: str, statistic: str, *, alone: bool) -> MetricComparison:
        return judge(() if alone else baselines, run, METRICS[metric], statistic)

    found = (_result(gate, judged, run, findings, has_baseline=bool(baselines)) for gate in gates)
    return tuple(_beside_cores(result, judged, cores) if cores else result for result in found)


def unmeasured(gates: Sequence[Gate], why: str) -> tuple[GateResult, ...]:
    """Return every gate as not measured."""
    return tuple(unknown_result(gate, why) for gate in gates)


def without_changes(gates: Sequence[Gate], run: Analysis, obstacles: Sequence[Obstacle]) -> tuple[GateResult, ...]:
    """Return the gates as not measured; where there was only too little data, what needs no more of it is counted."""
    why = "; ".join(obstacle.text for obstacle in obstacles)
    if any(obstacle.kind != "too little data" for obstacle in obstacles):
        return unmeasured(gates, why)
    short = in_short(obstacles)
    return tuple(
        count_result(gate, run, None)
        if gate.metric in COUNTS and not gate.needs_baseline
        else replace(unmeasured([gate], why)[0], why=short)
        for gate in gates
    )


def in_short(obstacles: Sequence[Obstacle]) -> str:
    """Return obstacles in a few words, as within a sentence: the verdict has them at length."""
    return "; ".join(lower_first(obstacle.name) for obstacle in obstacles)


def of_part(found: Sequence[GateResult], why: str, *, alone: bool) -> tuple[GateResult, ...]:
    """Return results of which only a part is known: what failed has failed, what passed might not have.

    Not `alone`, it is a part of the baseline: what needs none stays as it is.
    """
    return tuple(
        replace(result, outcome="not measured", summary=f"{result.summary}, but {why}", why=why)
        if result.outcome == "passed" and (alone or result.gate.needs_baseline)
        else result
        for result in found
    )


def outcome_of(gates: Sequence[GateResult], obstacles: Sequence[Obstacle]) -> Outcome:
    """Return what the gates of level `fail` come to: one that failed decides; nothing measured is no pass.

    Where there are only gates that warn, it is enough that one of them was measured. A gate that could not decide
    on what it measured keeps the rest from passing, also one that may go unmeasured.
    """
    failing = [result for result in gates if result.gate.level == "fail"]
    if any(result.outcome == "failed" for result in failing):
        return "failed"
    unmeasured_ones = [result for result in failing if result.outcome == "not measured"]
    must = any(not result.gate.optional or result.undecided for result in unmeasured_ones)
    nothing = all(result.outcome == "not measured" for result in failing or gates)
    return "not measured" if obstacles or must or nothing else "passed"


def _result(
    gate: Gate, judged: Judge, run: SampleValues, findings: Sequence[FindingChange] | None, *, has_baseline: bool
) -> GateResult:
    if gate.metric in COUNTS:
        return count_result(gate, run.training.analysis, findings)
    if not gate.limits_change:
        return bound_result(gate, judged(gate.metric, gate.statistic, alone=True), _without_epochs(gate, run.training))
    if not has_baseline:
        return unknown_result(gate, "there is no baseline to compare with")
    time = judged(EPOCH_TIME, METRICS[EPOCH_TIME].statistic, alone=False)
    return change_result(gate, judged(gate.metric, gate.statistic, alone=False), time)


def unknown_result(gate: Gate, why: str, about: str = "") -> GateResult:
    """Return a gate of which there is no figure at all."""
    return GateResult(gate, "not measured", f"{about}: {why}" if about else why, why=why)


def undecided(result: GateResult, why: str, said: str) -> GateResult:
    """Return a gate whose figure says nothing about the training: why in few words, and as it is reported at length."""
    summary = f"{result.summary}{'; ' if result.undecided else ', but '}{said}"
    return replace(result, outcome="not measured", summary=summary, why=why)


def _beside_cores(result: GateResult, judged: Judge, cores: HostSlowdown) -> GateResult:
    """Return a failure that the cores explain as not measured: what the training did is not known then.

    Likewise a pass that it owes to faster cores is marked as unsure. Of the tails of the epochs (p95, max) nobody knows
    whether they come of the cores.
    """
    gate = result.gate
    measured = result.outcome != "not measured" or result.undecided
    if not measured or not gate.limits_change or gate.statistic not in MIDDLE:
        return result
    compared = judged(gate.metric, gate.statistic, alone=False)
    share, baseline = compared.change_share, compared.baseline
    if share is None or not baseline:
        return result
    limit = gate.limit if gate.kind == "share" else gate.limit / baseline
    if result.outcome != "passed" and cores.explain(gate.metric, limit, share):
        why = "the machine was slower"
        return undecided(result, why, f"{why}: the same work took {100 * cores.most:.0f} % more CPU time")
    if result.outcome == "passed" and cores.hide(gate.metric, limit, share):
        why = f"but the machine was faster, which may hide a change: {-100 * cores.most:.0f} % less CPU time"
        return replace(result, unsure=True, summary=f"{result.summary}, {why}")
    return result


def count_result(gate: Gate, run: Analysis, findings: Sequence[FindingChange] | None) -> GateResult:
    """Return the result of a gate on what is counted of a run as a whole."""
    found = count(gate.metric, gate.statistic, run, findings)
    if found.value is None:
        return unknown_result(gate, found.what)
    unit = "%" if gate.metric == "coverage" else ""
    which = f" ({found.which})" if found.which else ""
    text = f"{found.what}: {amount(found.value, unit)}{which}, limit: {_limit(gate, unit)}"
    outcome: Outcome = "failed" if _breaks(found.value, gate) else "passed"
    return GateResult(gate, outcome, text, found.value, of_ending=found.of_ending)


def bound_result(gate: Gate, compared: MetricComparison, missing: str) -> GateResult:
    """Return the result of a gate on a run's own value; `missing` says why there is none, after a colon."""
    name = name_of(compared)
    if compared.run is None:
        return unknown_result(gate, f"{name} is not known{missing}")
    text = f"{name} {amount(compared.run, compared.unit)}, limit: {_limit(gate, compared.unit)}"
    return GateResult(gate, "failed" if _breaks(compared.run, gate) else "passed", text, compared.run)


def _without_epochs(gate: Gate, training: RunSample) -> str:
    """Return that a figure is missing for want of epochs, and what would give them; empty where there are epochs."""
    if training.epochs:
        return ""
    if gate.metric == UTILISATION and gate.statistic in OF_A_WHOLE:
        return ": too little was recorded"
    if training.first or training.closing:
        return ": it needs more than one epoch"
    if not training.analysis.run.recording.is_ours:  # an imported log
        return ": it needs epochs, so import the log with --yolo RUN_DIR"
    return ": it needs epochs, and there was no training"


def change_result(gate: Gate, compared: MetricComparison, time: MetricComparison) -> GateResult:
    """Return whether a metric changed by more than is allowed, for certain."""
    name = name_of(compared)
    value = compared.change_share if gate.kind == "share" else compared.change
    if value is None or compared.significant is None:
        missing = "the run" if compared.run is None else "the baseline"
        known = compared.baseline is not None and compared.run is not None
        why = compared.note or ("the baseline is zero" if known else f"{missing} does not have it")
        return unknown_result(gate, why, name)
    text = f"{name} {_by(gate, value, compared)}, limit: {_limit(gate, compared.unit)}"
    passed, failed = (GateResult(gate, outcome, text, value) for outcome in ("passed", "failed"))
    if not _breaks(value, gate):
        return passed
    if gate.kind == "share" and (tiny := _too_little(compared, time)):
        return replace(passed, summary=f"{text}, but {tiny}")
    if not compared.significant and not compared.in_band:
        return _unsure(compared, passed)
    if gate.metric == UTILISATION and value < 0 and time.judgement == "better":
        better = f"epochs are {speed_change(time.change_share or 0.0)}: an improvement"
        return replace(passed, summary=f"{text}, but {better}")
    return undecided(failed, "the baselines differ by as much", _band_words(compared)) if compared.in_band else failed


def _unsure(compared: MetricComparison, passed: GateResult) -> GateResult:
    """Return a change beyond its limit that may be chance: undecided where more epochs would show it, else passed."""
    if compared.enough is not None:
        few = "too few calls" if compared.basis == "calls" else "too few epochs"
        return undecided(replace(passed, outcome="failed"), few, not_enough(compared))
    doubt = "the epochs differ too much to be sure"
    return replace(passed, summary=f"{passed.summary}; {doubt}", unsure=True)


def _too_little(compared: MetricComparison, time: MetricComparison) -> str:
    """Return in words that a time changed by next to nothing, which of next to nothing may be a large share.

    Of a validation that is what counts as no change in the table, too.
    """
    least_s = METRICS[compared.metric].least if compared.unit == "s" else 0.0
    if compared.change is not None and abs(compared.change) < least_s:
        return f"less than {amount(least_s, 's')} is too short to matter"
    whole = {DATA_WAIT: time.baseline, WAIT_SHARE: 100.0}.get(compared.metric)
    least = None if whole is None else th.GATED_WAIT_PP / 100 * whole
    if compared.change is None or least is None or abs(compared.change) >= least:
        return ""
    unit = "pp" if compared.unit == "%" else compared.unit
    floor = f"{least:.1f} pp" if unit == "pp" else amount(least, unit)
    return f"less than {floor} ({th.GATED_WAIT_PP:g} % of an epoch) is too short to matter"


def _band_words(compared: MetricComparison) -> str:
    """Return what several baselines differ by, and where one more like them may lie."""
    differ = f"{counted(len(compared.each), 'baseline')} took {between(_ends(compared.each), compared.unit)}"
    if compared.band is None:
        return differ
    return f"{differ}, and one more may take {between(compared.band, compared.unit)}"


def _ends(values: Sequence[float]) -> tuple[float, float]:
    return min(values), max(values)


def _by(gate: Gate, value: float, compared: MetricComparison) -> str:
    """Return both values, and the change in the gate's own terms; of the epoch time how much faster or slower."""
    by = share_change(value) if gate.kind == "share" else change(value, compared.unit)
    if compared.metric == EPOCH_TIME and gate.kind == "share" and abs(value) >= RATIO_FROM - 1:
        by = speed_change(value)
    return f"{amount(compared.baseline, compared.unit)} \u2192 {amount(compared.run, compared.unit)} ({by})"


def _breaks(value: float, gate: Gate) -> bool:
    if gate.kind == "most":
        return value > gate.limit
    if gate.kind == "least":
        return value < gate.limit
    return value < gate.limit if math.copysign(1, gate.limit) < 0 else value > gate.limit


def _limit(gate: Gate, unit: str) -> str:
    if gate.kind == "share":
        return share_change(gate.limit) if gate.limit else "no change"
    if gate.kind == "amount":
        return change(gate.limit, unit) if gate.limit else "no change"
    return f"at {gate.kind} {amount(gate.limit, unit)}"

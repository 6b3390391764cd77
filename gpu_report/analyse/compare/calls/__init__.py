"""A run that calls models compared with one or several baselines that do: latency, throughput, energy, parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from gpu_report.analyse.compare import thresholds as th
from gpu_report.analyse.compare.calls.cause import call_cause
from gpu_report.analyse.compare.calls.gates import results_of_calls
from gpu_report.analyse.compare.calls.judging import judge_models
from gpu_report.analyse.compare.calls.matching import MatchedModel, matched, unmatched
from gpu_report.analyse.compare.calls.samples import CallSample, call_samples
from gpu_report.analyse.compare.calls.setup import differences_of, fingerprint_of_calls, set_up_obstacles
from gpu_report.analyse.compare.calls.verdict import judgement_of_calls, leading, verdict_of_calls
from gpu_report.analyse.compare.comparability import unused_baselines
from gpu_report.analyse.compare.finding_changes import compare_findings
from gpu_report.analyse.compare.fingerprint import Fingerprint, slug
from gpu_report.analyse.compare.gate_results import outcome_of, without_changes
from gpu_report.analyse.compare.significance import unjudged
from gpu_report.analyse.compare.verdict import fails_without_metric
from gpu_report.model import (
    Analysis,
    CallCause,
    Comparison,
    Difference,
    FindingChange,
    Gate,
    GateResult,
    MetricComparison,
    Obstacle,
    calls_needed,
)
from gpu_report.wording import counted

DOES: Final = {"inference": "only calls models", "validation": "only validates models", "training": "trains"}


def compare_calls(baselines: Sequence[Analysis], run: Analysis, gates: Sequence[Gate] = ()) -> Comparison:
    """Return what became of a run that calls models since its baselines, newest first; without these its own figures.

    Baselines that trained, or are of another set-up, are left out; where that leaves none, an obstacle says so.
    """
    samples, before = call_samples(run), [(each, call_samples(each)) for each in baselines if each.is_inference]
    usable = [each for each in before if not _obstacles([each[1]], samples)] or before[:1]
    kept, of_kept = tuple(each for each, _ in usable), [each for _, each in usable]
    models = matched(of_kept, samples)
    obstacles = [of_another_kind(baselines[0], run)] if baselines and not before else _obstacles(of_kept, samples)
    comparable = models if obstacles or not kept else [each for each in models if not set_up_obstacles(each)]
    metrics = judge_models(comparable)
    metrics = tuple(map(unjudged, metrics)) if obstacles else metrics
    findings = compare_findings(kept or baselines[:1], run) if baselines else ()
    gated = _gated(gates, comparable, run, obstacles, findings if kept else None)
    unlike = differences_of(models) if kept else tuple(mixed(each, run) for each in baselines[:1])
    cause = None if obstacles or not kept else _cause(comparable, metrics)
    verdict = verdict_of_calls(obstacles, metrics, unlike, cause, baselines=len(kept))
    return Comparison(
        baselines=kept or tuple(baselines[:1]),
        run=run,
        obstacles=tuple(obstacles),
        differences=unlike,
        metrics=metrics,
        first_epochs=None,
        all_epochs=None,
        findings=findings,
        drop_time=("", ""),
        gates=gated,
        outcome=outcome_of(gated, obstacles),
        judgement=None if obstacles or not kept else judgement_of_calls(metrics),
        verdict=f"{fails_without_metric(gated)} {verdict}".strip(),
        setup=slug(fingerprint_of_calls(samples)),
        notes=(*_notes(of_kept, samples, models), *(unused_baselines(len(baselines), len(kept)) if kept else ())),
        cause=cause,
    )


def mixed(baseline: Analysis, run: Analysis) -> Difference:
    """Return that one run calls models and the other one trains, say, as a difference of their set-ups."""
    return Difference("kind of run", _kind(baseline), _kind(run), "hard")


def of_another_kind(baseline: Analysis, run: Analysis) -> Obstacle:
    """Return the same as what keeps them from being compared."""
    return Obstacle("set-up", f"The run {DOES[_kind(run)]}, and the baseline {DOES[_kind(baseline)]}")


def _kind(analysis: Analysis) -> str:
    return "inference" if analysis.is_inference else "validation" if analysis.is_validation else "training"


def calls_fingerprint(run: Analysis) -> Fingerprint:
    """Return what a run that calls models was set up with."""
    return fingerprint_of_calls(call_samples(run))


def too_few_calls(run: Analysis) -> str:
    """Return in words that a run has too few calls to be compared; empty where it has enough."""
    few = _few(call_samples(run))
    return f"It has too few calls: {few}" if few else ""


def _obstacles(baselines: Sequence[Sequence[CallSample]], run: Sequence[CallSample]) -> list[Obstacle]:
    """Return what keeps all of a run's models from being compared."""
    models = matched(baselines, run)
    if not models:
        known = ", ".join(sample.name for sample in run)
        return [Obstacle("set-up", "model", f"no baseline has {known}")]
    unlike = [set_up_obstacles(model) for model in models] if baselines else []
    if unlike and all(unlike):
        return unlike[0]
    few = [("baseline", _few(side)) for side in baselines] + [("run", _few(run))] if baselines else []
    return [Obstacle("too little data", f"Too few calls in the {whose}", words) for whose, words in few if words][:1]


def _few(samples: Sequence[CallSample]) -> str:
    """Return how many calls there are where the model with the most images has too few of them."""
    least, of_p95 = (th.CALLS_TO_COMPARE * calls_needed(share) for share in (0.5, 0.95))
    calls = len(samples[0].images)
    needed = f"at least {least} are needed, and {of_p95} for p95"
    return f"{counted(calls, 'call')} after warm-up; {needed}" if calls < least else ""


def _gated(
    gates: Sequence[Gate],
    models: Sequence[MatchedModel],
    run: Analysis,
    obstacles: Sequence[Obstacle],
    findings: Sequence[FindingChange] | None,
) -> tuple[GateResult, ...]:
    if obstacles:
        return without_changes(gates, run, obstacles)
    return results_of_calls(gates, models, run, findings)


def _cause(models: Sequence[MatchedModel], metrics: Sequence[MetricComparison]) -> CallCause | None:
    """Return why calls take longer or less, of the metric that the verdict leads with; None where nothing changed."""
    lead = leading(metrics)
    return None if lead is None else call_cause(next(each for each in models if each.model == lead.model), lead)


def _notes(
    baselines: Sequence[Sequence[CallSample]], run: Sequence[CallSample], models: Sequence[MatchedModel]
) -> tuple[str, ...]:
    """Return which models are not compared, and that warm-up is not."""
    alone = unmatched(baselines[0], run) if baselines else ()
    unlike = [
        f"{each.model} is not compared: {'; '.join(obstacle.text for obstacle in found)}."
        for each in models
        if each.model and each.baselines and (found := set_up_obstacles(each))
    ]
    warmed = any(served.warm_up_calls for side in (*baselines, run) for sample in side for served in sample.served)
    return (*alone, *unlike, *(("Calls that warm a model up are left out.",) if warmed else ()))

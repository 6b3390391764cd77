"""A run held against one or several baselines: whether they can be compared, each metric, the findings, the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.compare.finding_changes import compare_findings, stutter
from gpu_report.analyse.compare.fingerprint import Fingerprint, differences, fingerprint, slug
from gpu_report.analyse.compare.gate_results import of_part, results, unmeasured
from gpu_report.analyse.compare.gate_syntax import COUNTS
from gpu_report.analyse.compare.matched_epochs import alike, cut_short
from gpu_report.analyse.compare.notes import not_used, of_crash, of_recordings, of_values
from gpu_report.analyse.compare.samples import RunSample, run_sample
from gpu_report.analyse.compare.significance import SampleValues, first_epochs, judge_all, values_of
from gpu_report.analyse.compare.slower_host import HostSlowdown, host_slowdown
from gpu_report.analyse.compare.too_few import has_windows, is_too_little, too_little
from gpu_report.analyse.compare.verdict import failed_by_itself, judgement_of, verdict_of
from gpu_report.model import Analysis, Comparison, Difference, FindingChange, Gate, GateResult, MetricComparison
from gpu_report.wording import lower_first


@dataclass(frozen=True, eq=False)
class _Baseline:
    """A baseline with what speaks against comparing it, and its differences from the run."""

    training: RunSample
    differences: tuple[Difference, ...]
    obstacles: tuple[str, ...]


def compare(baselines: Sequence[Analysis], run: Analysis, gates: Sequence[Gate] = ()) -> Comparison:
    """Return what became of a run since its baselines, newest baseline first; without baselines its own figures.

    Of several baselines those that cannot be compared are left out; where that leaves none, the obstacles are the first
    one's. Differences are those from the first that is compared.
    """
    training = run_sample(run)
    before = [_baseline(baseline, training) for baseline in baselines]
    usable = _usable(before)
    sides, notes = _sides([each.training for each in usable], training)
    obstacles = [*(usable[0].obstacles if usable else ()), *_of_run(training), *_too_little(sides, usable)]
    metrics = judge_all(sides[:-1], sides[-1])
    notes = (*of_values(metrics, gates), *of_recordings([each.training for each in usable], training), *notes)
    notes = (*notes, *not_used(len(before), len(usable)), *of_crash(training, obstacles if before else ()))
    unlike = usable[0].differences if usable else ()
    cores = host_slowdown(metrics, [difference for each in usable for difference in each.differences])
    kept = tuple(each.training.analysis for each in usable)
    findings = compare_findings(kept, run) if kept else ()
    gated = _gated(gates, sides, findings, obstacles, cores)
    verdict = verdict_of(obstacles, metrics, unlike, cores, baselines=len(kept))
    return Comparison(
        baselines=kept,
        run=run,
        obstacles=tuple(obstacles),
        differences=unlike,
        metrics=tuple(_unjudged(each) for each in metrics) if obstacles else metrics,
        first_epochs=_first(sides, obstacles),
        findings=findings,
        stutter=(stutter(kept[0]) if kept else "", stutter(run)),
        gates=gated,
        judgement=None if obstacles or not kept else judgement_of(metrics),
        verdict=f"{failed_by_itself(gated)} {verdict}".strip(),
        setup=slug(fingerprint(training)),
        notes=notes,
        left_out=(_special(usable[0].training) if usable else frozenset(), _special(training)),
    )


def without_baseline(run: Analysis, gates: Sequence[Gate], why: str) -> Comparison:
    """Return a run whose baseline is missing: its gates are not measured.

    `why` is a clause that begins with a word of ours, which may get a capital: a path may not.
    """
    alone = compare((), run)
    said = f"{why[:1].upper()}{why[1:]}"
    return replace(alone, obstacles=(said,), gates=unmeasured(gates, said), verdict=f"{said}.")


def fingerprint_of(analysis: Analysis) -> Fingerprint:
    """Return what a run was set up with."""
    return fingerprint(run_sample(analysis))


def unfinished(analysis: Analysis) -> str:
    """Return in words that a run cannot be a baseline, for it was cut short or trained nothing; empty where it can."""
    return cut_short(analysis) or ("" if run_sample(analysis).epochs else "It holds no epoch after the first")


def _usable(before: Sequence[_Baseline]) -> list[_Baseline]:
    """Return the baselines that can be compared and, where some have enough epochs, have enough; else the first."""
    found = [each for each in before if not each.obstacles]
    long = [each for each in found if len(each.training.epochs) >= th.COMPARED_AT_LEAST]
    return long or found or list(before[:1])


def _gated(
    gates: Sequence[Gate],
    sides: Sequence[SampleValues],
    findings: Sequence[FindingChange],
    obstacles: Sequence[str],
    cores: HostSlowdown | None,
) -> tuple[GateResult, ...]:
    """Return what came of the gates: nothing where nothing can be compared; of a run alone what its part allows."""
    *baselines, run = sides
    if baselines and obstacles:
        return _without_epochs(gates, run, obstacles)
    found = results(gates, baselines, run, findings if baselines else None, cores)
    why = "; ".join(lower_first(obstacle).partition(":")[0] for obstacle in obstacles)  # at length in the verdict
    return of_part(found, why) if obstacles else found


def _without_epochs(gates: Sequence[Gate], run: SampleValues, obstacles: Sequence[str]) -> tuple[GateResult, ...]:
    """Return the gates as not measured; where training was only too short, what needs no epoch of it is counted."""
    why = "; ".join(obstacles)
    if not all(is_too_little(obstacle) for obstacle in obstacles):
        return unmeasured(gates, why)
    short = "; ".join(lower_first(obstacle).partition(":")[0] for obstacle in obstacles)
    return tuple(
        results([gate], (), run, None)[0]
        if gate.metric in COUNTS and not gate.needs_baseline
        else replace(unmeasured([gate], why)[0], why=short)
        for gate in gates
    )


def _first(sides: Sequence[SampleValues], obstacles: Sequence[str]) -> MetricComparison | None:
    found = first_epochs(sides[:-1], sides[-1])
    return _unjudged(found) if found and obstacles else found


def _special(training: RunSample) -> frozenset[int]:
    return frozenset(epoch.epoch for epoch in (*training.first, *training.closing))


def _baseline(analysis: Analysis, run: RunSample) -> _Baseline:
    training = run_sample(analysis)
    unlike = differences(fingerprint(training), fingerprint(run))
    obstacles = [f"{d.name}: {d.baseline} in the baseline, {d.run} in the run" for d in unlike if d.kind == "hard"]
    if short := cut_short(analysis):
        obstacles.append(f"The baseline was cut short: {lower_first(short)}")
    return _Baseline(training, unlike, tuple(obstacles))


def _of_run(run: RunSample) -> list[str]:
    short = cut_short(run.analysis)
    return [f"The run was cut short: {lower_first(short)}"] if short else []


def _sides(baselines: Sequence[RunSample], run: RunSample) -> tuple[list[SampleValues], tuple[str, ...]]:
    chosen, notes = alike([*baselines, run])
    return [values_of(training) for training in chosen], notes


def _too_little(sides: Sequence[SampleValues], baselines: Sequence[_Baseline]) -> list[str]:
    """Return that training was too short for any interval of the epoch time, which everything else leans on."""
    if not baselines:
        return []
    return [too_little(sides)] if any(side.is_short for side in sides) and not has_windows(sides) else []


def _unjudged(metric: MetricComparison) -> MetricComparison:
    """Return a metric's values alone: of runs that cannot be compared no change is told."""
    alone = MetricComparison(metric.metric, metric.statistic, metric.unit, metric.baseline, metric.run)
    return replace(alone, basis=metric.basis, counts=metric.counts)

"""A run compared with one or several baselines: whether they are comparable, each metric, the findings, the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from gpu_report.analyse.compare import thresholds as th
from gpu_report.analyse.compare.calls import calls_fingerprint, compare_calls, mixed, of_another_kind, too_few_calls
from gpu_report.analyse.compare.comparability import (
    barring,
    cut_short,
    cut_short_obstacle,
    has_windows,
    matched_epochs,
    recording_notes,
    too_little,
    unused_baselines,
    value_notes,
)
from gpu_report.analyse.compare.epoch_cause import epoch_cause
from gpu_report.analyse.compare.finding_changes import compare_findings, drop_time
from gpu_report.analyse.compare.fingerprint import Fingerprint, differences, fingerprint, slug
from gpu_report.analyse.compare.gate_results import in_short, of_part, outcome_of, results, unmeasured, without_changes
from gpu_report.analyse.compare.line_changes import LineComparison, compare_lines
from gpu_report.analyse.compare.metrics import EPOCH_TIME
from gpu_report.analyse.compare.samples import RunSample, run_sample
from gpu_report.analyse.compare.set_aside import likely_disturbances, whole_words, with_enough_left
from gpu_report.analyse.compare.significance import (
    SampleValues,
    all_epochs,
    are_apart,
    first_epochs,
    judge_all,
    unjudged,
    values_of,
)
from gpu_report.analyse.compare.slower_host import HostSlowdown, host_slowdown
from gpu_report.analyse.compare.verdict import Reasons, judgement_of, verdict_of
from gpu_report.model import (
    Analysis,
    Comparison,
    Difference,
    EpochCause,
    FindingChange,
    Gate,
    GateResult,
    MetricComparison,
    Obstacle,
)
from gpu_report.wording import upper_first

VALIDATES = Obstacle("set-up", "The run only validates models", "trainings are compared, and calls of models")


@dataclass(frozen=True, eq=False)
class _Baseline:
    """A baseline with what speaks against comparing it, and its differences from the run."""

    training: RunSample
    differences: tuple[Difference, ...]
    obstacles: tuple[Obstacle, ...]


@dataclass(frozen=True, eq=False)
class _Shown:
    """What a run shows beside the baselines that it can be compared with, each cut down to the same epochs.

    `sides` are those of the baselines, and last that of the run; `cut_notes` say what was left out of them.
    """

    training: RunSample
    usable: Sequence[_Baseline]
    sides: Sequence[SampleValues]
    obstacles: Sequence[Obstacle]
    cut_notes: tuple[str, ...]

    @property
    def kept(self) -> tuple[Analysis, ...]:
        return tuple(each.training.analysis for each in self.usable)

    @property
    def barred(self) -> Sequence[Obstacle]:
        return barring(self.obstacles)

    @property
    def unlike(self) -> tuple[Difference, ...]:
        return self.usable[0].differences if self.usable else ()

    @cached_property
    def metrics(self) -> tuple[MetricComparison, ...]:
        return judge_all(self.sides[:-1], self.sides[-1])

    @cached_property
    def cores(self) -> HostSlowdown | None:
        return host_slowdown(self.metrics, [difference for each in self.usable for difference in each.differences])

    @cached_property
    def whole(self) -> MetricComparison | None:
        """Return all epochs of the run beside all of the baselines'."""
        return all_epochs(self.sides[:-1], self.sides[-1])

    @property
    def time(self) -> MetricComparison | None:
        return next((metric for metric in self.metrics if metric.metric == EPOCH_TIME), None)

    @cached_property
    def findings(self) -> tuple[FindingChange, ...]:
        return compare_findings(self.kept, self.training.analysis) if self.usable else ()

    @cached_property
    def lines(self) -> LineComparison:
        if self.barred or not self.usable:
            return LineComparison(None)
        slower = self.time is not None and self.time.judgement == "worse"
        return compare_lines(self.sides[:-1], self.sides[-1], self.cores, is_slower=slower)

    @cached_property
    def cause(self) -> EpochCause | None:
        """Return why epochs take longer or less; on a slower host every part takes longer."""
        if self.cores or self.barred:
            return None
        return epoch_cause(self.metrics, self.lines.lines, gpus=len(self.training.gpus))

    @property
    def reasons(self) -> Reasons:
        disturbed = likely_disturbances(self.sides, self.whole, self.time)
        return Reasons(self.unlike, self.cores, whole_words(self.whole), disturbed, self.cause)


def compare(baselines: Sequence[Analysis], run: Analysis, gates: Sequence[Gate] = ()) -> Comparison:
    """Return what became of a run since its baselines, newest baseline first; without baselines its own figures.

    Of several baselines those that cannot be compared are left out; where that leaves none, the obstacles are the first
    one's. Differences are those from the first that is compared. Calls of models are compared with those of models.
    """
    if run.is_inference:
        return compare_calls(baselines, run, gates)
    training = run_sample(run)
    before = [_baseline(baseline, training) for baseline in baselines]
    shown = _shown(before, training)
    metrics, kept, barred = shown.metrics, shown.kept, shown.barred
    gated = _gated(gates, shown.sides, shown.findings, shown.obstacles, shown.cores)
    return Comparison(
        baselines=kept,
        run=run,
        obstacles=tuple(shown.obstacles),
        differences=shown.unlike,
        metrics=tuple(unjudged(each) for each in metrics) if barred else metrics,
        first_epochs=_first(shown.sides, barred),
        all_epochs=None if barred else shown.whole,
        findings=shown.findings,
        drop_time=(drop_time(kept[0]) if kept else "", drop_time(run)),
        gates=gated,
        outcome=outcome_of(gated, shown.obstacles),
        judgement=None if shown.obstacles or not kept else judgement_of(metrics),
        verdict=verdict_of(shown.obstacles, metrics, shown.reasons, baselines=len(kept), gates=gated),
        setup=slug(fingerprint(training)),
        notes=_notes(shown, gates, baselines=len(before)),
        left_out=(_special(shown.usable[0].training) if shown.usable else frozenset(), _special(training)),
        code_lines=shown.lines.lines,
        cause=shown.cause,
    )


def _shown(before: Sequence[_Baseline], training: RunSample) -> _Shown:
    """Return a run beside those of its baselines that it can be compared with."""
    usable = _usable(before)
    sides, notes = _sides([each.training for each in usable], training)
    return _Shown(training, usable, sides, _obstacles(usable, sides, training.analysis), notes)


def _notes(shown: _Shown, gates: Sequence[Gate], *, baselines: int) -> tuple[str, ...]:
    """Return what a reader must know of a comparison: what was left out of it, and what could not be compared."""
    return (
        *value_notes(shown.metrics, gates),
        *recording_notes([each.training for each in shown.usable], shown.training),
        *shown.cut_notes,
        *unused_baselines(baselines, len(shown.usable)),
        *shown.lines.why_not,
    )


def without_baseline(run: Analysis, gates: Sequence[Gate], why: str) -> Comparison:
    """Return a run whose baseline is missing: its gates are not measured.

    `why` is a clause that begins with a word of ours, which may get a capital: a path may not.
    """
    alone = compare((), run)
    missing, gated = Obstacle("no baseline", upper_first(why)), unmeasured(gates, upper_first(why))
    outcome = outcome_of(gated, (missing,))
    return replace(alone, obstacles=(missing,), gates=gated, outcome=outcome, verdict=f"{missing.text}.")


def fingerprint_of(analysis: Analysis) -> Fingerprint:
    """Return what a run was set up with."""
    if analysis.is_inference:
        return calls_fingerprint(analysis)
    return fingerprint(run_sample(analysis))


def unfinished(analysis: Analysis) -> str:
    """Return in words that a run cannot be a baseline, for it was cut short or did nothing; empty where it can."""
    if analysis.is_inference:
        return too_few_calls(analysis)
    if analysis.is_validation:
        return "It only validates models, and holds no training"
    return cut_short(analysis) or ("" if run_sample(analysis).epochs else "It holds no epoch after the first")


def _usable(before: Sequence[_Baseline]) -> list[_Baseline]:
    """Return the baselines that can be compared and, where some have enough epochs, have enough; else the first."""
    found = [each for each in before if not each.obstacles]
    long = [each for each in found if len(each.training.epochs) >= th.COMPARED_AT_LEAST]
    return long or found or list(before[:1])


def _obstacles(usable: Sequence[_Baseline], sides: Sequence[SampleValues], run: Analysis) -> list[Obstacle]:
    """Return what speaks against comparing a run with the first of its baselines, or against judging it alone."""
    if run.is_validation:
        return [VALIDATES]
    return [
        *(usable[0].obstacles if usable else ()),
        *cut_short_obstacle(run, "The run"),
        *([] if _is_mixed(usable) else _too_little(sides, usable)),
    ]


def _is_mixed(usable: Sequence[_Baseline]) -> bool:
    """Tell whether there is no baseline that trains."""
    return bool(usable) and not usable[0].training.analysis.is_training


def _gated(
    gates: Sequence[Gate],
    sides: Sequence[SampleValues],
    findings: Sequence[FindingChange],
    obstacles: Sequence[Obstacle],
    cores: HostSlowdown | None,
) -> tuple[GateResult, ...]:
    """Return what came of the gates: nothing where nothing can be compared; of a run cut short what its part allows."""
    *baselines, run = sides
    barred = barring(obstacles)
    if baselines and barred:
        found = without_changes(gates, run.training.analysis, barred)
    else:
        found = results(gates, baselines, run, findings if baselines else None, cores)
    of_parts = [each for each in obstacles if each not in barred]
    is_whole = not cut_short(run.training.analysis)
    return of_part(found, in_short(of_parts), alone=not is_whole) if of_parts else found


def _first(sides: Sequence[SampleValues], obstacles: Sequence[Obstacle]) -> MetricComparison | None:
    found = first_epochs(sides[:-1], sides[-1])
    return unjudged(found) if found and obstacles else found


def _special(training: RunSample) -> frozenset[int]:
    return frozenset(epoch.epoch for epoch in (*training.first, *training.closing))


def _baseline(analysis: Analysis, run: RunSample) -> _Baseline:
    training = run_sample(analysis)
    if not analysis.is_training:
        return _Baseline(training, (mixed(analysis, run.analysis),), (of_another_kind(analysis, run.analysis),))
    unlike = differences(fingerprint(training), fingerprint(run))
    hard = [difference for difference in unlike if difference.kind == "hard"]
    obstacles = [Obstacle("set-up", d.name, f"{d.baseline} in the baseline, {d.run} in the run") for d in hard]
    return _Baseline(training, unlike, (*obstacles, *cut_short_obstacle(analysis, "The baseline")))


def _sides(baselines: Sequence[RunSample], run: RunSample) -> tuple[list[SampleValues], tuple[str, ...]]:
    chosen, notes = matched_epochs([*baselines, run])
    sides, more = with_enough_left([values_of(training) for training in chosen])
    return sides, (*notes, *more)


def _too_little(sides: Sequence[SampleValues], baselines: Sequence[_Baseline]) -> list[Obstacle]:
    """Return that training was too short for any interval of the epoch time, which everything else leans on."""
    if not baselines:
        return []
    is_short = any(side.is_short for side in sides) and not has_windows(sides)
    return [too_little(sides)] if is_short and not are_apart(sides) else []

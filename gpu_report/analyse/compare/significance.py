"""Each metric of two runs: what it was, what it is, and whether the change is more than chance and worth a word."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean, median, stdev
from typing import Literal

import numpy as np

from gpu_report.analyse.compare import thresholds as th
from gpu_report.analyse.compare.disturbances import (
    checkpoint_span,
    cover_of,
    is_steady,
    rare_disturbances,
    train_span,
    validation_span,
)
from gpu_report.analyse.compare.metrics import (
    CHECKPOINT,
    DATA_WAIT,
    EPOCH_TIME,
    IMAGES,
    MEMORY,
    METRICS,
    TYPICAL,
    UTILISATION,
    VALIDATION,
    WORK,
    Metric,
    statistic_of,
)
from gpu_report.analyse.compare.samples import (
    RunSample,
    Values,
    first_epoch_s,
    memory_peak_mib,
    of_epochs,
    of_windows,
    whole_utilisation_pct,
    windows,
    with_epochs,
)
from gpu_report.analyse.timeseries.bootstrap import change_interval
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats
from gpu_report.analyse.timeseries.robust_outliers import tolerance
from gpu_report.analyse.timeseries.student import student_quantile
from gpu_report.analyse.timeseries.thresholds import OUTLIER_SHARE, OUTLIER_SIBLINGS
from gpu_report.model import FROM_CALLBACKS, EpochSummary, Finding, Judgement, MetricComparison

Basis = Literal["epochs", "windows", "run", "calls"]
OF_A_WHOLE = frozenset({TYPICAL, "mean"})  # statistics that a run without epochs has, too
APART = f"too few for an interval, but all of one run took {th.APART_TIMES:g} times as long as any of the other"
NOISE = "within the noise"
IN_BAND = "changed, but the baselines differ by as much"
SEEN_OTHERWISE = "not judged: one of the runs has no callbacks, so its phases are estimated"
HIDDEN_VALIDATION = "not judged: the training of one run holds its validations, which its readings do not show"
# What a phase holds, which is another amount where its edges lie otherwise: the training part reaches into pauses then.
SPANS = {VALIDATION: validation_span, CHECKPOINT: checkpoint_span}  # of metrics that are not of the training part
OF_TRAINING = frozenset({EPOCH_TIME, IMAGES, UTILISATION, "energy", *WORK})
OF_A_PHASE = frozenset({VALIDATION, CHECKPOINT, UTILISATION, "energy", *WORK})


@dataclass(frozen=True, eq=False)
class SampleValues:
    """One run's values: a table by epochs, and one by windows for the time that epochs are too few."""

    training: RunSample
    epochs: Values
    disturbances: tuple[Finding, ...] = ()

    @cached_property
    def windows(self) -> Values:
        """Return the values of windows of training: of a long run there are many, and nobody needs them."""
        return of_windows(self._without_far_epochs())

    @cached_property
    def steady_windows(self) -> Values:
        """Return the values of windows of training in which little was disturbed."""
        cover = cover_of(self.disturbances)
        return of_windows(self._without_far_epochs(), lambda span: is_steady(cover, span))

    def typical_epochs(self) -> list[EpochSummary]:
        """Return the whole epochs in the steady state; those that stand out by their time only where others are few."""
        cover = cover_of(self.disturbances)
        steady = [e for e in self.training.epochs if is_steady(cover, (e.start_t_s, e.end_t_s))]
        near = {epoch.start_t_s for epoch in self._without_far_epochs().epochs}
        typical = [epoch for epoch in steady if epoch.start_t_s in near]
        return typical if len(typical) >= th.COMPARED_AT_LEAST else steady

    def typical_windows(self) -> list[tuple[float, float, int]]:
        """Return the windows of training in the steady state: start, end (s), and how many make an epoch."""
        cover = cover_of(self.disturbances)
        return [part for part in windows(self._without_far_epochs()) if is_steady(cover, part[:2])]

    def _without_far_epochs(self) -> RunSample:
        times = np.array([epoch.train_s for epoch in self.training.epochs], dtype=float)
        kept = set(without_outliers(times, METRICS[EPOCH_TIME]).tolist())
        return with_epochs(self.training, [e for e in self.training.epochs if e.train_s in kept])

    @property
    def from_callbacks(self) -> bool:
        """Tell whether its epochs were reported by callbacks: edges seen from outside may be off by up to a second."""
        return all(epoch.source == FROM_CALLBACKS for epoch in self.training.epochs)

    @property
    def hides_validations(self) -> bool:
        """Tell whether training holds validations that nothing shows: readings far apart, epochs hardly placed."""
        runs = [yolo for yolo in self.training.analysis.run.yolo_runs if yolo.number == self.training.number]
        validates = all(yolo.args.get("val") is not False for yolo in runs)
        seen = any(epoch.validation_s is not None for epoch in self.training.epochs)
        return bool(self.training.epochs) and validates and not seen and not self.from_callbacks

    @property
    def is_short(self) -> bool:
        """Tell whether its epochs in the steady state are too few to be compared."""
        return len(self.steady(EPOCH_TIME, "epochs")) < th.COMPARED_AT_LEAST

    def known(self, metric: str, basis: Basis) -> Floats:
        """Return the known values of a metric, in order."""
        values, is_known = _known_rows(self.epochs if basis == "epochs" else self.windows, metric)
        return values[is_known]

    def steady(self, metric: str, basis: Basis) -> Floats:
        """Return the known values of a metric in the steady state, in order."""
        values, is_known = _known_rows(self.epochs if basis == "epochs" else self.steady_windows, metric)
        return values[is_known & (self._steady_epochs(metric) if basis == "epochs" else True)]

    def typical(self, metric: Metric, basis: Basis) -> Floats:
        """Return the values in the steady state that do not stand out; of rates those of the epochs of times."""
        values = self.steady(metric.name, basis)
        if basis != "epochs":
            return values
        times = self.steady(EPOCH_TIME, basis)
        if metric.name != IMAGES or len(times) != len(values):
            return without_outliers(values, metric)
        return values[np.isin(times, without_outliers(times, METRICS[EPOCH_TIME]))]

    def _steady_epochs(self, metric: str) -> Bools | bool:
        """Return in which epochs little was disturbed: of their training, or of the part that a metric is of."""
        if not self.disturbances:
            return True
        span_of = SPANS.get(metric, train_span)
        cover = cover_of(self.disturbances)
        return np.array([is_steady(cover, span_of(epoch)) for epoch in self.training.epochs], dtype=bool)


def values_of(training: RunSample) -> SampleValues:
    """Return a run's values, and what of its time is set aside."""
    return SampleValues(training, of_epochs(training), rare_disturbances(training))


def _known_rows(table: Values, metric: str) -> tuple[Floats, Bools]:
    """Return all values of a metric and which of them are known; a rate of zero is of an epoch without known images."""
    values = table.get(metric, np.array([]))
    return values, np.isfinite(values) & (values > 0 if metric == IMAGES else True)


def judge_all(baselines: Sequence[SampleValues], run: SampleValues) -> tuple[MetricComparison, ...]:
    """Return every metric that any side has; utilisation has no direction and is judged by the epoch time's."""
    found = [judge(baselines, run, metric, metric.statistic) for metric in METRICS.values()]
    time = next(each for each in found if each.metric == EPOCH_TIME)
    judged = [_by_epoch_time(each, time) if each.metric == UTILISATION else each for each in found]
    return tuple(each for each in judged if each.baseline is not None or each.run is not None)


def judge(baselines: Sequence[SampleValues], run: SampleValues, metric: Metric, statistic: str) -> MetricComparison:
    """Return a metric's comparison by one of its statistics; without a baseline only the run's value."""
    if metric.name == MEMORY and statistic == "max":
        return _peaks(baselines, run, metric)
    if metric.name == UTILISATION and not baselines and not run.training.epochs and statistic in OF_A_WHOLE:
        return compared_figures(metric, statistic, [whole_utilisation_pct(run.training)], "run")
    sides, choose, figure_of = (*baselines, run), statistic in {TYPICAL, "p50"}, statistic_of(metric.name, statistic)
    basis = _basis([side.steady if choose else side.known for side in sides], metric.name)
    known = [side.steady(metric.name, basis) if choose else side.known(metric.name, basis) for side in sides]
    values = [side.typical(metric, basis) for side in sides] if choose else known
    figures = [float(figure_of(each)) if len(each) else None for each in values]
    compared = compared_figures(metric, statistic, figures, basis)
    fewest = min(len(each) for each in known)
    counts = (min((len(each) for each in values[:-1]), default=0), len(values[-1]))
    compared = replace(compared, counts=counts, least_change=_least(baselines, metric, compared.baseline))
    compared = replace(compared, outliers=_outliers(known, values))
    if metric.name in OF_TRAINING and baselines and len({side.hides_validations for side in sides}) > 1:
        return replace(compared, change=None, change_share=None, note=HIDDEN_VALIDATION)
    if not baselines or fewest < th.COMPARED_AT_LEAST:
        return _of_few(compared, metric, (*baselines, run)) if baselines and fewest else compared
    if metric.name in OF_A_PHASE and len({side.from_callbacks for side in (*baselines, run)}) > 1:
        return replace(compared, note=SEEN_OTHERWISE)
    found = change_interval(values[:-1], values[-1], figure_of)
    compared = replace(compared, interval=found.ends, interval_share=found.share, correlation=found.correlation)
    enough = None if found.enough is None else _epochs_for(found.enough, (*baselines, run), basis, metric.name)
    return with_judgement(replace(judge_by_band(compared, is_sure=found.is_certain), enough=enough), metric)


def _of_few(compared: MetricComparison, metric: Metric, sides: Sequence[SampleValues]) -> MetricComparison:
    """Return a metric of which there are too few values for an interval: judged where epochs are far apart."""
    if metric.name not in {EPOCH_TIME, IMAGES} or not are_apart(sides):
        return replace(compared, note=_too_few(compared.counts, compared.basis))
    return with_judgement(replace(judge_by_band(compared, is_sure=True), note=APART), metric)


def are_apart(sides: Sequence[SampleValues]) -> bool:
    """Tell whether epochs of the run, the last side, and of the baselines are so far apart that few of them are enough.

    All must be with mosaic, or all without: images without it are faster to prepare.
    """
    kinds = {side.training.without_mosaic(epoch) for side in sides for epoch in side.training.epochs}
    *before, after = (side.steady(EPOCH_TIME, "epochs") for side in sides)
    if len(kinds) > 1 or min(map(len, (*before, after))) < th.APART_AT_LEAST:
        return False
    baselines = np.concatenate(before)
    return any(
        shorter.min() >= th.WINDOW_S and longer.min() >= th.APART_TIMES * shorter.max()
        for longer, shorter in ((baselines, after), (after, baselines))
    )


def unjudged(metric: MetricComparison) -> MetricComparison:
    """Return a metric's values alone: of runs that cannot be compared no change is reported."""
    alone = MetricComparison(metric.metric, metric.statistic, metric.unit, metric.baseline, metric.run)
    return replace(alone, basis=metric.basis, counts=metric.counts, model=metric.model)


def first_epochs(baselines: Sequence[SampleValues], run: SampleValues) -> MetricComparison | None:
    """Return the epochs that warm a process up, which say nothing of the ordinary ones; None where none is known."""
    known = [first_epoch_s(side.training) for side in (*baselines, run)]
    if all(value is None for value in known):
        return None
    compared = compared_figures(METRICS[EPOCH_TIME], "mean", known, "run")
    return replace(compared, metric="first_epoch_time")


def all_epochs(baselines: Sequence[SampleValues], run: SampleValues) -> MetricComparison | None:
    """Return the mean time of all ordinary epochs where something of a run was set aside: the run as a whole."""
    if not baselines or not any(side.disturbances for side in (*baselines, run)):
        return None
    known = [side.known(EPOCH_TIME, "epochs") for side in (*baselines, run)]
    figures = [float(values.mean()) if len(values) else None for values in known]
    compared = compared_figures(METRICS[EPOCH_TIME], "mean", figures, "run")
    return replace(compared, metric="all_epochs_time", note="not judged: it includes interruptions")


def _basis(picks: Sequence[Callable[[str, Basis], Floats]], metric: str) -> Basis:
    """Return what is counted of a metric: epochs where all sides have enough, else windows where they have."""

    def enough(name: str, basis: Basis) -> bool:
        return all(len(pick(name, basis)) >= th.COMPARED_AT_LEAST for pick in picks)

    by_windows = not enough(EPOCH_TIME, "epochs") and not enough(metric, "epochs") and enough(metric, "windows")
    return "windows" if by_windows else "epochs"


def compared_figures(metric: Metric, statistic: str, figures: Sequence[float | None], basis: Basis) -> MetricComparison:
    """Return the change of a metric from the median of the baselines to the run, which is the last of the figures."""
    before = [figure for figure in figures[:-1] if figure is not None]
    baseline, after = (median(before) if before else None), figures[-1]
    change = None if baseline is None or after is None else after - baseline
    share = change / baseline if change is not None and baseline and baseline > 0 else None
    each = tuple(before) if len(figures) > 2 else ()
    return MetricComparison(metric.name, statistic, metric.unit, baseline, after, change, share, basis=basis, each=each)


def _peaks(baselines: Sequence[SampleValues], run: SampleValues, metric: Metric) -> MetricComparison:
    """Return the memory peaks: one figure a run, which is the same each time, so that any change counts."""
    figures = [memory_peak_mib(series for series, _ in side.training.gpus) for side in (*baselines, run)]
    compared = compared_figures(metric, "max", figures, "run")
    if compared.change is None:
        return compared
    compared = replace(compared, counts=(1, 1), least_change=_least(baselines, metric, compared.baseline))
    return with_judgement(judge_by_band(compared, is_sure=True), metric)


def _least(baselines: Sequence[SampleValues], metric: Metric, baseline: float | None) -> float | None:
    """Return the smallest change that counts; of the data wait it is a share of the epoch, not of a wait near zero."""
    if baseline is None:
        return None
    if metric.name != DATA_WAIT:
        return metric.least_change(baseline)
    times = [time for side in baselines for time in side.known(EPOCH_TIME, "epochs")]
    return th.LEAST_WAIT_PP / 100 * float(np.median(times)) if times else None


def without_outliers(values: Floats, metric: Metric) -> Floats:
    """Return the values without those that stand far out from the rest, where enough are left.

    An interval from few values would reach out to a single stalled epoch, and nothing would ever be certain. What
    stalls now and then is reported by findings; what stalls every epoch does not stand out.
    """
    if len(values) < th.COMPARED_AT_LEAST:
        return values
    typical, far = tolerance(values, 2 * metric.least, OUTLIER_SHARE)
    near = np.abs(values - typical) <= far
    return values[near] if near.sum() >= OUTLIER_SIBLINGS else values


def _outliers(known: Sequence[Floats], kept: Sequence[Floats]) -> tuple[int, int]:
    """Return how many values stood out, of the baselines together and of the run."""
    left_out = [len(all_of) - len(some) for all_of, some in zip(known, kept, strict=True)]
    return sum(left_out[:-1]), left_out[-1]


def _unsure(compared: MetricComparison) -> MetricComparison:
    """Return a change that may be chance: nobody knows where more epochs would show it, else it is the same."""
    if compared.enough is not None:
        return replace(compared, note=_joined(not_enough(compared), compared.note))
    return replace(compared, judgement="same", in_noise=True, note=_joined(NOISE, compared.note))


def _epochs_for(enough: int, sides: Sequence[SampleValues], basis: Basis, metric: str) -> int:
    """Return how many ordinary epochs hold so many values; of windows as many make an epoch as in the longest one."""
    if basis == "epochs":
        return enough
    return max(math.ceil(enough * len(side.training.epochs) / len(side.known(metric, basis))) for side in sides)


def _too_few(counts: tuple[int, int], basis: Basis) -> str:
    return f"too few {basis} to judge: {counts[0]} and {counts[1]}, at least {th.COMPARED_AT_LEAST} each are needed"


def judge_by_band(compared: MetricComparison, *, is_sure: bool) -> MetricComparison:
    """Return a metric with its band; a change that is sure counts as significant only outside of it."""
    band, run = band_of(compared.each, 100.0 if compared.unit == "%" else math.inf), compared.run
    inside = band is not None and run is not None and band[0] <= run <= band[1]
    changed = is_sure and compared.change != 0
    return replace(compared, band=band, significant=is_sure and not inside, in_band=changed and inside)


def band_of(figures: Sequence[float], most: float) -> tuple[float, float] | None:
    """Return where one more run like several baselines would lie: Student's prediction interval for one more value.

    None of the metrics can be less than zero, and none more than `most`.
    """
    if len(figures) < th.BAND_AT_LEAST:
        return None
    far = student_quantile((1 + th.BAND_CONFIDENCE) / 2, len(figures) - 1)
    reach = far * stdev(figures) * (1 + 1 / len(figures)) ** 0.5
    return max(fmean(figures) - reach, 0.0), min(fmean(figures) + reach, most)


def with_judgement(compared: MetricComparison, metric: Metric) -> MetricComparison:
    """Return a metric with what its change comes to."""
    change, least = compared.change, compared.least_change
    if change is None or least is None or compared.significant is None:
        return compared
    if abs(change) < least:
        return replace(compared, judgement="same")
    if compared.in_band:
        return replace(compared, note=_joined(IN_BAND, compared.note))
    if not compared.significant:
        return _unsure(compared)
    if metric.better is None:
        return replace(compared, judgement="changed")
    return replace(compared, judgement="better" if (change < 0) == (metric.better == "lower") else "worse")


def not_enough(compared: MetricComparison) -> str:
    """Return what would decide a change that may come of neighbours being alike, and which way it points."""
    way = "more" if (compared.change or 0) > 0 else "less"
    what = "calls" if compared.basis == "calls" else "epochs"
    enough = f"about {compared.enough:,} {what} of each run would be enough"
    return f"too few {what} to be sure: it points to {way}, and {enough}"


def _by_epoch_time(utilisation: MetricComparison, time: MetricComparison) -> MetricComparison:
    """Return utilisation judged by what became of the epoch time: a faster model or loader may move it either way."""
    if utilisation.judgement != "changed" or utilisation.change is None:
        return utilisation
    fell = utilisation.change < 0
    if time.judgement == "better":
        how = "it fell, but epochs are faster: an improvement" if fell else "it rose, and epochs are faster"
        return replace(utilisation, judgement="better", note=_joined(how, utilisation.note))
    if time.judgement == "worse":
        judgement: Judgement = "worse" if fell else "changed"
        how = "it fell, and epochs are slower" if fell else "it rose, but epochs are slower"
        return replace(utilisation, judgement=judgement, note=_joined(how, utilisation.note))
    said = "training per epoch is the same" if time.judgement == "same" else "training per epoch is not known"
    return replace(utilisation, note=_joined(f"{said}: alone it is neither better nor worse", utilisation.note))


def _joined(*notes: str) -> str:
    return "; ".join(note for note in notes if note)

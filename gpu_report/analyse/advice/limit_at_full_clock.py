"""What holds a training back once its clock is up again: the loader that slower steps hide."""

from collections.abc import Sequence
from dataclasses import replace

from gpu_report.analyse.advice import thresholds as th
from gpu_report.analyse.advice.judged_epochs import judged_epochs
from gpu_report.analyse.advice.run_settings import run_settings_of
from gpu_report.analyse.advice.smaller_images import resize_images
from gpu_report.analyse.causes.thresholds import WORKER_FULL_PCT
from gpu_report.analyse.context import Context
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.analyse.timeseries.intervals import Span, as_array
from gpu_report.catalogue import RULES
from gpu_report.model import Advice, EpochSummary, Finding
from gpu_report.wording import counted, lower_first

MORE_WORKERS = "Give the loader more workers, or CPU cores"


def with_limit_at_full_clock(
    context: Context, training: Training, epochs: Sequence[EpochSummary], findings: Sequence[Finding]
) -> list[Finding]:
    """Return findings, those of a lower clock with what to do then where the loader was the limit at the full one."""
    return [_with_limit(context, training, epochs, each) if _is_of_lower_clock(each) else each for each in findings]


def _is_of_lower_clock(finding: Finding) -> bool:
    return RULES[finding.rule].lowers_clock and finding.severity != "info" and finding.gpu is not None


def _with_limit(context: Context, training: Training, epochs: Sequence[EpochSummary], finding: Finding) -> Finding:
    held = interval_cover(one.span for one in finding.each)
    free = [each for each in judged_epochs(epochs) if each.train_s and not held.touches((each.start_t_s, each.end_t_s))]
    known = [(each.train_s or 0.0, each.data_wait_s) for each in free if each.data_wait_s is not None]
    if finding.gpu not in training.gpus or len(known) < th.FREE_EPOCHS or len(known) < len(free):
        return finding
    waited = sum(wait_s for _, wait_s in known) / sum(train_s for train_s, _ in known)
    spans = [(each.start_t_s, each.start_t_s + (each.train_s or 0.0)) for each in free]
    signals = _at_full_clock(context, finding, spans)
    busiest_pct, workers = signals.within("busiest_worker_cpu_pct"), training.quantity("workers")
    if waited < th.WAITED_BEFORE_SHARE or (busiest_pct or 0.0) < WORKER_FULL_PCT or not workers:
        return finding
    return replace(
        finding, advice=(*finding.advice, _loader_advice(context, training, signals, round(workers), waited))
    )


def _at_full_clock(context: Context, finding: Finding, spans: Sequence[Span]) -> IntervalSignals:
    """Return the signals of some epochs alone."""
    whole, lay = context.signals.of(finding.gpu or 0, spans[0][0], spans[-1][1]), as_array(spans)
    host, own = whole.host.with_steady(lay).only_steady(), whole.own.with_steady(lay).only_steady()
    return replace(whole, host=host, own=own)


def _loader_advice(
    context: Context, training: Training, signals: IntervalSignals, workers: int, waited: float
) -> Advice:
    resize = resize_images(run_settings_of(context, training), "input-cpu", None, signals)
    do = lower_first(resize.short if resize is not None else MORE_WORKERS)
    limit = f"at the full clock {counted(workers, 'data-loader worker')} could not keep up"
    short = f"Then {do}: {limit} ({100 * waited:.0f} % of the time)"
    return Advice(short, short=short, is_next=True)

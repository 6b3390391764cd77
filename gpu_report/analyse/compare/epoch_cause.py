"""Why epochs take longer or less time than in the baseline: the part of an epoch that most of the change lies in."""

from collections.abc import Iterator, Mapping, Sequence

from gpu_report.analyse.compare import thresholds as th
from gpu_report.analyse.compare.metrics import DATA_WAIT, EPOCH_TIME, GPU_WORK
from gpu_report.model import EpochCause, LineChange, MetricComparison
from gpu_report.wording import brief_seconds, line_change_words

CERTAIN = frozenset({"better", "worse"})


def epoch_cause(
    metrics: Sequence[MetricComparison], lines: Sequence[LineChange] | None, *, gpus: int
) -> EpochCause | None:
    """Return the part of an epoch whose certain change is most of that of the epoch time, None where none is.

    The wait for data is a part of it, and so is a line of the main process while the run's `gpus` are idle. What the
    SMs do is compared as a share of itself: a training that the GPU limits takes as much longer as its work does.
    """
    known = {metric.metric: metric for metric in metrics}
    time = known.get(EPOCH_TIME)
    if time is None or time.judgement not in CERTAIN:
        return None
    found = (*_waits(known, time), *_lines(lines or (), time, gpus), *_work(known, time, gpus))
    return next((cause for cause in found if cause.share >= th.CAUSES_SHARE), None)


def _waits(known: Mapping[str, MetricComparison], time: MetricComparison) -> Iterator[EpochCause]:
    wait = known.get(DATA_WAIT)
    if wait is None or wait.judgement != time.judgement or wait.baseline is None or wait.run is None:
        return
    if wait.change and time.change:
        yield EpochCause("data loading", wait.baseline, wait.run, wait.change / time.change)


def _lines(lines: Sequence[LineChange], time: MetricComparison, gpus: int) -> Iterator[EpochCause]:
    """Yield the lines of the main process, the worst first; one that waits for data is no cause of its own."""
    for line in lines:
        if line.process == "main" and line.waits_for is None and time.change and gpus:
            before_s, now_s = line.baseline_idle_gpu_s / gpus, line.run_idle_gpu_s / gpus
            yield EpochCause("line of code", before_s, now_s, (now_s - before_s) / time.change, line)


def _work(known: Mapping[str, MetricComparison], time: MetricComparison, gpus: int) -> Iterator[EpochCause]:
    work = known.get(GPU_WORK)
    if work is None or not work.significant or work.baseline is None or work.run is None:
        return
    if work.change_share and time.change_share and gpus:
        yield EpochCause("GPU work", work.baseline / gpus, work.run / gpus, work.change_share / time.change_share)


def because(cause: EpochCause | None, *, slower: bool) -> str:
    """Return a cause as the end of a sentence on the epoch time, and the sentence that shows it; empty without one."""
    if cause is None:
        return "."
    change = f"{brief_seconds(cause.baseline_s)} \u2192 {brief_seconds(cause.run_s)} an epoch."
    if cause.kind == "GPU work":
        return f", because the GPU's own work takes {'longer' if slower else 'less time'}. SM activity: {change}"
    how = "slower" if slower else "faster"
    if cause.line is not None:
        return f", because {line_change_words(cause.line)} got {how}. The GPU was idle in it: {change}"
    return f", because data loading got {how}. Waiting for data: {change}"

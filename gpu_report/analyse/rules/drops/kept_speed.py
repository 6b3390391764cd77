"""Falls of utilisation during which a training did as many batches a second as beside them: they cost it nothing."""

from gpu_report.analyse.causes.confidence import LIKELY
from gpu_report.analyse.context import Context
from gpu_report.analyse.signals.gpu.utilisation_drops import Drop
from gpu_report.analyse.timeline.throughput import Throughput
from gpu_report.analyse.timeseries.intervals import Span, intersect, length_s
from gpu_report.model import Cause, Evidence

KEPT_SHARE = 0.9  # of the batches a second beside it: they vary by less, and half of the GPU's work takes more of them
BESIDE_S = 30.0  # of training on either side, or as long as the fall


def kept_speed(context: Context, drop: Drop) -> tuple[Cause, tuple[Evidence, ...]] | None:
    """Return that training was no slower in a drop than before and after it, with its batches a second, else None.

    Utilisation holds all that a GPU does: what fell is another process's work, or that two took turns on it. A drop
    that holds the end of an epoch is judged where most of it is training.
    """
    training = context.training_at(drop.start_t_s, drop.gpu)
    throughput = context.throughput
    if training is None or throughput is None:
        return None
    spans = training.train_spans
    within = intersect([drop.span], spans)
    beside_s = max(BESIDE_S, drop.duration_s)
    before = intersect([(drop.start_t_s - beside_s, drop.start_t_s)], spans)
    after = intersect([(drop.end_t_s, drop.end_t_s + beside_s)], spans)
    if length_s(within) < drop.duration_s / 2 or not throughput.counts_within(within):
        return None
    rate, rate_before = throughput.batches_per_s(within), _rate(throughput, before)
    most = max(rate_before or 0.0, _rate(throughput, after) or 0.0)
    if rate is None or rate_before is None or rate < KEPT_SHARE * most:
        return None
    numbers = (
        Evidence("batches a second within it", rate, "/s"),
        Evidence("batches a second before it", rate_before, "/s"),
    )
    return Cause("kept-speed", LIKELY, "training did as many batches a second as before"), numbers


def _rate(throughput: Throughput, spans: list[Span]) -> float | None:
    """Return batches a second within spans; None where too few of them were counted there."""
    return throughput.batches_per_s(spans) if throughput.counts_within(spans) else None

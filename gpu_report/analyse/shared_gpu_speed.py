"""What other processes on a GPU left of the training's speed, by the images that callbacks counted."""

from collections.abc import Sequence

from gpu_report.analyse.context import Context
from gpu_report.analyse.timeseries.intervals import Span, intersect, length_s


def typical_per_s(context: Context, gpu: int, at_t_s: float) -> float | None:
    """Return images a second in the steady state of the training on a GPU at a moment, None where nothing told."""
    training = context.training_at(at_t_s, gpu)
    steady = context.signals.steady_of(training) if training else context.signals.steady
    return context.throughput.images_per_s(steady) if context.throughput else None


def speed_left(context: Context, gpu: int, spans: Sequence[Span]) -> float | None:
    """Return what was left of the typical throughput within spans (a share), None where callbacks did not tell it."""
    then = context.throughput.images_per_s(spans) if context.throughput else None
    typical = typical_per_s(context, gpu, spans[0][0])
    return then / typical if then is not None and typical else None


def lost_to_others_s(context: Context, gpu: int, spans: Sequence[Span]) -> float | None:
    """Return the seconds of training that others cost within spans, None where callbacks told no throughput."""
    left = speed_left(context, gpu, spans)
    trained = context.all_train_spans
    return None if left is None else max(1 - left, 0.0) * length_s(intersect(spans, trained))

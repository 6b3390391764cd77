"""How busy GPUs were in training: the one number that verdict, findings and tiles give, and of which time it is."""

from gpu_report.analyse.context import Context
from gpu_report.analyse.timeline.activity import outside
from gpu_report.analyse.timeline.steady_state import is_settled
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.gpu_series import Bools, GpuSeries
from gpu_report.analyse.timeseries.intervals import Span, as_array
from gpu_report.model import HEALTHY_PCT
from gpu_report.wording import length

NEXT_TO_NOTHING_PCT = 1.0  # under it nobody asks how much it was
# Of the idle time, or of the work where utilisation fell: so much of it has another cause than the one that lasts.
STEADY_APART = 0.2

Busy = tuple[float, float] | None  # mean utilisation in %, and the seconds that it is of


def busy_in_training(context: Context, training: Training | None = None, gpu: int | None = None) -> Busy:
    """Return mean utilisation (%) of training and its length (s, mean of GPUs), None where nothing ran.

    Of all trainings and the GPUs that they used, or of one. Training is the train phases; where no epochs are known,
    all outside startup and idle that callbacks have no other name for. A GPU that spins for another reads as fully
    busy and does nothing: that is no work, but for what it surely did meanwhile (`work_in_waits`).
    """
    trained = training.train_spans if training else context.all_train_spans
    return context.cached(_busy_within, tuple(trained), gpu)


def _busy_within(context: Context, trained: tuple[Span, ...], gpu: int | None) -> Busy:
    spans = as_array(trained)
    weight = busy = 0.0
    for series, usable in zip(context.series, context.usable, strict=True):
        if gpu is not None and series.gpu != gpu:
            continue
        mine = usable & (~outside(series, spans) if len(spans) else outside(series, context.callbacks.spans))
        waits = [wait.span for wait in context.busy_waits if wait.gpu == series.gpu]
        weight += float(series.weight_s[mine].sum())
        works = mine & outside(series, waits) if waits else mine
        busy += float((series.weight_s[works] * series.util_pct[works]).sum())
        if waits:
            waiting = mine & ~works
            busy += 100 * float((series.weight_s[waiting] * context.work_in_waits(series)[waiting]).sum())
    gpus = len(context.activity.used_gpus) if gpu is None else 1
    return (busy / weight, weight / gpus) if weight else None


def steady_utilisation(context: Context, training: Training, series: GpuSeries, usable: Bools) -> float | None:
    """Return mean utilisation (%) of a GPU in the steady state of a training, None where there is too little of it."""
    undisturbed = as_array(training.within(context.undisturbed))
    mean_pct, seconds = series.mean_util_of(usable & ~outside(series, undisturbed))
    return mean_pct if is_settled(seconds, series.interval_s) else None


def saw_training(context: Context) -> bool:
    """Tell whether any training was seen, and when it trained."""
    return any(phase.name == "train" for phase in context.phases)


def busy_words(mean_pct: float, *, by_nature: bool = False) -> str:
    """Return how busy GPUs were (%): only 31 %, under 1 %.

    There is a word for what is less than a healthy training has, unless it is so `by_nature`, and no fault.
    """
    if mean_pct < NEXT_TO_NOTHING_PCT:
        return f"under {NEXT_TO_NOTHING_PCT:.0f} %"
    return f"{'only ' if mean_pct < HEALTHY_PCT and not by_nature else ''}{mean_pct:.0f} %"


def steady_words(mean_pct: float, steady_pct: float | None, *, fell: bool = False) -> str:
    """Return how busy the steady state was, where a cause that lasts is not what took most from all of training.

    Drops and slow epochs took the rest, which has causes of its own; empty where that is little. Where utilisation
    `fell` for another cause, a part of the work is enough: of a GPU that mostly waits anyway, to stand still takes
    little more time.
    """
    if steady_pct is None:
        return ""
    least_pct = STEADY_APART * (min(100 - mean_pct, steady_pct) if fell else 100 - mean_pct)
    return f" ({steady_pct:.0f} % without drops)" if steady_pct - mean_pct >= least_pct else ""


def of_what_time(context: Context, seconds: float) -> str:
    """Return of what time a GPU was busy: of training, or of what else was recorded."""
    if saw_training(context):
        return "training time" + (" (validation included)" if context.too_coarse else "")
    return f"the {length(seconds)} {'after start-up' if context.activity.startups else 'recorded'}"

"""Guesses where nothing that was measured explains why the GPU waits: from the training's arguments alone."""

from collections.abc import Iterator, Sequence

from gpu_report.analyse.advice.run_settings import RunSettings, run_settings_of
from gpu_report.analyse.advice.thresholds import BATCH_MEMORY_SHARE
from gpu_report.analyse.busy_in_training import busy_in_training, steady_utilisation
from gpu_report.analyse.causes import explain
from gpu_report.analyse.causes.candidate import never_waits_for_data
from gpu_report.analyse.causes.confidence import LIKELY
from gpu_report.analyse.context import Context
from gpu_report.analyse.results import thresholds as th
from gpu_report.analyse.results.short_training import is_enough
from gpu_report.analyse.results.unseen_waits import waits_unseen
from gpu_report.analyse.timeline.trainings import Training, whole
from gpu_report.catalogue import LAUNCH_BOUND, UNEXPLAINED
from gpu_report.model import HEALTHY_PCT, Finding, Hypothesis
from gpu_report.wording import counted

TWICE_THE_BATCH = "train one epoch with twice the `batch`; faster means yes"
OF_LOADER = frozenset({"workers", "cache"})  # arguments of what loads images


def hypotheses(context: Context, findings: Sequence[Finding]) -> tuple[Hypothesis, ...]:
    """Return guesses for the first training that waits all the time for an unknown reason, the likeliest first.

    So where readings are too far apart for more than the mean of that training, or nobody saw what it waited for. Of
    one too short for a steady state it is what the same signals would say of a longer one.

    A guess is no finding: it says which one measurement would decide it.
    """
    waiting = [f for f in findings if f.rule == "starved" and f.severity != "info"]
    unknown = next((f for f in waiting if f.cause and f.cause.name == UNEXPLAINED), None)
    training = _unseen(context) if unknown is None else context.training_at(unknown.start_t_s, unknown.gpu)
    if training is None and not any(f.severity != "info" for f in findings):
        return tuple(_of_short(context))
    if training is None or (unknown is None and waiting):
        return ()
    guesses = _guesses(run_settings_of(context, training))
    found = [guess for guess in guesses if guess.argument not in OF_LOADER or not _has_data(context, training)]
    return tuple(sorted(found, key=lambda guess: -guess.confidence))


def _has_data(context: Context, training: Training) -> bool:
    """Tell whether the next batch was always there, on all GPUs of a training: then nothing that loads it is slow."""
    signals = [context.signals.of_training(gpu, training) for gpu in training.gpus]
    return any(signals) and all(each is None or never_waits_for_data(each) for each in signals)


def _unseen(context: Context) -> Training | None:
    """Return the first training that hardly kept its GPUs busy, where readings were too few to judge it any further."""
    busy = busy_in_training(context, context.trainings[0]) if context.trainings else None
    if busy is None:
        return None
    is_low = context.too_coarse and busy[0] < HEALTHY_PCT
    return context.trainings[0] if is_low or (waits_unseen(context, busy) and busy[0] < th.QUESTIONED_PCT) else None


def _of_short(context: Context) -> Iterator[Hypothesis]:
    """Yield why the GPUs of an only training idle that has no steady state yet, and yet is long enough to see that."""
    training = context.trainings[0] if len(context.trainings) == 1 else None
    busy = busy_in_training(context, training) if training is not None else None
    if training is None or busy is None or busy[0] >= HEALTHY_PCT or not is_enough(context, busy):
        return
    for series, usable in zip(context.series, context.usable, strict=True):
        signals = context.signals.of_training(series.gpu, training) if series.gpu in training.gpus else None
        if signals is None or steady_utilisation(context, training, series, usable) is not None:
            continue
        cause = explain(signals).cause
        if cause.name != UNEXPLAINED and cause.confidence >= LIKELY:
            is_small = cause.name == LAUNCH_BOUND
            check, argument = (TWICE_THE_BATCH, "batch") if is_small else ("record some epochs more", "epochs")
            yield Hypothesis(cause.explanation, th.GUESS_SHORT * cause.confidence, check, argument)
            return


def _guesses(settings: RunSettings) -> Iterator[Hypothesis]:
    workers, batch = settings.workers, settings.batch
    if workers is not None and workers <= th.FEW_WORKERS and settings.has("workers"):
        few = f"{counted(workers, 'data-loader worker')} may be too few"
        yield Hypothesis(few, th.GUESS_WORKERS, "watch their CPU in `top`; near 100 % each means yes", "workers")
    if batch is not None and 0 < batch <= th.SMALL_BATCH and settings.has("batch"):
        small = f"steps with a batch of {batch} may be too small for this GPU"
        yield Hypothesis(small, th.GUESS_BATCH, TWICE_THE_BATCH, "batch")
    elif (much := _much_larger_batch(settings)) is not None:
        used = (settings.gpu_peak_mib or 0.0) / (settings.gpu_total_mib or 1.0)
        small = f"a batch of {batch} may be too small for this GPU, of whose memory it uses {100 * used:.0f} %"
        yield Hypothesis(small, th.GUESS_ROOM, f"train one epoch with `batch={much}`; faster means yes", "batch")
    if not settings.cached and settings.has("cache"):
        reads = "reading images from disk in every epoch may be slow"
        yield Hypothesis(
            reads, th.GUESS_CACHE, "watch the workers' CPU in `top`; well under 100 % each means yes", "cache"
        )


def _much_larger_batch(settings: RunSettings) -> int | None:
    """Return a batch that is much larger and fits into GPU memory, None without one.

    It is no larger than the images after which the optimizer steps (`nbs`): that leaves the training as it is.
    """
    batch, most, peak, total = (
        settings.batch,
        whole(settings.args.get("nbs")),
        settings.gpu_peak_mib,
        settings.gpu_total_mib,
    )
    if not batch or batch <= 0 or not most or not peak or not total or not settings.has("batch"):
        return None
    larger = batch
    while 2 * larger <= most and 2 * larger / batch * peak <= BATCH_MEMORY_SHARE * total:
        larger *= 2
    return larger if larger >= th.MUCH_LARGER * batch else None

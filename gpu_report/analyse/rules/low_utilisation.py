"""Rule: a GPU that mostly waits throughout training, outside any drop: what holds it back all the time."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from gpu_report.analyse.busy_in_training import (
    Busy,
    busy_in_training,
    busy_words,
    of_what_time,
    steady_utilisation,
    steady_words,
)
from gpu_report.analyse.causes import Explanation, explain, explain_waiting
from gpu_report.analyse.causes.data_loading import WAITED_KEY, workers_always_busy, workers_stuck
from gpu_report.analyse.causes.faster_epochs import FasterEpochs, faster_epochs
from gpu_report.analyse.causes.host import cores_short
from gpu_report.analyse.causes.late_first_batches import with_late_first_batches
from gpu_report.analyse.causes.main_process import CODE_CAUSES, idles_in_long_steps, launch_bound, of_growth
from gpu_report.analyse.causes.slower_storage import advice_on_remote, advice_on_storage, until_cached
from gpu_report.analyse.causes.thresholds import CPU_PRESSURE_PCT, MAIN_BOUND_UTIL_PCT
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.signals.host.kernel_events import kernel_events_near
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.tensor_share import nearly_empty
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.gpu_series import GpuSeries
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.analyse.timeseries.intervals import Span, as_array
from gpu_report.catalogue import CAUSES, LAUNCH_BOUND, STEADY_KEY
from gpu_report.gpu_words import gpu_words
from gpu_report.model import HEALTHY_PCT, STARVED_PCT, Advice, Cause, Evidence, Finding, Severity

# What it is judged by; what is said first is over all training.
ORDINARY = "utilisation in steady state (without first batches and slow epochs)"
VALIDATED = "utilisation in training and validation"  # where readings cannot tell them apart
CPU_SHORT = frozenset({"input-cpu", "cpu-limit"})
FIRST_SHARE = 0.25  # of a training: what holds it back in all of it does so in that


_IsLimit = Callable[[IntervalSignals], bool]


class _UnderusedGpu(NamedTuple):
    """A GPU that waits: its signals, mean utilisation in the steady state (%), and the share (0 to 1) of data waits."""

    signals: IntervalSignals
    mean_pct: float | None
    waited: float | None


def starved_gpus(context: Context) -> list[Finding]:
    """Report, of each training, the GPUs that are under HEALTHY_PCT busy in undisturbed epochs, or wait for data.

    With each stands what the host did meanwhile.
    """
    found: list[Finding] = []
    for training in context.trainings:
        span = _span(context, training)
        if span is None:
            continue
        found += [_finding(context, training, span, low) for low in _low(context, training)]
    return found


def _low(context: Context, training: Training) -> Iterator[_UnderusedGpu]:
    """Yield the GPUs of a training that wait.

    One that reports no utilisation waits where the trainer reported that it waited for data.
    """
    of_epochs = _data_wait(context, training)
    for series, use in zip(context.series, context.usable, strict=True):
        mean_pct = steady_utilisation(context, training, series, use) if series.gpu in training.gpus else None
        signals = context.signals.of_training(series.gpu, training) if series.gpu in training.gpus else None
        if signals is None and series.gpu in training.gpus:
            yield from _stuck_throughout(context, training, series)
        if signals is not None and mean_pct is None and _is_in_call(signals):
            mean_pct = signals.gpu_within("gpu_util_pct")
        if signals is None or (mean_pct is None and len(series.t_s)):
            continue
        own = signals.data_wait_share  # of an only epoch, once warmed up; ranks wait each for their own loader
        waited = own if of_epochs is None or (training.ranks > 1 and own is not None) else of_epochs
        waits = waited is not None and waited >= th.DATA_WAIT_SHARE
        waits = waits or _waits_unreported(signals, mean_pct, _limits_of(training)) or _idles_in_steps(signals)
        if waits or (mean_pct is not None and mean_pct < HEALTHY_PCT) or _has_small_kernels(context, training, signals):
            yield _UnderusedGpu(signals, mean_pct, waited)


def _stuck_throughout(context: Context, training: Training, series: GpuSeries) -> Iterator[_UnderusedGpu]:
    """Yield a GPU that waits while readings cannot tell validation from training, where its workers wait in both.

    They read images in both: what they wait for in state D is no matter of which it is.
    """
    spans = as_array(training.within(context.too_coarse))
    if not len(spans):
        return
    start_s, end_s = float(spans[0][0]), float(spans[-1][1])
    whole = context.signals.of(series.gpu, start_s, end_s)
    host = whole.host.with_steady(spans).only_steady()
    whole = replace(whole, host=host, own=whole.own.with_steady(spans).only_steady(), is_steady=True)
    mean_pct, _ = series.mean_util_in(spans)
    if _waits_unreported(whole, mean_pct, (_waits_in_state_d,)):
        yield _UnderusedGpu(whole, mean_pct, None)


def _waits_in_state_d(signals: IntervalSignals) -> bool:
    """Tell whether workers wait in state D for what they read."""
    return workers_stuck(signals) is not None


def _fills_cpu(signals: IntervalSignals) -> bool:
    """Tell whether workers never rest, or cores are full and processes wait for them: no queue is ever full then."""
    short = (signals.within("cpu_pressure_pct") or 0.0) >= CPU_PRESSURE_PCT and cores_short(signals)
    return (short or workers_always_busy(signals)) and explain(signals).cause.name in CPU_SHORT


def _limits_of(training: Training) -> tuple[_IsLimit, ...]:
    """Return what may show that a training waits for data: in short epochs its workers load what a queue holds."""
    longest_s = max((end - start for start, end in training.train_spans), default=0.0)
    return (_waits_in_state_d, _fills_cpu) if longest_s >= th.FULL_FOR_S else (_waits_in_state_d,)


def _waits_unreported(signals: IntervalSignals, mean_pct: float | None, limits: Sequence[_IsLimit]) -> bool:
    """Tell whether a limit that was measured says that a training waits for data all along, which nobody reported.

    The GPU must idle for as much of the time as a reported wait must take. Where the limit is there since some moment,
    utilisation fell then.
    """
    if mean_pct is None or mean_pct > 100 * (1 - th.DATA_WAIT_SHARE) or signals.waited_share is not None:
        return False
    first = replace(signals, end_t_s=signals.start_t_s + FIRST_SHARE * (signals.end_t_s - signals.start_t_s))
    return any(is_limit(signals) and is_limit(first) for is_limit in limits)


def _idles_in_steps(signals: IntervalSignals) -> bool:
    """Tell whether a GPU that is busy enough idles in each step for a reason that can be changed."""
    return idles_in_long_steps(signals) is not None and explain(signals).cause.name == "main-process"


def _has_small_kernels(context: Context, training: Training, signals: IntervalSignals) -> bool:
    """Tell whether most SMs idle while a kernel runs, for the main process launches too little at a time.

    A kernel that waits for another rank's GPU hardly uses any, nor does one of a few threads: no batch helps there.
    """
    util_pct, sm_pct = signals.gpu_within("gpu_util_pct"), signals.gpu_within("sm_active_pct")
    if util_pct is None or sm_pct is None or sm_pct >= th.SMALL_KERNELS_SM_SHARE * util_pct:
        return False
    if training.ranks > 1 or nearly_empty(context, training, signals.gpu) is not None:
        return False
    return launch_bound(signals) is not None and explain(signals).cause.name == LAUNCH_BOUND


def _span(context: Context, training: Training) -> Span | None:
    """Return the time from the beginning of the first training phase to the end of the last.

    None for a training that came to none: what is ordinary in it is that of another which went on at once.
    """
    phased = training.rank_group is not None or any(phase.name == "train" for phase in context.phases)
    spans = training.train_spans if phased else context.signals.steady_of(training)
    return (spans[0][0], spans[-1][1]) if spans else None


def _is_in_call(signals: IntervalSignals) -> bool:
    """Tell whether the training stood in a function of the user's: that is no warming up, however short it was."""
    return signals.idle_location is not None and signals.idle_location.is_in_call


def _finding(context: Context, training: Training, span: Span, low: _UnderusedGpu) -> Finding:
    """Return the finding; without a cause, what is between starved and healthy is a note."""
    signals, mean_pct, waited = low
    busy = None if mean_pct is None else busy_in_training(context, training, signals.gpu)
    explained = with_late_first_batches(training, _explained(signals, waited))
    cause = explained.cause
    is_said = any(each.key == WAITED_KEY for each in explained.evidence)
    wait_pct = None if waited is None or is_said else 100 * waited
    numbers = evidence(
        Evidence(VALIDATED if context.too_coarse else ORDINARY, mean_pct, "%", key=STEADY_KEY),
        ("waiting for data in steady state, share of training", wait_pct, "%"),
    )
    severity = _severity(cause, mean_pct, training)
    faster = faster_epochs(training) if CAUSES[cause.name].is_input else None
    by_nature = severity == "info" and cause.name == LAUNCH_BOUND
    return context.finding(
        "starved",
        severity,
        span,
        f"{_how_busy(context, training, busy, low, by_nature=by_nature)}: {cause.explanation}"
        f"{f'; {faster.words}' if faster else ''}",
        gpu=signals.gpu,
        evidence=(
            *numbers,
            *_of_a_step(context, span),
            *((faster.evidence, *faster.onset) if faster else ()),
            *(each for each in explained.evidence if each.key != "gpu_util_pct"),
            *_of_its_call(context, training, signals, cause),
        ),
        cause=cause,
        advice=_beside_faster(context, signals.gpu, cause, faster) or explained.advice,
        epoch=None,
        phase=None,
    )


def _beside_faster(context: Context, gpu: int, cause: Cause, faster: FasterEpochs | None) -> tuple[Advice, ...]:
    """Return what to do about storage that kept up with some epochs: what reads it since, or what it lacks.

    Where these were the last ones, memory may have held the images by then.
    """
    if cause.name != "input-storage" or faster is None:
        return ()
    if faster.after is None:
        return until_cached(context.run.host, faster.before, faster.spans, f"in {faster.which}")
    since, fast = context.signals.of(gpu, *faster.after), as_array(faster.spans)
    kernel = kernel_events_near(context.run.kernel.events, faster.spans[-1][0], faster.after[1], gpu)  # it may begin it
    since = replace(since, host=since.host.with_steady(fast), own=since.own.with_steady(fast), kernel=kernel)
    return advice_on_remote(since) or (advice_on_storage(since),)


def _of_a_step(context: Context, span: Span) -> tuple[Evidence, ...]:
    """Return what PyTorch's profiler saw of a step of a training."""
    trained = [each for each in context.profiled if each.window.phase == "train"]
    within = [each for each in trained if span[0] <= each.window.start_t_s <= span[1]]
    if not within or within[-1].steps.busy_s is None:
        return ()
    return evidence(
        ("GPU time per step, by PyTorch's profiler", within[-1].steps.busy_s, "s"),
        ("a step without the profiler", within[-1].typical_step_s, "s"),
    )


def _of_its_call(context: Context, training: Training, signals: IntervalSignals, cause: Cause) -> tuple[Evidence, ...]:
    """Return how the function of the user's grew that is why the GPU waits."""
    idle_location = signals.idle_location
    if cause.name not in CODE_CAUSES or idle_location is None or idle_location.call is None:
        return ()
    is_why = idle_location.is_in_call or idle_location.is_partly_in_call
    return of_growth(context.signals.call_growth(signals.gpu, idle_location.call, training)) if is_why else ()


def _how_busy(context: Context, training: Training, busy: Busy, low: _UnderusedGpu, *, by_nature: bool) -> str:
    gpu, which = low.signals.gpu, context.which_training(training)
    if busy is None:
        waited_pct = 100 * (low.waited or 0.0)
        return f"The training on {gpu_words(gpu)} waited for data {waited_pct:.0f} % of the time in steady state"
    mean_pct, seconds = busy
    steady = steady_words(mean_pct, low.mean_pct)
    words = busy_words(mean_pct, by_nature=by_nature)
    sm_pct = low.signals.gpu_within("sm_active_pct")
    sms = f", its SMs {sm_pct:.0f} %" if mean_pct >= HEALTHY_PCT and sm_pct is not None and by_nature else ""
    time = f"the time in {which}" if which else of_what_time(context, seconds)
    return f"{gpu_words(gpu)} was busy {words} of {time}{steady}{sms}"


def _severity(cause: Cause, mean_pct: float | None, training: Training) -> Severity:
    """Return a note for what is between starved and healthy, unless its cause can be repaired without another batch.

    Small steps of an epoch that has too few batches for a larger one are a note, however idle the GPU is.
    """
    small_steps = cause.name == LAUNCH_BOUND
    if small_steps and (training.quantity("batches") or th.LARGER_BATCH_FROM) < th.LARGER_BATCH_FROM:
        return "info"
    if mean_pct is None or mean_pct < STARVED_PCT:
        return "warning"
    by_nature = small_steps and mean_pct >= MAIN_BOUND_UTIL_PCT
    return "info" if by_nature or not cause.confidence else "warning"


def _explained(signals: IntervalSignals, waited: float | None) -> Explanation:
    """Return the cause of a whole training; where its means show none, that of the time in which it waited for data.

    Where steps are small and data is waited for between them, too, they follow the loader: with larger or faster
    ones the training would wait for as many images a second.
    """
    explained = explain(signals)
    is_known, waited = explained.cause.confidence > 0, waited or 0.0
    follows = explained.cause.name == LAUNCH_BOUND and waited >= th.DATA_WAIT_SHARE
    waits = signals.while_waiting() if follows or (not is_known and waited >= th.WAITING_SHARE) else None
    if waits is None:
        unseen = not is_known and waited >= th.DATA_WAIT_SHARE and signals.within("main_cpu_pct") is None
        return (explain_waiting(signals) if unseen else None) or explained
    return (explain_waiting(waits) if is_known else explain(waits)) or explained


def _data_wait(context: Context, training: Training) -> float | None:
    """Return the share (0 to 1) of steady epochs that training waited for data, None where nobody reported it.

    The first epoch of a process waits for its first batch, one with a drop in it for what made the drop.
    """
    fallen = interval_cover(drop.span for drop in context.drops)
    epochs = training.rank_group.main.epochs[1:] if training.rank_group else ()
    reported = [
        (epoch.end_t_s - epoch.start_t_s, epoch.data_wait_s)
        for epoch in epochs
        if epoch.end_t_s is not None and not fallen.touches((epoch.start_t_s, epoch.end_t_s))
    ]
    trained_s = sum(length_s for length_s, _ in reported)
    return sum(waited_s for _, waited_s in reported) / trained_s if trained_s > 0 else None

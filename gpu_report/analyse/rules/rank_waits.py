"""Rule: a GPU reads as busy and does nothing, because its rank waits for another one (DDP)."""

from collections.abc import Iterator, Sequence

import numpy as np

from gpu_report.analyse.causes import explain
from gpu_report.analyse.causes.confidence import STRONG
from gpu_report.analyse.causes.thresholds import STOPPED_SHARE
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence, stopped_processes, usually
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.thresholds import BUSY_WAIT_UTIL_PCT, PHASE_EDGE_S
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.analyse.timeseries.intervals import IntervalIndex, Span, union
from gpu_report.catalogue import OTHER_NODE, SLOW_RANK, WAITING_FOR_PEER
from gpu_report.gpu_words import gpu_words, gpus_words
from gpu_report.model import Advice, Cause, Evidence, Finding, Interval
from gpu_report.wording import length

SHORT = "Find the call that not all training processes (ranks) make: `barrier`, `all_reduce`, `all_gather`"
ADVICE = (Advice(f"{SHORT}. Each rank waits in it until all of them have called it", short=SHORT),)
LATE_SHORT = "Find which training process (rank) was late to a call of all: `barrier`, `all_reduce`, `all_gather`"
LATE = (Advice(f"{LATE_SHORT}. Its own output and the code before that call say why", short=LATE_SHORT),)
OF_ALL_NODES = (
    Advice("Render all nodes as one report, which names the slow rank: `gpu-report render job.html NODE_A NODE_B`"),
)


def waiting_for_peer(context: Context) -> list[Finding]:
    """Report where a rank's GPU spins at full utilisation and idle power for 10 s or more, and whom it waits for.

    Of the rank that is late the cause is looked for in its own processes. Where its GPU fell, that drop has it.
    """
    late = {wait: _late(context, wait) for wait in context.busy_waits}
    waited_for: dict[int, list[Interval]] = {}
    for wait, gpu in late.items():
        if gpu is not None:
            waited_for.setdefault(gpu, []).append(wait)
    slow = [found for gpu, waits in waited_for.items() for found in _slow_rank(context, gpu, waits)]
    return [*(_finding(context, wait, late[wait]) for wait in context.busy_waits), *slow]


def _slow_rank(context: Context, gpu: int, waits: Sequence[Interval]) -> Iterator[Finding]:
    """Yield why a rank was late, once for all that waited for it, where anybody can tell."""
    fell = interval_cover(drop.span for drop in context.drops if drop.gpu == gpu)
    index = IntervalIndex(waits, lambda wait: wait.span)
    for span in union([wait.span for wait in waits]):
        took_s = span[1] - span[0]
        explained = explain(context.signals.of(gpu, *span))
        if fell.seconds_in(span) > took_s / 2 or not explained.cause.confidence:
            continue
        waiting = gpus_words(sorted({wait.gpu for wait in index(*span)}))
        yield context.finding(
            SLOW_RANK,
            "warning",
            span,
            f"The training process of {gpu_words(gpu)} (its rank) was late: {waiting} waited {length(took_s)} for it",
            gpu=gpu,
            evidence=explained.evidence,
            cause=explained.cause,
            advice=explained.advice,
        )


def _finding(context: Context, interval: Interval, late: int | None) -> Finding:
    span = interval.span
    signals = context.signals.of(interval.gpu, *span)
    power = signals.gpu_within("power_w")
    elsewhere = context.run.job.is_of_several_nodes
    peer = gpu_words(late) if late is not None else OTHER_NODE if elsewhere else "another GPU"
    seconds = length(interval.duration_s)
    waited = f"{gpu_words(interval.gpu)} waited {seconds} for {peer}"
    all_wait = late is None and not elsewhere and not context.gpus_not_waiting(interval.gpu, span)
    of_all_nodes = late is None and elsewhere
    if all_wait:
        waited = f"All GPUs of the training waited {seconds} for each other"
    return context.finding(
        WAITING_FOR_PEER,
        "warning",
        span,
        f"{waited} ({interval.mean_pct:.0f} % busy in nvidia-smi)",
        gpu=interval.gpu,
        evidence=_evidence(signals, power, elsewhere=of_all_nodes),
        cause=Cause(WAITING_FOR_PEER, STRONG, _explanation(signals, late, elsewhere=of_all_nodes)),
        advice=_advice_of_all(context, span) if all_wait else OF_ALL_NODES if of_all_nodes else (),
        waited_for=OTHER_NODE if of_all_nodes else "",
        kernel_events=tuple(signals.kernel),
    )


def _advice_of_all(context: Context, span: Span) -> tuple[Advice, ...]:
    """Return what to find where all ranks waited: the one that was late where training went on, else a missing call."""
    training = context.training_at(span[0])
    went_on = training is not None and training.span[1] - span[1] > PHASE_EDGE_S
    return LATE if went_on else ADVICE


def _late(context: Context, wait: Interval) -> int | None:
    """Return the GPU of the same training that did least of those that do not wait: the rank that all wait for."""
    others = set(context.gpus_not_waiting(wait.gpu, wait.span)) - {wait.gpu}
    means = {t.gpu: t.mean_util_pct(*wait.span) for t in context.series if t.gpu in others}
    quiet = {gpu: mean for gpu, mean in means.items() if np.isfinite(mean) and mean < BUSY_WAIT_UTIL_PCT}
    return min(quiet, key=lambda other: quiet[other], default=None)


def _explanation(signals: IntervalSignals, late: int | None, *, elsewhere: bool) -> str:
    why = "; a signal had paused a process of the training" if _paused(signals) else ""
    if elsewhere:
        return f"this GPU showed full utilisation near idle power: its process (rank) waited for {OTHER_NODE}{why}"
    whom = f"the one on {gpu_words(late)}" if late is not None else "one that had not reached the same call"
    return f"this GPU showed full utilisation at idle power: its training process (rank) waited for {whom}{why}"


def _paused(signals: IntervalSignals) -> float | None:
    """Return how many processes of the training a signal had stopped, None where it stopped one for less than half."""
    is_mostly = (signals.share_above("trainer_stopped", 1) or 0.0) >= STOPPED_SHARE
    return signals.within("trainer_stopped") if is_mostly else None


def _evidence(signals: IntervalSignals, power: float | None, *, elsewhere: bool) -> tuple[Evidence, ...]:
    return evidence(
        ("power meanwhile", power, "W"),
        usually(signals.gpu_typical("power_w"), "W"),
        ("tensor activity meanwhile", signals.gpu_within("tensor_active_pct"), "%"),
        usually(signals.gpu_typical("tensor_active_pct"), "%"),
        ("SM activity meanwhile", signals.gpu_within("sm_active_pct") if elsewhere else None, "%"),
        stopped_processes(_paused(signals)),
    )

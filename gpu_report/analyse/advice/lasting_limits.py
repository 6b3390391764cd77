"""The limit of what holds a training back all the time, and of the user's function that takes most of its steps."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import fmean, median

import numpy as np

from gpu_report.analyse.advice import thresholds as th
from gpu_report.analyse.advice.judged_epochs import JudgedEpoch
from gpu_report.analyse.causes.candidate import waits_for_data
from gpu_report.analyse.causes.data_loading import handed_over_share
from gpu_report.analyse.causes.garbage import garbage_collected
from gpu_report.analyse.causes.host import cores_short
from gpu_report.analyse.causes.main_process import CODE_CAUSES, main_process_bound, partly_in_call
from gpu_report.analyse.causes.slow_modes import slowed_by_mode
from gpu_report.analyse.context import Context
from gpu_report.analyse.rules.gpus.gpu_imbalance import peer_waits
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.gpu_series import GpuSeries
from gpu_report.analyse.timeseries.intervals import Spans, as_array, mask_in_any
from gpu_report.catalogue import (
    CAUSES,
    GAPS,
    LAUNCH_BOUND,
    USER_CODE_KEY,
)
from gpu_report.model import Finding, SpeedupLimit

MAIN_PROCESS, MANY_TENSORS = "main-process", "many-tensors"


def limit_of_code(
    context: Context,
    training: Training | None,
    epochs: Sequence[JudgedEpoch],
    findings: Sequence[Finding],
    found: Sequence[SpeedupLimit],
) -> Iterator[SpeedupLimit]:
    """Yield the limit of the user's function that takes most of the steps beside what holds training back most.

    Not where its cause has a limit: that is then of more than the function. The GPU's work takes no less without it.
    """
    known = {limit.cause for limit in found}
    own = [(f.number(USER_CODE_KEY) or 0.0, f) for f in findings if f.rule == "user-code" and f.phase != "validation"]
    share_pct, most = max(own, key=lambda each: each[0], default=(0.0, None))
    if most is None or most.cause is None or most.cause.name in known or not 0 < share_pct < 100:
        return
    now_s = median(epoch.train_s for epoch in epochs)
    busy = min(_busy_shares(context, training, epochs), default=0.0) if training is not None else 0.0
    best_s = now_s * max(1 - share_pct / 100, busy)
    yield SpeedupLimit(most.cause.name, now_s, best_s, "without that function", location=most.where[0])


def lasting_causes(context: Context, training: Training, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings of what holds a training back all the time, with their causes."""
    starved = [f for f in findings if f.rule == "starved" and f.cause]
    return [f for f in starved if context.training_at(f.start_t_s, f.gpu) is training]


def lasting_limit(
    context: Context, training: Training | None, epochs: Sequence[JudgedEpoch], findings: Sequence[Finding]
) -> SpeedupLimit | None:
    """Return the limit of what holds training back all the time: of its cause where one is known, else of all gaps."""
    if not epochs or training is None:
        return None
    held_back = lasting_causes(context, training, findings)
    # named as in the ledger, where all that is not explained is gaps; a warning of it is reported as what it is
    causes = [(f.cause.name, f.severity) for f in held_back if f.cause]
    cause, severity = next((each for each in causes if each != ("unexplained", "info")), (GAPS, ""))
    now_s = median(epoch.train_s for epoch in epochs)
    waits = [epoch.summary.data_wait_s for epoch in epochs]
    signals = context.signals.of_training(min(training.gpus), training) if training.gpus else None
    # where cores are short the main process is late, too, and its own work would take less with more of them: by how
    # much utilisation says, and without that the wait is the least of it
    busy = _busy_shares(context, training, epochs)
    short = bool(busy) and signals is not None and cores_short(signals)
    if CAUSES[cause].is_input and not short and all(wait is not None for wait in waits):
        best_s = min(epoch.train_s - (epoch.summary.data_wait_s or 0.0) for epoch in epochs)
        return _limit(cause, now_s, best_s, "shortest epoch, without its wait for data")
    # what is but a note lies in the kernels that this batch makes: they stay as they are, and only its gaps go; where
    # the kernels themselves could be fewer and fuller, utilisation is no limit
    if cause == LAUNCH_BOUND and severity != "info":
        limit = _by_occupancy(now_s, signals)
    else:
        limit = _by_utilisation(cause, now_s, busy, signals)
    if limit is not None:
        apart = fmean(epoch.apart for epoch in epochs)
        limit = replace(limit, epoch_s_at_best=now_s - (1 - apart) * limit.saves_at_most_s)
    call = signals.idle_location.call if signals is not None and signals.idle_location is not None else None
    if limit is None or call is None or signals is None or _share_in_call(cause, signals) is None:
        return limit
    at = context.signals.place_in_call(signals.gpu, call, context.signals.steady_of(training))
    return replace(limit, location=at)


def _by_occupancy(now_s: float, signals: IntervalSignals | None) -> SpeedupLimit | None:
    """Return the limit of steps that are too small for the GPU, by how much of it they fill; None where not recorded.

    What the main process does longer the more images a batch has stays.
    """
    occupancy = signals.gpu_within("sm_occupancy_pct") if signals else None
    if occupancy is None:
        return None
    stays = signals.idle_location.by_image if signals and signals.idle_location else 0.0
    basis = f"the GPU filled to {th.MOST_OCCUPANCY_PCT:.0f} %, about the most in practice"
    return _limit(LAUNCH_BOUND, now_s, now_s * max(occupancy / th.MOST_OCCUPANCY_PCT, stays), basis)


def _by_utilisation(
    cause: str, now_s: float, busy: Sequence[float], signals: IntervalSignals | None
) -> SpeedupLimit | None:
    """Return the limit of a cause by what the GPUs were busy (0 to 1 each), or without what is known to be it.

    A debugging mode makes the GPU wait between kernels; how much of its gaps it makes, nothing tells. Nor does a GPU
    that is hardly busy say how fast it could be: launching, which no reading tells, takes more than its work then.
    """
    taken = _taken_by(cause, signals)
    if taken is not None and any(busy):
        share, basis = taken
        # a rank that waits for the one in that function shows as busy: the least busy GPU has waited for none
        return _limit(cause, now_s, now_s * max(1 - share, min(busy)), basis)
    if max(busy, default=0.0) < th.LEAST_BUSY_SHARE or (signals is not None and slowed_by_mode(signals) is not None):
        return None
    return _limit(cause, now_s, now_s * max(busy), "GPU never idle")


def _taken_by(cause: str, signals: IntervalSignals | None) -> tuple[float, str] | None:
    """Return the share (0 to 1) of training time that goes with what is known to be the cause, and without what."""
    if cause == MANY_TENSORS and signals is not None:
        waited = (signals.waited_share or 0.0) if waits_for_data(signals) else 0.0
        return max(handed_over_share(signals), waited), "without handing over small tensors"
    in_call = _share_in_call(cause, signals)
    if in_call is not None:
        return in_call, "without that function"
    if signals is None or signals.garbage is None or cause != MAIN_PROCESS or garbage_collected(signals) is None:
        return None
    return signals.garbage.share, "without Python's garbage collector"


def _share_in_call(cause: str, signals: IntervalSignals | None) -> float | None:
    """Return the share (0 to 1) of training time that goes with the function of the user's that is the cause.

    It holds the next step up all the while that it lasts, also while the GPU still works on the one before; but not
    while it only waits for that, which has to be done without it, too.
    """
    if signals is None or signals.idle_location is None or cause not in CODE_CAUSES:
        return None
    only = partly_in_call(signals) is not None and slowed_by_mode(signals) is main_process_bound(signals) is None
    taken = signals.idle_location.call_of_all - signals.idle_location.call_waited
    return taken if signals.idle_location.is_in_call or only else None


def _limit(cause: str, now_s: float, best_s: float, basis: str) -> SpeedupLimit | None:
    return SpeedupLimit(cause, now_s, best_s, basis) if best_s > 0 else None


def _busy_shares(context: Context, training: Training, epochs: Sequence[JudgedEpoch]) -> list[float]:
    """Return mean utilisation (0 to 1) of each used GPU in these epochs: none can do its work in less time.

    What a GPU spins for a late one of its training, or of another node, is no work of it.
    """
    spans = as_array([span for epoch in epochs for span in epoch.spans])
    mine = [series for series in context.series if series.gpu in training.gpus]
    ahead = {gpu: share for gpu, (_, share) in context.cached(peer_waits).items()}
    means = [(series.gpu, *_mean_work_pct(context, series, spans)) for series in mine]
    return [pct / 100 * (1 - ahead.get(gpu, 0.0)) for gpu, pct, seconds in means if seconds > 0]


def _mean_work_pct(context: Context, series: GpuSeries, spans: Spans) -> tuple[float, float]:
    """Return for which share (%) of the time of its readings in some spans a GPU worked, and the seconds of these."""
    waits = [wait.span for wait in context.busy_waits if wait.gpu == series.gpu]
    if not waits:
        return series.mean_util_in(spans)
    work_pct = 100 * context.work_in_waits(series)
    work_pct = np.where(mask_in_any(series.t_s, waits), work_pct, series.util_pct.astype(float))
    there = mask_in_any(series.t_s, spans)
    weight_s = series.weight_s[there]
    seconds = float(weight_s.sum())
    return (float((weight_s * work_pct[there]).sum()) / seconds, seconds) if seconds > 0 else (0.0, 0.0)

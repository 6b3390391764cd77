"""Rule: a CPU that got slower some minutes after a training began, and stayed so: since then it waits for data.

Heat does that. Most epochs are slow then, so that none stands out and no trend shows: what came since is compared with
the minutes before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpu_report.analyse.causes import Explanation, explain_waiting
from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.epochs.changed_signals import changed, of_gpus
from gpu_report.analyse.rules.epochs.comparable_epochs import TrainedEpoch
from gpu_report.analyse.rules.epochs.data_wait import signals_beside
from gpu_report.analyse.rules.epochs.growth import lost_gpu_s, numbers_of_growth
from gpu_report.analyse.rules.epochs.slower_cpu import slower_cpu
from gpu_report.analyse.timeline.throughput import Throughput
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.intervals import Span, indices_within, length_s
from gpu_report.analyse.timeseries.trend import Trend
from gpu_report.model import Finding
from gpu_report.wording import epoch_length

SAID = frozenset({"data-wait-growing", "epochs-slowing"})  # rules that say the same of whole epochs


@dataclass(frozen=True)
class _Stretches:
    """The train phases of a training before a moment or since then, and what was done in them; `per_epoch` batches."""

    done: Throughput
    spans: Sequence[Span]
    per_epoch: float

    @cached_property
    def train_s(self) -> float | None:
        """Return what the training of an epoch takes (s) at their speed, None where no batches were counted."""
        rate = self.done.batches_per_s(self.spans) if self.done.counts_within(self.spans) else None
        return self.per_epoch / rate if rate else None

    @property
    def wait_share(self) -> float:
        """Return the share (0 to 1) of them that waited for data."""
        return self.done.data_wait_share(self.spans) or 0.0

    def as_epochs(self, number: int) -> list[TrainedEpoch]:
        """Return each as if it were an epoch at their speed."""
        train_s = self.train_s or 0.0
        shares = [self.done.data_wait_share([span]) or 0.0 for span in self.spans]
        return [
            TrainedEpoch((0, 0, False), number, span, train_s, share * train_s, alike=True, from_callbacks=True)
            for span, share in zip(self.spans, shares, strict=True)
        ]


def waits_since_slower_cpu(context: Context, told: Sequence[Finding]) -> list[Finding]:
    """Report trainings that wait for data since their CPU got slower, where what is `told` of epochs says no such."""
    if context.throughput is None or any(each.rule in SAID for each in told):
        return []
    found = (_of_training(context, context.throughput, training) for training in context.trainings)
    return [finding for finding in found if finding is not None]


def _of_training(context: Context, done: Throughput, training: Training) -> Finding | None:
    per_epoch, spans = training.quantity("batches"), training.train_spans
    if per_epoch is None or not spans:
        return None
    seen = _clipped(spans, done.warm_at_s(spans[0]), context.run.duration_s)
    at_s = _slower_since(context, seen)
    if at_s is None:
        return None
    before = _Stretches(done, _clipped(seen, seen[0][0], at_s), per_epoch)
    since = _Stretches(done, _clipped(seen, at_s, seen[-1][1]), per_epoch)
    more = since.wait_share - before.wait_share
    if before.train_s is None or since.train_s is None or more < th.WAIT_GROWS_SHARE:
        return None
    epochs = training.epochs.all if training.epochs else ()
    number = next((each.epoch for each in reversed(epochs) if each.epoch and each.start_s <= at_s), 1)
    return _finding(context, before, since, number)


def _clipped(spans: Sequence[Span], start_s: float, end_s: float) -> list[Span]:
    """Return what of some spans lies between two moments."""
    cut = ((max(start, start_s), min(end, end_s)) for start, end in spans)
    return [(start, end) for start, end in cut if end > start]


def _slower_since(context: Context, spans: Sequence[Span]) -> float | None:
    """Return since when (s) the CPU's clock is lower than it was in the first minutes of spans, up to their end.

    None where it is not, or was not most of the time before. It goes by medians of CLOCK_WINDOW_S.
    """
    host = context.run.host
    if "cpu_clock_mhz" not in host or not spans:
        return None
    rows = indices_within(host["t_s"].to_numpy(dtype=float), list(spans), "right")
    t_s, mhz = (host[name].to_numpy(dtype=float)[rows] for name in ("t_s", "cpu_clock_mhz"))
    t_s, mhz = t_s[np.isfinite(mhz)], mhz[np.isfinite(mhz)]
    starts = np.unique((t_s // th.CLOCK_WINDOW_S).astype(int), return_index=True)[1]
    if len(starts) < th.CLOCK_WINDOWS_BEFORE + th.CLOCK_WINDOWS_SINCE:
        return None
    windows = np.array([np.median(part) for part in np.split(mhz, starts[1:])])
    usual = np.median(windows[: th.CLOCK_WINDOWS_BEFORE])
    high = windows > (1 - th.SLOWER_CLOCK_SHARE) * usual
    since = int(np.flatnonzero(high)[-1]) + 1
    lasts = len(windows) - since >= th.CLOCK_WINDOWS_SINCE and high[:since].mean() >= th.CLOCK_HELD_SHARE
    return float(t_s[starts[since]]) if lasts else None


def _finding(context: Context, before: _Stretches, since: _Stretches, number: int) -> Finding | None:
    usual, slow = before.as_epochs(1), since.as_epochs(number)
    why = _why(context, usual, slow)
    grown = Trend(
        before.wait_share * (before.train_s or 0.0),
        since.wait_share * (since.train_s or 0.0),
        len(usual) + len(slow),
        is_gradual=False,
        step=len(usual),
    )
    lost_s = _lost_share(context, before, since, usual, slow) * length_s(since.spans)
    if why is None or grown.grown < th.WAIT_GROWS_S or lost_s < th.WAIT_COSTS_S:
        return None
    return context.finding(
        "data-wait-growing",
        "warning",
        (slow[0].span[0], slow[-1].span[1]),
        f"Waiting for data rose from {epoch_length(grown.first)} to {epoch_length(grown.last)} an epoch, from epoch "
        f"{number} on: {why.cause.explanation}",
        evidence=(
            *numbers_of_growth(grown, "waiting for data per epoch", lost_s),
            *changed(context, usual, slow, ("at first", "at last"), reference="before of next"),
            *why.evidence,
        ),
        cause=why.cause,
        advice=why.advice,
        epoch=None,
        phase=None,
        lost_gpu_s=lost_gpu_s(context, slow, lost_s),
    )


def _why(context: Context, usual: Sequence[TrainedEpoch], slow: Sequence[TrainedEpoch]) -> Explanation | None:
    """Return that the CPU is slower, by what a stretch of usual wait shows; None where that is not so."""
    middle = sorted(slow, key=lambda each: each.data_wait_s or 0.0)[len(slow) // 2]
    beside = signals_beside(context, middle, usual)
    found = None if beside is None else explain_waiting(beside)
    return None if found is None else slower_cpu(context, found, usual, slow)


def _lost_share(
    context: Context,
    before: _Stretches,
    since: _Stretches,
    usual: Sequence[TrainedEpoch],
    slow: Sequence[TrainedEpoch],
) -> float:
    """Return the share (0 to 1) of the time since then that is lost: of its speed, for the main process is slower, too.

    Of the waits alone where the GPU's clock fell as well, which makes steps longer by itself.
    """
    clocks = (of_gpus("sm_clock_mhz")(context, each) for each in (usual, slow))
    first, last = clocks
    waits = since.wait_share - before.wait_share
    if first is not None and last is not None and last < (1 - th.GPU_CLOCK_FELL_SHARE) * first:
        return waits
    return max(1 - (before.train_s or 0.0) / (since.train_s or 1.0), waits)

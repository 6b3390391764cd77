"""Rule: steps that take longer and longer, by the batches that callbacks counted: within epochs too few for a trend."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.epochs.changed_signals import changed
from gpu_report.analyse.rules.epochs.comparable_epochs import KnownSlowdowns, TrainedEpoch
from gpu_report.analyse.rules.epochs.gpu_advice import LostTime, advice_on_gpu
from gpu_report.analyse.rules.epochs.growth import (
    lost_gpu_s,
    numbers_of_growth,
    risen_since,
    thirds,
)
from gpu_report.analyse.rules.epochs.slow_epochs import where_to_look
from gpu_report.analyse.signals.code.stack_profile import OwnFunction
from gpu_report.analyse.timeline.throughput import Throughput
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.intervals import Indices, Span
from gpu_report.analyse.timeseries.trend import Trend, mann_kendall_rise
from gpu_report.catalogue import GROWN_FROM_KEY, GROWN_TO_KEY
from gpu_report.model import Advice, CodeLocation, Evidence, Finding
from gpu_report.wording import place_words, step_words

SAID = frozenset({"epochs-slowing", "data-wait-growing"})  # rules that say the same of whole epochs


# What may be registered again at each batch: whose it is, and what to do instead.
REGISTERED = {
    "hooks": ("the model's hooks", "Register each hook once, or remove it (`handle.remove()`)"),
    "callbacks": ("the trainer's callbacks", "Call `add_callback` once, not at each batch"),
}


@dataclass(frozen=True)
class _Registered:
    """Hooks or callbacks of which one more was registered at most batches: how many there were first and last."""

    kind: str
    first: int
    last: int

    @property
    def words(self) -> str:
        """Return how they grew."""
        return f"{REGISTERED[self.kind][0]} grew from {self.first:,} to {self.last:,}"

    @property
    def do(self) -> str:
        """Return what to do."""
        return REGISTERED[self.kind][1]

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Return how many there were."""
        name = REGISTERED[self.kind][0]
        return Evidence(f"{name}, first", self.first, ""), Evidence(f"{name}, last", self.last, "")


@dataclass(frozen=True)
class _Steps:
    """A training in parts, as if each were an epoch at that speed; `batches` are in each, `per_epoch` in an epoch."""

    training: Training
    parts: Sequence[TrainedEpoch]
    batches: Sequence[float]
    per_epoch: float

    @property
    def lost_s(self) -> float:
        """Return what its steps took longer than in the first third, in all."""
        first = self.grown.first if self.grown else 0.0
        pairs = zip(self.parts, self.batches, strict=True)
        return sum((part.train_s - first) * batches / self.per_epoch for part, batches in pairs)

    @property
    def grown(self) -> Trend | None:
        """Return how what an epoch would take rose, None where it did not go on rising."""
        found = mann_kendall_rise([part.train_s for part in self.parts])
        is_growth = found is not None and found.is_gradual and found.step is None
        return found if found is not None and is_growth and found.grown >= th.SLOWING_SHARE * found.first else None


def slowing_steps(
    context: Context, held_up: KnownSlowdowns, found: Sequence[Finding], told: Sequence[Finding]
) -> list[Finding]:
    """Report trainings whose steps take longer and longer, though their epochs are too few to say so.

    `told` are findings about whole epochs; of what was `found` a function of the user's that grows says as much.
    """
    is_said = any(each.rule in SAID for each in told) or any(each.number(GROWN_FROM_KEY) for each in found)
    if context.throughput is None or is_said:
        return []
    until_s = context.run.duration_s  # later nobody saw what slowed them, such as another process on the GPU
    cut = (_in_parts(context.throughput, training, held_up, until_s) for training in context.trainings)
    return [
        _finding(context, steps, grown)
        for steps in cut
        if steps is not None and (grown := steps.grown) is not None and steps.lost_s >= th.SLOW_AT_LEAST_S
    ]


def _in_parts(done: Throughput, training: Training, held_up: KnownSlowdowns, until_s: float) -> _Steps | None:
    """Return a training up to a moment in STEP_PARTS parts of about as many batches; None of too few undisturbed."""
    per_epoch = training.quantity("batches")
    edges = _edges(done, training, until_s)
    if per_epoch is None or len(edges) <= th.STEP_PARTS_LEAST:
        return None
    batches, own_s = np.diff(done.batches[edges]), np.diff((done.trained_s - done.waited_s)[edges])
    waits_s, at_s = np.diff(done.waited_s[edges]), done.t_s[edges].tolist()
    spans: list[Span] = list(pairwise(at_s))
    lost_s = held_up.others.seconds_in_each(spans)
    kept = np.flatnonzero(lost_s < th.DISTURBED_SHARE * own_s)
    if len(kept) < th.STEP_PARTS_LEAST:
        return None
    of_epoch = per_epoch / batches
    parts = [
        TrainedEpoch((0, 0, False), _epoch_at(training, spans[at][0]), spans[at], own_s[at] * of_epoch[at],
                     waits_s[at] * of_epoch[at], alike=True, from_callbacks=True)
        for at in kept
    ]  # fmt: skip
    return _Steps(training, parts, batches[kept].tolist(), per_epoch)


def _edges(done: Throughput, training: Training, until_s: float) -> Indices:
    """Return the reports between which parts of a training lie, once its first batches are over."""
    spans = training.train_spans
    if not spans:
        return np.zeros(0, dtype=np.int64)
    inside = (done.t_s >= done.warm_at_s(spans[0])) & (done.t_s <= min(training.span[1], until_s))
    at = np.flatnonzero(inside & (np.diff(done.batches, prepend=-1.0) > 0))
    if not len(at):
        return at
    wanted = np.linspace(done.batches[at[0]], done.batches[at[-1]], min(th.STEP_PARTS, len(at) - 1) + 1)
    nearest = np.abs(done.batches[at][None, :] - wanted[:, None]).argmin(axis=1)
    found: Indices = at[np.unique(nearest)]
    return found


def _epoch_at(training: Training, t_s: float) -> int:
    epochs = training.epochs.all if training.epochs else ()
    return next((each.epoch for each in reversed(epochs) if each.epoch and each.start_s <= t_s), 1)


def _finding(context: Context, steps: _Steps, grown: Trend) -> Finding:
    first, last = thirds(steps.parts)
    own, more = _grown_function(context, steps, grown), _registered(steps)
    since = risen_since(steps.parts, [part.train_s for part in steps.parts], grown)
    from_s, to_s = (step_words(pace_s / steps.per_epoch) for pace_s in (grown.first, grown.last))
    return context.finding(
        "epochs-slowing",
        "warning",
        (since.span[0], steps.parts[-1].span[1]),
        f"Each step took longer than the ones before: from {from_s} to {to_s} over {sum(steps.batches):,.0f} steps"
        f"{f', as {more.words}' if more else ''}",
        evidence=(
            *numbers_of_growth(grown, "training of an epoch", steps.lost_s),
            *(() if own is None else _of_function(own)),
            *(() if more is None else more.evidence),
            *changed(context, first, last, ("at first", "at last"), reference="first of next"),
        ),
        advice=(_advice(context, steps, grown, own, more),),
        epoch=None,
        phase=None,
        lost_gpu_s=lost_gpu_s(context, steps.parts, steps.lost_s),
        where=() if own is None else (CodeLocation.in_main(own[1].line, own[1].share),),
    )


def _registered(steps: _Steps) -> _Registered | None:
    """Return of what one more was registered at REGISTERED_EACH of the batches or more; None where nothing was."""
    group, (start_s, end_s) = steps.training.rank_group, (steps.parts[0].span[0], steps.parts[-1].span[1])
    told = [each for each in (group.main.progress if group else ()) if start_s <= each.t_s <= end_s]
    for kind in REGISTERED:
        known = [count for each in told if (count := getattr(each, kind)) is not None]
        if known and known[-1] - known[0] >= th.REGISTERED_EACH * sum(steps.batches):
            return _Registered(kind, known[0], known[-1])
    return None


def _advice(
    context: Context,
    steps: _Steps,
    grown: Trend,
    own: tuple[float, OwnFunction, float] | None,
    more: _Registered | None,
) -> Advice:
    first, last = thirds(steps.parts)
    if own is not None:
        first_s, now, last_s = own
        short = f"Look at {place_words(now.line)}"
        took = f"it took {step_words(first_s)} a step at first, {step_words(last_s)} at last"
        why = f"{more.do}: {more.words}" if more else "How often it is called, or what it goes through, grows"
        return Advice(f"{short}: {took}. {why}", short=short)
    if more is not None:
        return Advice(f"{more.do}: {more.words}", short=more.do)
    on_gpu = advice_on_gpu(context, first, last, grown.first / grown.last, LostTime(steps.parts, steps.lost_s))
    short = where_to_look(context, steps.parts, grown)
    why = "a list that is kept, hooks that are added again, memory that is not given back"
    return on_gpu or Advice(f"{short}: {why}", short=short)


def _of_function(own: tuple[float, OwnFunction, float]) -> tuple[Evidence, ...]:
    first_s, _, last_s = own
    at_first = Evidence("in the function, a batch at first", first_s, "s", key=GROWN_FROM_KEY)
    return at_first, Evidence("in the function, a batch in the end", last_s, "s", key=GROWN_TO_KEY)


def _grown_function(context: Context, steps: _Steps, grown: Trend) -> tuple[float, OwnFunction, float] | None:
    """Return the user's function that made GROWN_IN_ONE_SHARE of the rise: its seconds a step before, it, and after."""
    third, gpu = len(steps.parts) // 3, min(steps.training.gpus, default=None)
    spans = [[part.span for part in part_of] for part_of in thirds(steps.parts)]
    counts = sum(steps.batches[:third]), sum(steps.batches[-third:])
    before, after = (context.signals.own_functions(gpu, each) for each in spans)
    pairs = [
        (before[function].seconds / counts[0] if function in before else 0.0, own, own.seconds / counts[1])
        for function, own in after.items()
    ]
    most = max(pairs, key=lambda each: each[2] - each[0], default=None)
    is_most = most is not None and most[2] - most[0] >= th.GROWN_IN_ONE_SHARE * grown.grown / steps.per_epoch
    return most if is_most else None

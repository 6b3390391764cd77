"""Rule: the memory of a training grows over its epochs, and when the card would be full at this rate."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from gpu_report.analyse.causes.confidence import LIKELY, POSSIBLE, SUPPORTED
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.signals.gpu.allocated_growth import AllocatedGrowth, allocated_growth, tensors_grew_mib
from gpu_report.analyse.signals.gpu.gpu_memory import GpuMemory
from gpu_report.analyse.signals.gpu.memory_growth import MemoryGrowth, MemoryStep, find_growth, mosaic_step
from gpu_report.analyse.timeline.training_epochs import TrainingEpochs
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.gpu_words import gpu_words
from gpu_report.model import GPUS, Advice, Cause, Evidence, Finding, Frame, InsideRun, MemoryHolder
from gpu_report.wording import gib, memory_words, place_words

RULE = "memory-growth"
WHY = "memory is taken and not released (tensors in a list, losses summed with their autograd graph, a growing cache)"
RESERVE = "tensors took little of it: PyTorch keeps what its largest batch needed, or another library took it"
SIZES = "`multi_scale` gives batches larger images now and then, and PyTorch keeps the memory that these needed"
MOSAIC = "YOLO closes its mosaic for the last epochs and restarts its data loader: one step, no growth"


@dataclass(frozen=True, eq=False)
class _Case:
    """One training on one GPU, and when it trained."""

    context: Context
    memory: GpuMemory
    training: Training
    epochs: TrainingEpochs

    @property
    def mosaic_closes_s(self) -> float | None:
        """Return when the first epoch without mosaic began, None where there was none or it was the first of all."""
        closes = self.training.mosaic_closes
        return next((epoch.start_s for epoch in self.epochs.all[1:] if closes and epoch.epoch == closes), None)

    @property
    def epochs_left(self) -> int | None:
        """Return how many epochs were still to come when the training ended, None where that is not known."""
        asked, last = self.training.args.get("epochs"), self.epochs.all[-1].epoch
        return max(asked - last, 0) if isinstance(asked, int) and last is not None else None

    @property
    def goes_on(self) -> bool:
        """Tell whether the training still went on when the recording ended: of one that is over no time is foretold."""
        run, group = self.context.run, self.training.rank_group
        is_last = self.training is self.context.trainings[-1]
        over = bool(run.command_ends) or run.recording.ended_by is None
        return is_last and not over and group is not None and group.main.ended is None

    def lowered_batch(self, growth: MemoryGrowth) -> tuple[int, int] | None:
        """Return the batch asked for and the smaller one that YOLO went on with when memory ran out, None without."""
        lost = self.training.begun_again
        return self.training.lowered_batch if lost is not None and growth.start_s < lost[1] else None

    @property
    def ranks(self) -> Sequence[InsideRun]:
        """Return the processes of the training that reported from this GPU, or may have."""
        uuid = self.context.run.gpu(self.memory.gpu).uuid
        ranks = self.training.rank_group.ranks if self.training.rank_group else ()
        return [rank for rank in ranks if uuid is None or rank.settings.get("gpu_uuid") in {None, uuid}]

    def is_reserve(self, growth: MemoryGrowth) -> bool:
        """Tell whether it is PyTorch's allocator that took more, and no tensors that are kept.

        PyTorch counts what tensors have. Growth that does not end may be of another library, unless images vary in
        size: then the largest batch so far may come late. Without a count these explain what came to an end.
        """
        if _ran_out(self, growth) or self.holder is not None:
            return False
        varies, span = self.training.image_sizes > 1, (growth.start_s, growth.end_s)
        counts = [tensors_grew_mib(rank.progress, span) for rank in self.ranks]
        grew_mib = max((each for each in counts if each is not None), default=None)
        if grew_mib is None:
            return varies and not growth.goes_on
        is_kept = grew_mib >= th.KEPT_SHARE * (growth.after_mib - growth.before_mib)
        return not is_kept and (varies or not growth.goes_on)

    @property
    def holder(self) -> MemoryHolder | None:
        """Return what the last look of the process on this GPU found to hold what came; None where it found nothing."""
        found = [each for rank in self.ranks for each in rank.memory_holders if _holds_most(each)]
        return max(found, key=lambda each: each.t_s, default=None)

    @property
    def filled_by(self) -> MemoryHolder | None:
        """Return what had taken much of the training's memory when CUDA ran out of it; None where that is not known.

        An epoch or two are too short to see memory grow by its readings: that it holds so much, and still got more
        between two looks, says as much.
        """
        if not self.training.ran_out_of_gpu_memory or (holder := self.holder) is None:
            return None
        own_mib = self.memory.own_mib[self.memory.between(self.epochs.start_s, self.epochs.end_s)]
        most_mib = float(np.nan_to_num(own_mib).max(initial=0.0))
        is_much = most_mib > 0 and holder.mib >= th.KEPT_SHARE * most_mib
        return holder if is_much or _keeps_graphs(holder) else None

    @property
    def allocated(self) -> AllocatedGrowth | None:
        """Return how tensors took ever more of this GPU until CUDA ran out of it, None where that is not known."""
        culprit = self.training.rank_group.crashed if self.training.rank_group else None
        if culprit is None or not self.training.ran_out_of_gpu_memory:
            return None
        gpu, found = self.context.run.gpu_of_uuid(culprit.settings.get("gpu_uuid")), allocated_growth(culprit.progress)
        is_much = found is not None and found.grown_mib >= th.KEPT_SHARE * found.last_mib
        return found if is_much and gpu in {None, self.memory.gpu} else None

    def batches_until(self, t_s: float) -> int | None:
        """Return how many batches had been begun by then, None where callbacks did not count them."""
        main = self.training.rank_group.main if self.training.rank_group else None
        done = sum(epoch.batches for epoch in main.epochs if epoch.start_t_s <= t_s) if main else 0
        return done + 1 if done else None

    def whose(self, gpus: str = "") -> str:
        """Return whose memory it is, in words; with their names on each of several GPUs."""
        whose = "Memory" if self.memory.others_mib is None else "The training's memory"
        return f"{whose} on {f'each of {gpus}' if gpus else gpu_words(self.memory.gpu)}"


def growing_memory(context: Context) -> list[Finding]:
    """Report where memory grew over epochs, and the step where the mosaic closed, on each GPU that was used."""
    memories = {series.gpu: context.gpu_memory(series) for series in context.series}
    cases = [
        _Case(context, memories[gpu], training, training.epochs)
        for training in context.trainings
        if training.epochs is not None
        for gpu in sorted(training.gpus)
    ]
    found: list[Finding] = []
    for case in cases:
        closes_s = case.mosaic_closes_s
        if (growth := find_growth(case.memory, case.epochs, closes_s)) is not None:
            found.append(_reserve_finding(case, growth) if case.is_reserve(growth) else _finding(case, growth))
        elif (filled := _filled(case)) is not None:
            found.append(filled)
        if closes_s is not None and (step := mosaic_step(case.memory, case.epochs, closes_s)) is not None:
            found.append(_mosaic_finding(case, step))
    return found


def _holds_most(holder: MemoryHolder) -> bool:
    """Tell whether what was named explains the growth: by its bytes, or as many tensors whose graphs are kept."""
    by_bytes = holder.grown_mib is None or holder.new_mib >= th.KEPT_SHARE * holder.grown_mib
    return by_bytes or 2 * holder.with_graph >= max(holder.tensors, 1)


def _finding(case: _Case, growth: MemoryGrowth) -> Finding:
    certain = case.memory.others_mib is not None
    holder = case.holder
    return case.context.finding(
        RULE,
        "critical" if _ran_out(case, growth) or _runs_out(case, growth) else "warning",
        (growth.start_s, growth.end_s),
        _summary(case, growth, case.whose()),
        gpu=case.memory.gpu,
        of_gpus=_summary(case, growth, case.whose(GPUS)),
        evidence=_evidence(case, growth),
        cause=Cause(
            RULE,
            SUPPORTED if certain else POSSIBLE,
            WHY if certain else f"{WHY}; which process took it was not recorded",
        ),
        advice=() if holder is None else (_release(holder),),
        ran_out=growth.goes_on and case.training.ran_out_of_gpu_memory,
    )


def _filled(case: _Case) -> Finding | None:
    """Return the finding of a training that ran out of memory too soon for its readings to show that it grew."""
    holder, grown = case.filled_by, case.allocated
    if holder is None and grown is None:
        return None
    end_s = case.epochs.end_s if holder is None else max(holder.t_s, case.epochs.start_s)
    batches = case.batches_until(end_s)
    each_mib = grown.each_mib if grown else _each_mib(holder, batches)
    rate = "" if each_mib is None else f"{memory_words(each_mib)} a batch"
    return case.context.finding(
        RULE,
        "critical",
        (case.epochs.start_s, end_s),
        f"{_taken(case, holder, grown, rate)}, until memory ran out",
        gpu=case.memory.gpu,
        epoch=None,
        phase=None,
        evidence=evidence(
            *_evidence_of_holder(holder),
            ("batches trained by then", batches, ""),
            ("growth for each batch", each_mib, "MiB"),
            ("growth by PyTorch's counter, in all", gib(grown.grown_mib if grown else None), "GiB"),
            ("capacity of the GPU", gib(case.memory.capacity_mib), "GiB"),
        ),
        cause=Cause(RULE, SUPPORTED, WHY),
        advice=() if holder is None else (_release(holder),),
        ran_out=True,
    )


def _each_mib(holder: MemoryHolder | None, batches: int | None) -> float | None:
    """Return what an object took for each batch, None where graphs took it, or nobody counted batches."""
    return None if holder is None or not batches or _keeps_graphs(holder) else holder.mib / batches


def _taken(case: _Case, holder: MemoryHolder | None, grown: AllocatedGrowth | None, rate: str) -> str:
    if holder is not None:
        held = f"{holder.tensors:,} tensors" if _keeps_graphs(holder) else memory_words(holder.mib)
        return f"`{_name(holder)}` kept {held}{f' ({rate})' if rate else ''} on {gpu_words(case.memory.gpu)}"
    return f"{case.whose()} grew by {rate} ({memory_words(grown.grown_mib if grown else 0.0)} in all)"


def _release(holder: MemoryHolder) -> Advice:
    """Return what to do about what holds tensors, with the line that adds to it where that is known."""
    name = f"`{_name(holder)}`{_at(holder)}"
    if _keeps_graphs(holder) and holder.mib > th.LARGEST_LOSS_MIB * holder.tensors:
        kept = f"it keeps {holder.tensors:,} tensors with their autograd graphs"
        return Advice(
            f"Keep `tensor.detach()` in {name}, or clear it: {kept}.", short=f"Keep `tensor.detach()` in {name}: {kept}"
        )
    if _keeps_graphs(holder):
        kept = f"it keeps {holder.tensors:,} losses with their autograd graphs"
        kept = "it adds losses up with their autograd graphs" if holder.tensors == 1 else kept
        add = f"Add `loss.item()` to {name}"
        return Advice(f"{add}, or `loss.detach()`: {kept}.", short=f"{add}: {kept}")
    kept = f"it keeps {memory_words(holder.mib)} of tensors"
    return Advice(
        f"Clear {name}, or keep copies in host memory (`.cpu()`): {kept}.",
        short=f"Clear {name}: {kept}",
    )


def _keeps_graphs(holder: MemoryHolder) -> bool:
    return 2 * holder.with_graph > holder.tensors


def _name(holder: MemoryHolder) -> str:
    return holder.name.replace("`", "'")


def _at(holder: MemoryHolder) -> str:
    """Return the line that adds to it, to follow its name; empty where that is not known."""
    known = holder.line and holder.function
    return f", filled in {place_words(Frame(holder.file, holder.line, holder.function))}" if known else ""


def _ran_out(case: _Case, growth: MemoryGrowth) -> str:
    """Return in words that memory grew until there was no more, empty where it did not."""
    capacity = case.memory.capacity_mib
    if growth.goes_on and case.training.ran_out_of_gpu_memory:
        is_limited = capacity and growth.free_mib is not None and growth.free_mib >= th.ALLOWED_FREE * capacity
        return "until memory ran out" if is_limited else "until none was left"
    if lowered := case.lowered_batch(growth):
        return f"until YOLO lowered `batch` from {lowered[0]} to {lowered[1]}"
    full = capacity and growth.free_mib is not None and growth.free_mib <= (1 - th.FULL_SHARE) * capacity
    return "until the card was full" if full else ""


def _runs_out(case: _Case, growth: MemoryGrowth) -> bool:
    """Tell whether the card would be full within the epochs that were still to come."""
    seconds, epoch_s, epochs = growth.seconds_left, case.epochs.epoch_s, case.epochs_left
    return seconds is not None and epoch_s is not None and bool(epochs) and seconds <= (epochs or 0) * epoch_s


def _summary(case: _Case, growth: MemoryGrowth, whose: str) -> str:
    rate = _rate(growth, case.epochs.epoch_s)
    held = "" if case.holder is None else f" in `{_name(case.holder)}`"
    grown = f"{whose} grew by {rate}{held} ({memory_words(growth.after_mib - growth.before_mib)} in all)"
    if ended := _ran_out(case, growth):
        return f"{grown}, {ended}"
    left = growth.seconds_left
    if left is None:
        return grown if growth.goes_on else f"{grown}, then stopped"
    grown = f"{whose} grew {rate}{held}"
    at = f" ({_clock(case.context.run.start_wall_s, growth.end_s + left)})" if case.goes_on else ""
    return f"{grown}: full {_in_time(left, case.epochs.epoch_s)}{at}"


def _rate(growth: MemoryGrowth, epoch_s: float | None) -> str:
    mib, unit = (growth.rate_mib_s * epoch_s, "an epoch") if epoch_s else (growth.rate_mib_s * 60, "a minute")
    return f"{memory_words(mib)} {unit}"


def _in_time(seconds: float, epoch_s: float | None) -> str:
    if epoch_s:
        return f"after about {max(seconds / epoch_s, 1):,.0f} more epochs"
    return f"{max(seconds / 60, 1):,.0f} min later"


def _clock(start_wall_s: float, t_s: float) -> str:
    """Return a moment as a time of day in UTC, with its date where it is not the day on which the run began."""
    try:
        began, then = (datetime.fromtimestamp(wall_s, UTC) for wall_s in (start_wall_s, start_wall_s + t_s))
    except (OverflowError, OSError, ValueError):
        return "beyond the calendar"
    return f"at {then:%H:%M} UTC" if then.date() == began.date() else f"{then:%Y-%m-%d %H:%M} UTC"


def _evidence(case: _Case, growth: MemoryGrowth) -> tuple[Evidence, ...]:
    seconds, epoch_s, others = growth.seconds_left, case.epochs.epoch_s, case.memory.others_mib
    rows = case.memory.between(growth.start_s, growth.end_s)
    apart = 0.0 if others is None else float(np.nan_to_num(others[rows]).max(initial=0.0))
    return evidence(
        ("memory before it (peak in training)", gib(growth.before_mib), "GiB"),
        ("memory after it", gib(growth.after_mib), "GiB"),
        ("growth per epoch (median slope)", gib(growth.rate_mib_s * epoch_s) if epoch_s else None, "GiB"),
        ("growth per minute", None if epoch_s else gib(growth.rate_mib_s * 60), "GiB"),
        ("capacity of the GPU", gib(case.memory.capacity_mib), "GiB"),
        ("held by other processes, at most (not counted)", gib(apart) if apart else None, "GiB"),
        ("epochs until it is full at this rate", seconds / epoch_s if seconds is not None and epoch_s else None, ""),
        ("epochs left", case.epochs_left, ""),
        *_evidence_of_holder(case.holder),
    )


def _evidence_of_holder(holder: MemoryHolder | None) -> Iterator[tuple[str, float | None, str]]:
    """Yield what was seen of what holds the tensors, at the last look."""
    if holder is not None:
        yield "tensors that it holds (last reading)", holder.tensors, ""
        yield "memory of these tensors", gib(holder.mib), "GiB"
        yield "of it new since the first reading", gib(holder.new_mib), "GiB"
        yield "tensors with an autograd graph", holder.with_graph, ""
        yield "growth since the reading before, by PyTorch's counter", gib(holder.grown_mib), "GiB"


def _reserve_finding(case: _Case, growth: MemoryGrowth) -> Finding:
    varies = case.training.image_sizes > 1
    keeps = "PyTorch keeps for its largest batches" if varies else "PyTorch or another library keeps: few are tensors"
    grown = f"rose by {memory_words(growth.after_mib - growth.before_mib)}, which {keeps}"
    return case.context.finding(
        RULE,
        "info",
        (growth.start_s, growth.end_s),
        f"{case.whose()} {grown}",
        gpu=case.memory.gpu,
        of_gpus=f"{case.whose(GPUS)} {grown}",
        expected=True,
        evidence=_evidence(case, growth),
        cause=Cause(RULE, LIKELY, SIZES if varies else RESERVE),
    )


def _mosaic_finding(case: _Case, step: MemoryStep) -> Finding:
    return case.context.finding(
        RULE,
        "info",
        (step.t_s, step.t_s),
        f"{case.whose()} rose by {memory_words(step.mib)} when the mosaic closed, and stayed there",
        gpu=case.memory.gpu,
        expected=True,
        evidence=evidence(("step", gib(step.mib), "GiB")),
        cause=Cause(RULE, LIKELY, MOSAIC),
    )

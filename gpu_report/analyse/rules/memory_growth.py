"""Rule: the memory of a training grows over its epochs, and when the card would be full at this rate."""

from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from gpu_report.analyse.causes.confidence import LIKELY, POSSIBLE, SUPPORTED
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.signals.gpu_memory import GpuMemory
from gpu_report.analyse.signals.memory_growth import Growth, Step, find_growth, mosaic_step
from gpu_report.analyse.timeline.exception_kinds import exception_kind
from gpu_report.analyse.timeline.training_epochs import TrainingEpochs
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.model import Cause, Evidence, Finding
from gpu_report.wording import gib, memory_words

RULE = "memory-growth"
WHY = "memory is taken and not released (tensors kept in a list, losses summed with their graph, a growing cache)"
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
        over = any(event.kind == "command_ended" for event in run.events) or run.recording.ended_by is None
        return is_last and not over and group is not None and group.main.ended is None

    @property
    def out_of_memory(self) -> bool:
        """Tell whether an exception ended the training that says that CUDA was out of memory."""
        culprit = self.training.rank_group.crashed if self.training.rank_group else None
        return culprit is not None and exception_kind(culprit) == "gpu memory"

    @property
    def whose(self) -> str:
        """Return whose memory it is, in words."""
        known = self.memory.others_mib is not None
        return f"The training's memory on GPU {self.memory.gpu}" if known else f"Memory on GPU {self.memory.gpu}"


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
            found.append(_finding(case, growth))
        if closes_s is not None and (step := mosaic_step(case.memory, case.epochs, closes_s)) is not None:
            found.append(_mosaic_finding(case, step))
    return found


def _finding(case: _Case, growth: Growth) -> Finding:
    certain = case.memory.others_mib is not None
    return case.context.finding(
        RULE,
        "critical" if _ran_out(case, growth) or _runs_out(case, growth) else "warning",
        (growth.start_s, growth.end_s),
        _summary(case, growth),
        gpu=case.memory.gpu,
        evidence=_evidence(case, growth),
        cause=Cause(
            RULE,
            SUPPORTED if certain else POSSIBLE,
            WHY if certain else f"{WHY}; which process took it was not recorded",
        ),
        ran_out=growth.goes_on and case.out_of_memory,
    )


def _ran_out(case: _Case, growth: Growth) -> str:
    """Return in words that memory grew until there was no more, empty where it did not."""
    if growth.goes_on and case.out_of_memory:
        return "until none was left"
    capacity = case.memory.capacity_mib
    full = capacity and growth.free_mib is not None and growth.free_mib <= (1 - th.FULL_SHARE) * capacity
    return "until the card was full" if full else ""


def _runs_out(case: _Case, growth: Growth) -> bool:
    """Tell whether the card would be full within the epochs that were still to come."""
    seconds, epoch_s, epochs = growth.seconds_left, case.epochs.epoch_s, case.epochs_left
    return seconds is not None and epoch_s is not None and bool(epochs) and seconds <= (epochs or 0) * epoch_s


def _summary(case: _Case, growth: Growth) -> str:
    rate = _rate(growth, case.epochs.epoch_s)
    grown = f"{case.whose} grew by {rate} ({memory_words(growth.after_mib - growth.before_mib)} in all)"
    if ended := _ran_out(case, growth):
        return f"{grown}, {ended}"
    left = growth.seconds_left
    if left is None:
        return grown if growth.goes_on else f"{grown}, then stopped"
    grown = f"{case.whose} grew {rate}"
    at = f", {_clock(case.context.run.start_wall_s, growth.end_s + left)}" if case.goes_on else ""
    return f"{grown}: full {_in_time(left, case.epochs.epoch_s)}{at}"


def _rate(growth: Growth, epoch_s: float | None) -> str:
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
    return f"at {then:%H:%M} UTC" if then.date() == began.date() else f"on {then:%Y-%m-%d at %H:%M} UTC"


def _evidence(case: _Case, growth: Growth) -> tuple[Evidence, ...]:
    seconds, epoch_s, others = growth.seconds_left, case.epochs.epoch_s, case.memory.others_mib
    rows = case.memory.between(growth.start_s, growth.end_s)
    apart = 0.0 if others is None else float(np.nan_to_num(others[rows]).max(initial=0.0))
    return evidence(
        ("memory before it (peak in training)", gib(growth.before_mib), "GiB"),
        ("memory after it", gib(growth.after_mib), "GiB"),
        ("growth an epoch (median slope)", gib(growth.rate_mib_s * epoch_s) if epoch_s else None, "GiB"),
        ("growth a minute", gib(growth.rate_mib_s * 60), "GiB"),
        ("capacity of the GPU", gib(case.memory.capacity_mib), "GiB"),
        ("held by other processes, at most (not counted)", gib(apart) if apart else None, "GiB"),
        ("epochs until it is full at this rate", seconds / epoch_s if seconds is not None and epoch_s else None, ""),
        ("epochs left", case.epochs_left, ""),
    )


def _mosaic_finding(case: _Case, step: Step) -> Finding:
    return case.context.finding(
        RULE,
        "info",
        (step.t_s, step.t_s),
        f"{case.whose} rose by {memory_words(step.mib)} when the mosaic closed, and stayed there",
        gpu=case.memory.gpu,
        expected=True,
        evidence=evidence(("step", gib(step.mib), "GiB")),
        cause=Cause(RULE, LIKELY, MOSAIC),
    )

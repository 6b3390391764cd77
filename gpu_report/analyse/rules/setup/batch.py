"""Set-up at odds: a batch that did not fit the GPU's memory, so that YOLO trains with a smaller one."""

from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.setup.check import SetupIssue
from gpu_report.analyse.signals.other_processes import OtherProcess
from gpu_report.analyse.timeline.trainings import Training, whole
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.model import Advice
from gpu_report.wording import gib, memory_words


def batch_too_large(context: Context, training: Training) -> SetupIssue | None:
    """Find a first epoch that was begun again with a smaller batch.

    In its first epoch, on one GPU, ultralytics answers CUDA's out-of-memory error so: half the batch, up to three times
    (8.4, `BaseTrainer._do_train`).
    """
    asked, had = whole(training.args.get("batch")), whole(training.settings.get("batch"))
    lost = _lost(training)
    if lost is None or asked is None or had is None or had >= asked:
        return None
    other = _holder(context, training, lost)
    return SetupIssue(
        "warning",
        f"GPU memory ran out with `batch={asked}`: YOLO began again with `batch={had}`",
        (asked, had),
        evidence(
            ("time until it began again", lost[1] - lost[0], "s"),
            (f"memory of {other.who if other else ''}", gib(other.memory_mib if other else None), "GiB"),
        ),
        (_advice(asked, had, other),),
    )


def _lost(training: Training) -> Span | None:
    """Return the time from the beginning of the first epoch to its last one, None where it was begun but once."""
    main = training.rank_group.main if training.rank_group else None
    first = [epoch for epoch in main.epochs if epoch.epoch == main.epochs[0].epoch] if main else []
    return (first[0].start_t_s, first[-1].start_t_s) if len(first) > 1 else None


def _holder(context: Context, training: Training, lost: Span) -> OtherProcess | None:
    """Return the process of somebody else that held much of the GPU's memory when it ran out."""
    there = [each for each in context.other_processes if each.gpu in training.gpus and each.span[0] < lost[1]]
    there = [each for each in there if each.span[1] > lost[0]]
    largest = max(there, key=lambda each: each.memory_mib or 0.0, default=None)
    total = None if largest is None else context.run.gpu(largest.gpu).memory_total_mib
    if largest is None or not total or (largest.memory_mib or 0.0) < th.HOLDER_SHARE * total:
        return None
    return largest


def _advice(asked: int, had: int, other: OtherProcess | None) -> Advice:
    if other is None:
        return Advice("it begins at once then; a smaller `imgsz` leaves room for more", "batch", str(asked), str(had))
    keep = f"Keep {other.who.replace('`', chr(39))} off GPU {other.gpu}"
    return Advice(f"{keep} while it trains: it held {memory_words(other.memory_mib or 0.0)} of its memory", short=keep)

"""Configuration problem: a batch that did not fit the GPU's memory, so that YOLO trains with a smaller one."""

from dataclasses import replace

from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.setup.check import SetupIssue
from gpu_report.analyse.signals.gpu.memory_growth import find_growth
from gpu_report.analyse.signals.host.other_processes import OtherProcess
from gpu_report.analyse.timeline.thresholds import PROCESSES_EVERY_S
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.columns import column_values
from gpu_report.gpu_words import gpu_words
from gpu_report.model import Advice
from gpu_report.wording import gib, memory_words


def batch_too_large(context: Context, training: Training) -> SetupIssue | None:
    """Find a first epoch that was begun again with a smaller batch, unless memory had grown until none was left."""
    lost, lowered = training.begun_again, training.lowered_batch
    if lost is None or lowered is None or _grew(context, training, lost[1]):
        return None
    asked, had = lowered
    holder = _holder(context, training, lost[1])
    fits = holder is not None and _fits(context, training, asked / had, lost[1], holder)
    begin_so = Advice("it begins at once then; a smaller `imgsz` leaves room for more", "batch", str(asked), str(had))
    return SetupIssue(
        "warning",
        f"YOLO lowered `batch` from {asked} to {had}, probably because GPU memory ran out",
        (asked, had),
        evidence(
            ("time until it began again", lost[1] - lost[0], "s"),
            (f"memory of {holder.who if holder else ''}", gib(holder.memory_mib if holder else None), "GiB"),
        ),
        (_keep_off(holder) if holder is not None and fits else begin_so,),
    )


def _grew(context: Context, training: Training, until_s: float) -> bool:
    """Tell whether a GPU's memory grew in that epoch: no batch is small enough then."""
    memories = [context.gpu_memory(context.series_of(gpu)) for gpu in training.gpus]
    found = [find_growth(memory, training.epochs, None) for memory in memories] if training.epochs else []
    return any(growth is not None and growth.start_s < until_s for growth in found)


def _holder(context: Context, training: Training, until_s: float) -> OtherProcess | None:
    """Return the process of somebody else that held most of the GPU's memory when it ran out, with what it held then.

    None where that was less than HOLDER_SHARE of it.
    """
    looks = context.run.processes
    gpus = training.gpus or {gpu.index for gpu in context.run.gpus}  # a training without memory may not work on any
    there = [each for each in context.other_processes if each.gpu in gpus and each.span[0] < until_s]
    held: list[OtherProcess] = []
    for each in there:
        theirs = looks[(looks["pid"] == each.pid) & (looks["gpu"] == each.gpu)]
        seen = column_values(theirs, "memory_used_mib", [(-1.0, until_s + PROCESSES_EVERY_S)])
        held.append(replace(each, memory_mib=float(seen.max(initial=0.0))))
    largest = max(held, key=lambda each: each.memory_mib or 0.0, default=None)
    total = None if largest is None else context.run.gpu(largest.gpu).memory_total_mib
    return largest if largest and total and (largest.memory_mib or 0.0) >= th.HOLDER_SHARE * total else None


def _fits(context: Context, training: Training, larger: float, from_s: float, holder: OtherProcess) -> bool:
    """Tell whether a batch so many times larger has room where nobody else is on the GPU, by what the smaller took."""
    total = context.run.gpu(holder.gpu).memory_total_mib
    series = context.series_of(holder.gpu)
    used = column_values(series.samples, "memory_used_mib", [(from_s, training.span[1])])
    own_mib = float(used.max(initial=0.0)) - (holder.memory_mib or 0.0)
    return total is not None and larger * own_mib <= total


def _keep_off(holder: OtherProcess) -> Advice:
    keep = f"Keep {holder.who.replace('`', chr(39))} off {gpu_words(holder.gpu)}"
    return Advice(f"{keep} while it trains: it held {memory_words(holder.memory_mib or 0.0)} of its memory", short=keep)

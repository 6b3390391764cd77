"""Causes that are what YOLO does besides training: its phases, and what comes once."""

from gpu_report.analyse.causes import thresholds as th
from gpu_report.analyse.causes.candidate import Candidate
from gpu_report.analyse.causes.confidence import LIKELY, WEAK
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.timeline.thresholds import LOW_PCT

# What callbacks say that YOLO was doing, as the cause that it is and in words.
PHASE_CAUSES = {
    "validation": ("validation", "YOLO validated"),
    "checkpoint": ("checkpoint", "YOLO saved its checkpoint"),
    "close mosaic": ("startup", "YOLO restarted its data loader to close the mosaic"),
    "first batch": ("startup", "YOLO waited for the first batch"),
    "data set": ("startup", "YOLO read the data set"),
}


def autotuning(signals: IntervalSignals) -> Candidate | None:
    """Find the main process tuning kernels for sizes that are new in the first epoch: its last batch has one."""
    main, workers = signals.within("main_cpu_pct"), signals.within("workers_cpu_pct")
    util = signals.gpu_within("gpu_util_pct")
    if not signals.in_first_epoch or main is None or util is None or main < th.TUNING_CPU_PCT:
        return None
    if (workers or 0.0) >= th.WORKERS_FULL_PCT or util >= LOW_PCT:
        return None
    numbers = evidence(("CPU of the main process", main, "% of a core"), ("CPU of all workers", workers, "% of a core"))
    text = "in the first epoch YOLO tuned kernels for a new batch size, such as the last batch's"
    return Candidate("startup", LIKELY, text, numbers)


def phase_needs_no_gpu(signals: IntervalSignals) -> Candidate | None:
    """Find that what YOLO was doing does not need the GPU much, though it took unusually long."""
    reported = {name: share for name, share in signals.phases.items() if name in PHASE_CAUSES}
    longest = max(reported, key=lambda name: reported[name], default=None)
    if longest is None or reported[longest] < th.PHASE_SHARE:
        return None
    name, text = PHASE_CAUSES[longest]
    numbers = evidence((f"of this time {text}", 100 * reported[longest], "%"))
    return Candidate(name, WEAK, f"{text}, for longer than usual", numbers)

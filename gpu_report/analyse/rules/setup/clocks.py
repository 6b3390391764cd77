"""Configuration problem: set application clocks hold a GPU far below what it can do, all training long."""

import numpy as np

from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import compared_with, evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.setup.check import SetupIssue
from gpu_report.analyse.signals.signal_table import LARGEST_MASK
from gpu_report.analyse.timeline.thresholds import LOW_PCT
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.intervals import mask_in_any
from gpu_report.gpu_words import gpu_words
from gpu_report.median import median_of
from gpu_report.model import Advice

APPLICATION_CLOCKS, IDLE = 0x2, 0x1  # nvml.h, nvmlClocksEventReason*


def application_clocks(context: Context, training: Training) -> SetupIssue | None:
    """Find the GPU of a training that application clocks hold lowest, where nothing else holds it."""
    held = [(mhz, gpu) for gpu in sorted(training.gpus) if (mhz := _held_mhz(context, training, gpu)) is not None]
    if not held:
        return None
    mhz, gpu = min(held)
    can_do = context.run.gpu(gpu).max_sm_clock_mhz or mhz
    short = f"Reset the clocks of {gpu_words(gpu)}"
    return SetupIssue(
        "warning",
        f"{gpu_words(gpu)}'s clock is set to {mhz:,.0f} MHz, of {can_do:,.0f} (application clocks)",
        (gpu, "application clocks"),
        evidence(
            ("clock of the SMs at work (median)", mhz, "MHz"),
            compared_with("capacity", float(can_do), "MHz"),
            ("further GPUs held so", float(len(held) - 1) or None, ""),
        ),
        (
            Advice(
                f"{short}: `nvidia-smi -i {gpu} -rac`. Where they are locked, use `-rgc`. Heat or the power limit may "
                "hold it below its highest then",
                gain_at_most=1 - 1 / _faster_at_most(context, gpu, mhz, can_do),
                short=short,
            ),
        ),
    )


def _held_mhz(context: Context, training: Training, gpu: int) -> float | None:
    """Return the median clock at work of a GPU that application clocks hold below SET_CLOCK_SHARE, else None."""
    series = context.series_if_read(gpu)
    highest_mhz = context.run.gpu(gpu).max_sm_clock_mhz
    if series is None or not highest_mhz:
        return None
    names = ("t_s", "gpu_util_pct", "sm_clock_mhz", "clock_event_reasons")
    t_s, util_pct, clock_mhz, reasons = (series.samples[name].to_numpy(dtype=float) for name in names)
    work = mask_in_any(t_s, training.train_spans) & (util_pct >= LOW_PCT) & (clock_mhz > 0) & (reasons < LARGEST_MASK)
    bits = np.where(work, reasons, 0).astype(np.int64)
    held = work & (bits & ~IDLE == APPLICATION_CLOCKS)
    if not work.any() or held.sum() < th.SET_CLOCK_OF_WORK * work.sum():
        return None
    mhz = median_of(clock_mhz[held])
    return mhz if mhz <= th.SET_CLOCK_SHARE * highest_mhz else None


def _faster_at_most(context: Context, gpu: int, mhz: float, can_do_mhz: float) -> float:
    """Return how many times as fast a GPU works at most at its highest clock, or where it reaches its power limit.

    A step takes no less energy at a higher clock, whose voltage is as high or higher: what the GPU draws beyond its
    idle power grows at least as its speed. Where that is not known, the clock alone is the limit.
    """
    limit_w, by_clock = context.run.gpu(gpu).power_limit_w, can_do_mhz / mhz
    frame = context.series_of(gpu).samples
    names = ("gpu_util_pct", "sm_clock_mhz", "power_w")
    util_pct, clock_mhz, power_w = (frame[name].to_numpy(dtype=float) for name in names)
    read = np.isfinite(power_w)
    idle, work = read & (util_pct == 0) & (clock_mhz >= mhz), read & (util_pct >= LOW_PCT) & (clock_mhz <= mhz)
    if not limit_w or not idle.any() or not work.any():
        return by_clock
    idle_w, work_w = median_of(power_w[idle]), median_of(power_w[work])
    return max(min(by_clock, (limit_w - idle_w) / (work_w - idle_w)), 1.0) if work_w > idle_w else by_clock

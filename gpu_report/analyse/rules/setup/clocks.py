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
                f"Reset the clocks of {gpu_words(gpu)}: `nvidia-smi -i {gpu} -rac` (`-rgc` where they are locked). "
                "Heat or the power limit may hold it below its highest then",
                gain_at_most=1 - mhz / can_do,
                short=f"Reset the clocks of {gpu_words(gpu)} (`nvidia-smi -rac`)",
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

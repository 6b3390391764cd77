"""What may have slowed training from one epoch on, where no cause was found: the guesses that no reading excludes."""

from collections.abc import Callable, Sequence

from gpu_report.analyse.causes import thresholds as cth
from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.epochs.changed_signals import of_gpus, of_host, others_cpu_pct
from gpu_report.analyse.rules.epochs.comparable_epochs import TrainedEpoch

Excluded = Callable[[Context, Sequence[TrainedEpoch], Sequence[TrainedEpoch]], bool]
ALL_EXCLUDED = "the CPU of others, clocks, storage and memory were as before; your code or data may have changed"


def possible_causes(context: Context, before: Sequence[TrainedEpoch], after: Sequence[TrainedEpoch]) -> str:
    """Return what may have slowed some epochs, in words. What was not read excludes nothing."""
    left = [guess for guess, excluded in GUESSES if not excluded(context, before, after)]
    *first, last = left or [ALL_EXCLUDED]
    return f"{', '.join(first)} or {last}" if first else last


def _no_other_program(context: Context, before: Sequence[TrainedEpoch], after: Sequence[TrainedEpoch]) -> bool:
    """Tell whether others took no more of the CPU than before; of a GPU its processes say it."""
    was, now = (others_cpu_pct(context, epochs) for epochs in (before, after))
    return was is not None and now is not None and now - was < th.OTHERS_ROSE_PCT


def _no_lower_clock(context: Context, before: Sequence[TrainedEpoch], after: Sequence[TrainedEpoch]) -> bool:
    was, now = (of_gpus("sm_clock_mhz")(context, epochs) for epochs in (before, after))
    return was is not None and now is not None and now > (1 - th.CHANGED_SHARE) * was


def _no_slower_storage(context: Context, _: Sequence[TrainedEpoch], after: Sequence[TrainedEpoch]) -> bool:
    """Tell whether storage was hardly waited for: the kernel counts waits for FUSE and 9p by the workers alone."""
    pressure_pct, blocked = (of_host(name)(context, after) for name in ("io_pressure_pct", "workers_blocked"))
    is_quiet = pressure_pct is not None and pressure_pct < cth.QUIET_PRESSURE_PCT
    return is_quiet and blocked is not None and blocked < th.BLOCKED_LEAST


def _no_less_memory(context: Context, before: Sequence[TrainedEpoch], after: Sequence[TrainedEpoch]) -> bool:
    was, now = (of_host("memory_available_mib")(context, epochs) for epochs in (before, after))
    return was is not None and now is not None and now > (1 - cth.ROOM_FELL_SHARE) * was


GUESSES: tuple[tuple[str, Excluded], ...] = (
    ("another program", _no_other_program),
    ("a lower clock", _no_lower_clock),
    ("slower storage", _no_slower_storage),
    ("less free memory", _no_less_memory),
)

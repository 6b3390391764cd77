"""A cause that an interval speaks for, and what several causes ask of its signals."""

from collections.abc import Callable
from dataclasses import dataclass

from gpu_report.analyse.causes import thresholds as th
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.thresholds import COMPUTES_CPU_PCT, MOSTLY_SHARE, WAITING_MAIN_PCT
from gpu_report.model import Advice, Evidence


@dataclass(frozen=True)
class Candidate:
    """A cause that an interval speaks for: how strongly (0 to 1), why in one sentence, and the numbers.

    `advice` is what to do about it, where that depends on who caused it. `is_launching` says that what takes the time
    may be to launch kernels: then fewer, larger ones do.
    """

    name: str
    confidence: float
    explanation: str
    evidence: tuple[Evidence, ...] = ()
    advice: tuple[Advice, ...] = ()
    is_launching: bool = False


def idle(signals: IntervalSignals) -> bool:
    """Tell whether the training used no CPU and waited for nothing that the host knows of."""
    main, workers = signals.within("main_cpu_pct"), signals.within("workers_cpu_pct")
    pressures = (
        signals.within("io_pressure_pct"),
        signals.within("cpu_pressure_pct"),
        signals.within("memory_pressure_pct"),
    )
    quiet = all((pressure or 0.0) < th.QUIET_PRESSURE_PCT for pressure in pressures)
    return main is not None and _main_idles(signals, main) and (workers or 0.0) < th.IDLE_CPU_PCT and quiet


def _main_idles(signals: IntervalSignals, main: float) -> bool:
    """Tell whether the main process used no CPU; of several ranks, of which that of the busiest is known, by stacks."""
    if signals.is_alone:
        return main < th.IDLE_CPU_PCT
    there = signals.idle_location.cpu_pct if signals.idle_location else None
    return waits_for_loader(signals) or (there is not None and there < th.IDLE_CPU_PCT)


def main_waits(signals: IntervalSignals) -> bool:
    """Tell whether the main process spent most of the time waiting, by its CPU; of several ranks by its stacks."""
    main = signals.within("main_cpu_pct")
    if not signals.is_alone:
        return waits_for_loader(signals)
    return main is not None and main < WAITING_MAIN_PCT


def main_fills_one_core(signals: IntervalSignals) -> bool:
    """Tell whether the main process filled a core, the workers were far from their limit and the GPU waited.

    Who waits for data leaves its core: a full one waits for nothing, whatever the time between batches is called.
    """
    main, util = signals.within("main_cpu_pct"), signals.gpu_within("gpu_util_pct")
    if main is None or util is None:
        return False
    if main_never_waits_more(signals, main, util):
        return True
    if util >= th.MAIN_BOUND_UTIL_PCT and not never_waits_for_data(signals):
        return False
    return main >= th.MAIN_FULL_PCT and (_workers_idle_more(signals) or never_waits_for_data(signals))


def main_never_waits_more(signals: IntervalSignals, main: float, util: float) -> bool:
    """Tell whether utilisation fell while the main process was as busy as ever, and its workers had less to do.

    Who waits for data leaves its core for as long, whatever other threads of it take: that would show beside typical.
    """
    usual, level = signals.typical("main_cpu_pct"), signals.gpu_typical("gpu_util_pct")
    workers, loaded = signals.within("workers_cpu_pct"), signals.typical("workers_cpu_pct")
    if signals.is_steady or not signals.is_alone or not usual or not level or main < th.MAIN_FULL_PCT:
        return False
    fell = 1 - util / level
    if fell < th.FELL_SHARE or 1 - main / usual >= th.LITTLE_OF_IT * fell or workers is None or not loaded:
        return False
    return 1 - workers / loaded >= th.MUCH_OF_IT * fell and workers_have_spare_cpu(signals)


def _workers_idle_more(signals: IntervalSignals) -> bool:
    """Tell whether the workers have time, and more of it than they usually have: their queue is full."""
    total, typical = signals.within("workers_cpu_pct") or 0.0, signals.typical("workers_cpu_pct")
    rest = typical is None or total < max(th.WORKERS_IDLE_SHARE * typical, th.WORKERS_FULL_PCT)
    return rest and workers_have_spare_cpu(signals)


def workers_have_spare_cpu(signals: IntervalSignals) -> bool:
    """Tell whether the loader's workers used less than they could: none of them full, all of them half idle."""
    total, busiest = signals.within("workers_cpu_pct") or 0.0, signals.within("busiest_worker_cpu_pct") or 0.0
    could = 100.0 * min(loading_workers(signals) or 1.0, signals.usable_cores or signals.cores or 1.0)
    return busiest < th.WORKER_FULL_PCT and total < th.WAITING_WORKERS_SHARE * could


def is_in_unusual_place(signals: IntervalSignals) -> bool:
    """Tell whether stacks show the main process where it does not stand while its GPU works.

    That is a function of the user's that YOLO called, or a line that is unusual. Then what it did there is the cause,
    whatever else was short meanwhile.
    """
    idle_location = signals.idle_location
    if idle_location is None or idle_location.is_in_call:
        return idle_location is not None
    if idle_location.usual is None or idle_location.share < MOSTLY_SHARE:
        return False
    return idle_location.share >= th.RISEN_FACTOR * idle_location.usual


def computes_in_place(signals: IntervalSignals) -> bool | None:
    """Tell whether the main process computed in the place where it stood; None where its CPU there is not known.

    Where only that of the whole interval is, one that used next to none in all of it computed nowhere, and one that
    filled more cores than steps can computed there.
    """
    there, whole = signals.idle_location.cpu_pct if signals.idle_location else None, signals.within("main_cpu_pct")
    if there is not None:
        return there >= COMPUTES_CPU_PCT
    if whole is None or signals.idle_location is None or not signals.idle_location.is_alone:
        return None
    return False if whole < th.IDLE_CPU_PCT else True if whole > th.LAUNCHES_CPU_PCT else None


def waits_for_loader(signals: IntervalSignals) -> bool:
    """Tell whether stacks show the main process in its loader."""
    return signals.idle_location is not None and signals.idle_location.in_loader >= MOSTLY_SHARE


def waits_for_data(signals: IntervalSignals) -> bool:
    """Tell whether training waited for data for much of the time, or for most of that in which its GPU was idle.

    A GPU that mostly waits for its loader may have other waits beside it: of ranks, each waits for the others, too.
    """
    return waits_for_loader(signals) or (signals.waited_share or 0.0) >= th.LATENCY_WAIT_SHARE


def never_waits_for_data(signals: IntervalSignals) -> bool:
    """Tell whether the trainer was never kept waiting for data, where that is known: then no loader is to blame."""
    return signals.data_wait_share is not None and signals.data_wait_share < th.DATA_CAME_SHARE


def loading_workers(signals: IntervalSignals) -> float:
    """Return how many workers load for training; those of the validation stay, too, and idle."""
    there = signals.within("workers") or 0.0
    return there if not signals.loader_workers else min(there, signals.loader_workers)


def usable_cores(signals: IntervalSignals) -> float | None:
    """Return how many cores the training may use: by its cgroup's quota, and by the affinity of its processes.

    That counts where it is the same all the time: of a process that is held on few for a while, others are not.
    """
    own = [signals.within(name) for name in ("main_cores", "worker_cores")]
    usual = [signals.typical(name) for name in ("main_cores", "worker_cores")]
    lasting = [now for now, typical in zip(own, usual, strict=True) if typical is None or now == typical]
    known = [cores for cores in (signals.usable_cores or signals.cores, *lasting) if cores]
    return min(known, default=None)


def trainer_cpu(signals: IntervalSignals) -> float | None:
    """Return the CPU of the main process and its workers, in % of a core."""
    return _with_workers(signals.within)


def usual_trainer_cpu(signals: IntervalSignals) -> float | None:
    """Return what `trainer_cpu` is in the steady state."""
    return _with_workers(signals.typical)


def _with_workers(reading: Callable[[str], float | None]) -> float | None:
    main, workers = reading("main_cpu_pct"), reading("workers_cpu_pct")
    return None if main is None else main + (workers or 0.0)


def others_cpu(signals: IntervalSignals) -> float | None:
    """Return the CPU that others than the training used, in % of all cores; None where that is not known.

    What a hypervisor took is in the CPU of all cores, and nobody's on this machine.
    """
    cpu, trainer = signals.within("cpu_pct"), trainer_cpu(signals)
    if cpu is None or trainer is None or not signals.cores:
        return None
    return cpu - trainer / signals.cores - (signals.within("cpu_steal_pct") or 0.0)


def risen(value: float | None, typical: float | None, least: float) -> bool:
    """Tell whether a signal is at least `least` and well above what it usually is."""
    return value is not None and value >= least and value >= th.RISEN_FACTOR * (typical or 0.0)

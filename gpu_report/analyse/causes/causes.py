"""What took the GPU's time: one small function a cause, each scoring the evidence of a interval; the best one is named.

To add a cause, write its function here, list it in CAUSES, and give it a test. A function returns None unless the
signals it needs were recorded and speak for it: nothing is concluded from what is missing. `unexplained` is an honest
answer. The order of decision (memory before storage, storage before CPU) and the shapes are those of measurements on
data loaders (field practice: a starved loader's workers are busy, a blocked trainer's are not); every number stands in
thresholds.py.
"""

from collections.abc import Callable
from dataclasses import dataclass

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.signals.clock_throttling import HW_THERMAL, POWER_BRAKE, SW_POWER_CAP, SW_THERMAL
from gpu_report.analyse.signals.interval_signals import IntervalSignals, evidence
from gpu_report.analyse.signals.page_cache import emptied
from gpu_report.model import Cause, Evidence, NearbyKernelEvent

# Which cause a kind of kernel event points to, and how far one such line alone is to be trusted (0 to 1): a GPU
# fault stops the GPU by itself, a disk error stops only what reads that disk.
KERNEL_CAUSES = {
    "gpu-lost": ("gpu-fault", 0.95),
    "xid": ("gpu-fault", 0.8),
    "amdgpu": ("gpu-fault", 0.8),
    "aer": ("gpu-fault", 0.4),
    "hotplug": ("gpu-fault", 0.7),
    "oom": ("memory-pressure", 0.7),
    "nfs": ("input-storage", 0.7),
    "nvme": ("input-storage", 0.6),
    "ata": ("input-storage", 0.6),
    "block": ("input-storage", 0.6),
    "filesystem": ("input-storage", 0.6),
    "thermal": ("thermal", 0.4),
    "hung-task": ("trainer-blocked", 0.5),
    "lockup": ("trainer-blocked", 0.6),
}

UNEXPLAINED = "nothing that was recorded explains it"


@dataclass(frozen=True)
class Candidate:
    """A cause that a interval speaks for: how strongly (0 to 1), why in one sentence, and the numbers."""

    name: str
    confidence: float
    explanation: str
    evidence: tuple[Evidence, ...] = ()


def gpu_fault(signals: IntervalSignals) -> Candidate | None:
    """Find that the driver lost the GPU, or wants it reset."""
    if not signals.nvml_lost:
        return None
    return Candidate("gpu-fault", 0.95, f"the driver said: {signals.nvml_lost}")


def kernel_said(signals: IntervalSignals) -> Candidate | None:
    """Find a fault that the kernel log names within the interval or up to a minute before it."""
    found = [candidate for event in signals.kernel if (candidate := _from_event(signals.gpu, event)) is not None]
    return max(found, key=lambda candidate: candidate.confidence, default=None)


def memory_pressure(signals: IntervalSignals) -> Candidate | None:
    """Find that processes waited for memory, or pages came back from swap; it raises the pressure of io, too."""
    pressure, swap = signals.within("memory_pressure_pct"), signals.within("swap_in_mib_s")
    waited = _risen(pressure, signals.typical("memory_pressure_pct"), th.MEMORY_PRESSURE_PCT)
    swapped = _risen(swap, signals.typical("swap_in_mib_s"), th.SWAP_IN_MIB_S)
    if not waited and not swapped:
        return None
    numbers = evidence(
        ("of the time a process waited for memory", pressure, "%"), ("read back from swap", swap, "MiB/s")
    )
    text = "processes waited for memory" + (", and pages were read back from swap" if swapped else "")
    return Candidate("memory-pressure", 0.9 if waited and swapped else 0.8, text, numbers)


def input_storage(signals: IntervalSignals) -> Candidate | None:
    """Find that the loader waited for a disk: pressure of io, with workers blocked on a device or bytes being read."""
    pressure, full = signals.within("io_pressure_pct"), signals.within("io_full_pressure_pct")
    blocked, read = (
        signals.within("workers_blocked"),
        _most(signals.within("trainer_read_mib_s"), signals.within("disk_read_mib_s")),
    )
    waited = _risen(pressure, signals.typical("io_pressure_pct"), th.IO_PRESSURE_PCT)
    touched = (blocked or 0.0) >= th.WORKERS_BLOCKED or (read or 0.0) >= th.READ_MIB_S
    if not waited or not touched or _mostly_one_core(signals) or _data_came(signals):
        return None
    numbers = evidence(
        ("of the time a process waited for input or output", pressure, "%"),
        ("of the time every process that had work did", full, "%"),
        ("workers blocked on a device (mean)", blocked, ""),
        ("read from storage", read, "MiB/s"),
    )
    who, text = emptied(signals.kernel), "the loader waited for storage"
    text = f"{text}: {who}, so that files were read from the disk again" if who else text
    sure = bool(who) or (blocked or 0.0) >= th.WORKERS_BLOCKED
    return Candidate("input-storage", 0.9 if sure else 0.8, text, numbers)


def cores_taken(signals: IntervalSignals) -> Candidate | None:
    """Find that every core was busy most of the time, and not with this training."""
    cpu, pressure, trainer = signals.within("cpu_pct"), signals.within("cpu_pressure_pct"), _trainer_cpu(signals)
    full = signals.share_above("cpu_pct", th.ALL_CORES_PCT)
    if cpu is None or trainer is None or full is None or not signals.cores or full < th.CORES_TAKEN_SHARE:
        return None
    others = cpu - trainer / signals.cores
    if others < th.OTHERS_CPU_PCT:
        return None
    numbers = evidence(
        ("CPU, all cores", cpu, "%"),
        ("of all cores, taken by other processes than the training", others, "%"),
        ("of the time a process waited for a core", pressure, "%"),
    )
    return Candidate("input-cpu", 0.9, f"other processes took {others:.0f} % of all cores", numbers)


def loader_cpu_bound(signals: IntervalSignals) -> Candidate | None:
    """Find the loader's workers at their limit: a core each, while the main process waited for them."""
    busiest, total = signals.within("busiest_worker_cpu_pct"), signals.within("workers_cpu_pct")
    if busiest is None or total is None or busiest < th.WORKER_FULL_PCT or _data_came(signals):
        return None
    busy, there = round(total / busiest), _loading(signals)
    if total < th.WORKERS_FULL_PCT * min(there, signals.usable_cores or signals.cores or there):
        return None
    numbers = evidence(
        ("CPU of the busiest worker", busiest, "% of a core"),
        ("CPU of all workers", total, "% of a core"),
        ("CPU, all cores", signals.within("cpu_pct"), "%"),
    )
    noun = "loader worker was" if busy == 1 else "loader workers were"
    return Candidate("input-cpu", 0.85, f"{busy} {noun} busy all the time and could not keep up", numbers)


def own_cores_full(signals: IntervalSignals) -> Candidate | None:
    """Find that the training had fewer cores than it needs: it filled all that it may use by itself."""
    trainer, cores = _trainer_cpu(signals), signals.usable_cores or signals.cores
    if trainer is None or not cores or trainer < th.OWN_CORES_PCT * cores:
        return None
    numbers = evidence(
        ("CPU of the trainer and its workers", trainer, "% of a core"),
        ("cores that they may use", float(cores), ""),
        ("processes waited for a core", signals.within("cpu_pressure_pct"), "%"),
    )
    of = f" of {signals.cores}" if signals.cores and signals.cores > cores else ""
    return Candidate("input-cpu", 0.88, f"the training filled all {cores:g}{of} cores that it may use", numbers)


def cores_short(signals: IntervalSignals) -> bool:
    """Tell whether the training got fewer cores than it needs, taken by others or by a quota."""
    return cores_taken(signals) is not None or own_cores_full(signals) is not None


def loader_idle(signals: IntervalSignals) -> Candidate | None:
    """Find that workers went idle before the GPU did: what they read from did not answer, and the queue ran dry."""
    main, workers = signals.within("main_cpu_pct"), signals.within("workers_cpu_pct")
    lead = signals.workers_lead_s()
    if main is None or workers is None or not _idle(signals) or lead is None or _data_came(signals):
        return None
    surge = signals.workers_surge()
    first, refilled = lead >= th.LEAD_S, surge is not None and surge >= th.SURGE_FACTOR
    if not first and not refilled:
        return None
    numbers = evidence(
        ("workers idle before the GPU fell", lead, "s"),
        ("CPU of all workers", workers, "% of a core"),
        ("usually", signals.typical("workers_cpu_pct"), "% of a core"),
        ("CPU of all workers right after it, against usual", surge, "times as much"),
    )
    text = "the loader's workers stood still first, without using CPU or disk (a network drive, a lock, a sleep)"
    return Candidate("input-stalled", 0.85 if first and refilled else 0.7, text, numbers)


def loader_idle_at_times(signals: IntervalSignals) -> Candidate | None:
    """Find that workers stood still, too, while the trainer waited: again and again something held them up."""
    waiting, there = signals.within("workers_cpu_pct"), _loading(signals)
    could = 100 * min(there, signals.usable_cores or signals.cores or there)
    if not signals.waits or waiting is None or not could or waiting > th.WAITING_WORKERS_SHARE * could:
        return None
    numbers = evidence(
        (f"CPU of all {there:.0f} workers while the trainer waited", waiting, "% of a core"),
        ("of that time a process waited for input or output", signals.within("io_pressure_pct"), "%"),
    )
    text = (
        "again and again the loader's workers stood still, using no CPU and no disk (a network drive, a lock, a sleep)"
    )
    return Candidate("input-stalled", 0.7, text, numbers)


def trainer_stopped(signals: IntervalSignals) -> Candidate | None:
    """Find that a signal had stopped the training, or a rank of it."""
    stopped = signals.within("trainer_stopped")
    if stopped is None or stopped < th.STOPPED:
        return None
    numbers = evidence(("processes stopped by a signal (mean)", stopped, ""))
    return Candidate("trainer-blocked", 0.95, "a signal had stopped the training (SIGSTOP, Ctrl-Z)", numbers)


def trainer_blocked(signals: IntervalSignals) -> Candidate | None:
    """Find that the main process itself stood still: no CPU, no disk, and the workers waited for it."""
    if not _idle(signals) or loader_idle(signals) is not None:
        return None
    numbers = evidence(
        ("CPU of the main process", signals.within("main_cpu_pct"), "% of a core"),
        ("usually", signals.typical("main_cpu_pct"), "% of a core"),
        ("CPU of all workers", signals.within("workers_cpu_pct"), "% of a core"),
    )
    text = "the trainer's main process did nothing: no CPU, no disk (a callback, a lock, a logger, a remote service)"
    return Candidate("trainer-blocked", 0.8, text, numbers)


def main_process_bound(signals: IntervalSignals) -> Candidate | None:
    """Find one core full with the main process while workers idled: it cannot feed the GPU faster."""
    if not _mostly_one_core(signals):
        return None
    numbers = evidence(
        ("CPU of the main process", signals.within("main_cpu_pct"), "% of a core"),
        ("CPU of all workers", signals.within("workers_cpu_pct"), "% of a core"),
        ("CPU, all cores", signals.within("cpu_pct"), "%"),
    )
    return Candidate(
        "main-process", 0.7, "the trainer's main process filled one core, and the GPU waited for it", numbers
    )


def launch_bound(signals: IntervalSignals) -> Candidate | None:
    """Find one core full with launching kernels that are too small for the GPU.

    The main process was full and waited for no data: so it launched. Where callbacks did not tell, SM activity far
    under utilisation does.
    """
    util, sm = signals.gpu_within("gpu_util_pct"), signals.gpu_within("sm_active_pct")
    small = util is not None and sm is not None and sm < th.LAUNCH_SM_SHARE * util
    if not (small or _data_came(signals)) or not _mostly_one_core(signals):
        return None
    numbers = evidence(
        ("utilisation", util, "%"),
        ("SM activity", sm, "%"),
        ("CPU of the main process", signals.within("main_cpu_pct"), "% of a core"),
        ("CPU of all workers", signals.within("workers_cpu_pct"), "% of a core"),
    )
    text = "kernels were too small to fill the GPU, and the main process launched them as fast as one core can"
    return Candidate("launch-bound", 0.8, text, numbers)


def other_process(signals: IntervalSignals) -> Candidate | None:
    """Find that somebody else was on this GPU."""
    span = signals.span
    there = [(each.share_of(*span), each) for each in signals.other_processes]
    there = [pair for pair in there if pair[0] >= th.PRESENT_SHARE]
    if not there:
        return None
    share, other = max(there, key=lambda pair: (pair[0], pair[1].memory_mib or 0.0))
    memory = "" if other.memory_mib is None else f", {other.memory_mib / 1024:.1f} GiB"
    numbers = evidence(("of this time it was on the GPU", 100 * share, "%"), ("its memory", other.memory_mib, "MiB"))
    return Candidate("other-process", 0.75, f"{other.who}{memory} was on this GPU too", numbers)


def power_cap(signals: IntervalSignals) -> Candidate | None:
    """Find the clock far down because of a power limit. It makes batches longer, and gaps between them no wider."""
    return _throttled(signals, "power-cap", SW_POWER_CAP | POWER_BRAKE, 0.6, "power")


def thermal(signals: IntervalSignals) -> Candidate | None:
    """Find the clock far down because of heat; boards skip clock cycles then, which utilisation may show."""
    return _throttled(signals, "thermal", SW_THERMAL | HW_THERMAL, 0.8, "heat")


# What callbacks say that YOLO was doing, as the cause that it is and in words.
PHASE_CAUSES = {
    "validation": ("validation", "YOLO validated"),
    "checkpoint": ("checkpoint", "YOLO saved its checkpoint"),
    "close mosaic": ("startup", "the mosaic was closed, for which YOLO makes its loader anew"),
    "first batch": ("startup", "YOLO waited for the first batch"),
    "data set": ("startup", "YOLO read the data set"),
}


def tuning(signals: IntervalSignals) -> Candidate | None:
    """Find the main process tuning kernels for sizes that are new in the first epoch: its last batch has one."""
    main, workers = signals.within("main_cpu_pct"), signals.within("workers_cpu_pct")
    util = signals.gpu_within("gpu_util_pct")
    if not signals.in_first_epoch or main is None or util is None or main < th.TUNING_CPU_PCT:
        return None
    if (workers or 0.0) >= th.WORKERS_FULL_PCT or util >= th.LOW_PCT:
        return None
    numbers = evidence(("CPU of the main process", main, "% of a core"), ("CPU of all workers", workers, "% of a core"))
    text = "in the first epoch the main process prepared kernels for batches of a new size, such as the last one"
    return Candidate("startup", 0.75, text, numbers)


def phase_itself(signals: IntervalSignals) -> Candidate | None:
    """Find that what YOLO was doing does not need the GPU much, though it took unusually long."""
    reported = {name: share for name, share in signals.phases.items() if name in PHASE_CAUSES}
    longest = max(reported, key=lambda name: reported[name], default=None)
    if longest is None or reported[longest] < th.PHASE_SHARE:
        return None
    name, text = PHASE_CAUSES[longest]
    numbers = evidence((f"of this time {text}", 100 * reported[longest], "%"))
    return Candidate(name, 0.5, f"{text}, for longer than usual", numbers)


Scorer = Callable[[IntervalSignals], Candidate | None]

CAUSES: tuple[Scorer, ...] = (
    gpu_fault,
    kernel_said,
    memory_pressure,
    input_storage,
    cores_taken,
    loader_cpu_bound,
    own_cores_full,
    loader_idle,
    loader_idle_at_times,
    trainer_stopped,
    trainer_blocked,
    main_process_bound,
    launch_bound,
    other_process,
    power_cap,
    thermal,
    tuning,
    phase_itself,
)


def explain(
    signals: IntervalSignals, *, expected: Cause | None = None, kernel_was_read: bool = True
) -> tuple[Cause, tuple[Evidence, ...]]:
    """Return the cause of a interval with its evidence: the strongest candidate, else `expected`, else unexplained.

    `expected` is the cause that the phase gives (a validation of usual length), which yields only to a stronger one.
    `kernel_was_read` is False when nobody looked.
    """
    found = [candidate for scorer in CAUSES if (candidate := scorer(signals)) is not None]
    ranked = sorted(found, key=lambda candidate: -candidate.confidence)
    if ranked and (expected is None or _outranks(ranked[0], expected)):
        best = ranked[0]
        rival = next((c.name for c in ranked if c.name != best.name), expected.name if expected else None)
        rival = None if best.confidence >= th.CERTAIN else rival
        return Cause(best.name, best.confidence, best.explanation, rival), best.evidence
    if expected is not None:
        return expected, ()
    unread = "" if kernel_was_read else "; the kernel log was not read"
    return Cause("unexplained", 0.0, f"{UNEXPLAINED}{unread}"), ()


def _outranks(candidate: Candidate, expected: Cause) -> bool:
    """Tell whether a candidate is more than what happens at the end of every epoch: only a fault of the GPU is."""
    return candidate.name == "gpu-fault" and candidate.confidence >= expected.confidence


def _throttled(signals: IntervalSignals, name: str, bits: int, confidence: float, what: str) -> Candidate | None:
    share = signals.gpu_share_with("clock_event_reasons", bits)
    clock, typical = signals.gpu_within("sm_clock_mhz"), signals.gpu_typical("sm_clock_mhz")
    if share is None or clock is None or typical is None:
        return None
    if share < th.THROTTLED_SHARE or clock > th.CAUSE_CLOCK_SHARE * typical:
        return None
    numbers = evidence(
        (f"of this time {what} held the clock down", 100 * share, "%"),
        ("SM clock meanwhile", clock, "MHz"),
        ("usually", typical, "MHz"),
        ("temperature", signals.gpu_within("temperature_c"), "°C"),
        ("power", signals.gpu_within("power_w"), "W"),
    )
    return Candidate(name, confidence, f"{what} held its clock at {clock:,.0f} MHz instead of {typical:,.0f}", numbers)


def _from_event(gpu: int, nearby: NearbyKernelEvent) -> Candidate | None:
    """Return what a kernel event speaks for; one of no consequence, of another GPU, or after the interval nothing."""
    event = nearby.event
    elsewhere = event.gpu is not None and event.gpu != gpu
    if elsewhere or nearby.offset_s > 0 or event.severity == "info" or event.kind not in KERNEL_CAUSES:
        return None
    name, confidence = KERNEL_CAUSES[event.kind]
    return Candidate(name, confidence, f"the kernel log says {_when(nearby.offset_s)}: {event.meaning}")


def _when(offset_s: float) -> str:
    return "within it" if offset_s == 0 else f"{abs(offset_s):.0f} s before it"


def _idle(signals: IntervalSignals) -> bool:
    """Tell whether the training used no CPU and waited for nothing that the host knows of."""
    main, workers = signals.within("main_cpu_pct"), signals.within("workers_cpu_pct")
    pressures = (
        signals.within("io_pressure_pct"),
        signals.within("cpu_pressure_pct"),
        signals.within("memory_pressure_pct"),
    )
    quiet = all((pressure or 0.0) < th.QUIET_PRESSURE_PCT for pressure in pressures)
    return main is not None and main < th.IDLE_CPU_PCT and (workers or 0.0) < th.IDLE_CPU_PCT and quiet


def _mostly_one_core(signals: IntervalSignals) -> bool:
    main, workers = signals.within("main_cpu_pct"), signals.within("workers_cpu_pct")
    util = signals.gpu_within("gpu_util_pct")
    if main is None or util is None or (util >= th.MAIN_BOUND_UTIL_PCT and not _data_came(signals)):
        return False
    return main >= th.MAIN_FULL_PCT and ((workers or 0.0) < th.WORKERS_FULL_PCT or _data_came(signals))


def _data_came(signals: IntervalSignals) -> bool:
    """Tell whether the trainer was never kept waiting for data, where that is known: then no loader is to blame."""
    return signals.data_wait_share is not None and signals.data_wait_share < th.DATA_CAME_SHARE


def _loading(signals: IntervalSignals) -> float:
    """Return how many workers load for training; those of the validation stay, too, and idle."""
    there = signals.within("workers") or 0.0
    return there if not signals.loader_workers else min(there, signals.loader_workers)


def _trainer_cpu(signals: IntervalSignals) -> float | None:
    main, workers = signals.within("main_cpu_pct"), signals.within("workers_cpu_pct")
    return None if main is None else main + (workers or 0.0)


def _risen(value: float | None, typical: float | None, least: float) -> bool:
    """Tell whether a signal is at least `least` and well above what it usually is."""
    return value is not None and value >= least and value >= th.RISEN_FACTOR * (typical or 0.0)


def _most(*values: float | None) -> float | None:
    return max((value for value in values if value is not None), default=None)

"""Causes in the machine: memory or cores that the training did not get."""

from dataclasses import replace
from math import ceil

from gpu_report.analyse.causes import thresholds as th
from gpu_report.analyse.causes.candidate import (
    Candidate,
    is_in_unusual_place,
    loading_workers,
    never_waits_for_data,
    others_cpu,
    risen,
    trainer_cpu,
    usable_cores,
    usual_trainer_cpu,
)
from gpu_report.analyse.causes.confidence import LIKELY, OWN_CORES, PRESENT, STRONG
from gpu_report.analyse.causes.cpu_users import (
    cores_words,
    cpu_users_advice,
    cpu_users_evidence,
    cpu_users_words,
    main_cpu_users,
    new_cpu_users,
    use_other_cores,
)
from gpu_report.analyse.evidence import evidence, usually
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.model import Advice
from gpu_report.wording import MIB_PER_GIB, setting_location_words

AFFINITY = "affinity"  # of what code of the user's sets
BY_VARIABLES = ("`OMP_PROC_BIND`", "`OMP_PLACES`")  # the common ones
BY_AFFINITY = ("`taskset`", "`sched_setaffinity`")
ALLOW_MORE_CORES = "Slurm's `--cpus-per-task`, Docker's `--cpus`, the CPU limit of Kubernetes or `taskset` allow them"
CPU_LIMITS = "Kubernetes has `resources.limits.cpu`, Docker `--cpus`, Slurm `--cpus-per-task`, systemd `CPUQuota`"
ONE_THREAD = Advice(
    "Libraries such as BLAS and OpenMP start a thread for each core in each worker. Set `OMP_NUM_THREADS=1` (and "
    "`OPENBLAS_NUM_THREADS`, `MKL_NUM_THREADS`) before the training starts",
    short="Set `OMP_NUM_THREADS=1`: each worker runs several threads",
)

KEEP_OFF = Advice(
    "Keep other programs off the CPU cores of the training: with `taskset`, with a cgroup, or at another time",
    short="Keep other programs off the CPU",
)


DEDICATED = Advice(
    "Use a virtual machine with dedicated cores, or move to another host. `top` shows what is taken as `st`",
    short="Use a virtual machine with dedicated cores: others took its CPU time (steal)",
)


SPARE_CORES = Advice(
    "`top` shows who uses the cores, `taskset -cp PID` which ones a process may use. Give the training cores that "
    "nothing else runs on",
    short="Keep other programs off the CPU cores of the training",
)


def memory_pressure(signals: IntervalSignals) -> Candidate | None:
    """Find that processes waited for memory, or pages came back from swap; it raises the pressure of io, too.

    Where both are so, it need not be more than is usual: a machine that swaps for most of a run is short of memory.
    """
    pressure, swap = signals.within("memory_pressure_pct"), signals.within("swap_in_mib_s")
    waited = risen(pressure, signals.typical("memory_pressure_pct"), th.MEMORY_PRESSURE_PCT)
    swapped = risen(swap, signals.typical("swap_in_mib_s"), th.SWAP_IN_MIB_S)
    lasts = (pressure or 0.0) >= th.MEMORY_PRESSURE_PCT and (swap or 0.0) >= th.SWAP_IN_MIB_S
    if not waited and not swapped and not lasts:
        return None
    numbers = evidence(
        ("time with a process waiting for memory", pressure, "%"), ("read back from swap", swap, "MiB/s")
    )
    text = "processes waited for memory" + (", and pages were read back from swap" if swapped or lasts else "")
    return Candidate("memory-pressure", STRONG if waited and swapped else LIKELY, text, numbers, _less_memory(signals))


def _less_memory(signals: IntervalSignals) -> tuple[Advice, ...]:
    """Return by which settings a training takes less host memory, where nearly all that is used is its own.

    Of what lasts in all of it another rule advises that. Workers share the images of `cache=ram` at first; each copies
    the pages that it touches, for Python counts references there.
    """
    own, used = signals.within("trainer_memory_mib"), signals.within("memory_used_mib")
    if signals.is_steady or own is None or not used or own < th.OWN_MEMORY_SHARE * used:
        return ()
    fewer = f"fewer `workers` (now {signals.loader_workers})" if signals.loader_workers else ""
    took = f"the training took {own / MIB_PER_GIB:.0f} of {used / MIB_PER_GIB:.0f} GiB in use"
    if signals.caches_in_memory:
        short = f"Set `cache=disk` instead of `cache=ram`{f', or {fewer}' if fewer else ''}"
        why = f"{took}. Workers copy what they touch of the images in memory"
        return (Advice(f"{short}: {why}", "cache", "ram", "disk", short=short),)
    short = f"Use {fewer}" if fewer else "Use less host memory"
    return (Advice(f"{short}: {took}", short=short),)


def cores_taken(signals: IntervalSignals) -> Candidate | None:
    """Find that every core was busy most of the time, and not with this training; and whose programs these were."""
    cpu, pressure, others = signals.within("cpu_pct"), signals.within("cpu_pressure_pct"), others_cpu(signals)
    full = signals.share_above("cpu_pct", th.ALL_CORES_PCT)
    if others is None or others < th.OTHERS_CPU_PCT or full is None or full < th.CORES_TAKEN_SHARE:
        return None
    cores = signals.cores or 0  # there are some, else nobody knows what others used
    if use_other_cores(signals, others * cores):
        return None
    programs = main_cpu_users(signals, others * cores)
    numbers = evidence(
        ("CPU, all cores", cpu, "%"),
        ("of all cores, used by other processes", others, "%"),
        *cpu_users_evidence(programs),
        ("time with a process waiting for a CPU core", pressure, "%"),
    )
    text = f"other processes used {others:.0f} % of all CPU cores"
    if programs:
        text = f"{cpu_users_words(programs)} used {cores_words(programs, cores)}"
    # who never waits for data lacks the cores for his own main process
    lacks = programs and never_waits_for_data(signals)
    advice = cpu_users_advice(programs) or (() if lacks else (KEEP_OFF,))
    return Candidate("cpu-limit" if lacks else "input-cpu", STRONG, text, numbers, advice)


def cores_full(signals: IntervalSignals) -> Candidate | None:
    """Find that every core was busy, as few are usually, where nobody saw the training's own processes."""
    cpu, usual = signals.within("cpu_pct"), signals.typical("cpu_pct")
    full = signals.share_above("cpu_pct", th.ALL_CORES_PCT)
    if trainer_cpu(signals) is not None or cpu is None or usual is None or cpu - usual < th.OTHERS_CPU_PCT:
        return None
    if full is None or full < th.CORES_TAKEN_SHARE:
        return None
    numbers = evidence(("CPU, all cores", cpu, "%"), usually(usual, "%"))
    text = f"{cpu:.0f} % of all CPU cores were busy, {usual:.0f} % usually"
    return Candidate("input-cpu", PRESENT, text, numbers, (KEEP_OFF,))


def cpu_lost_to_new_programs(signals: IntervalSignals) -> bool:
    """Tell whether programs came that took the cores while the training got less CPU than it usually does.

    Wherever its main process stands then, it waits for a core, but in a function of the user's: that may have asked a
    service for what these programs do.
    """
    own, usual, others = trainer_cpu(signals), usual_trainer_cpu(signals), others_cpu(signals)
    if own is None or not usual or others is None or own > th.LESS_CPU_SHARE * usual:
        return False
    if signals.idle_location is not None and signals.idle_location.is_in_call:
        return False
    return cores_taken(signals) is not None and bool(new_cpu_users(signals, others * (signals.cores or 0)))


def cores_stolen(signals: IntervalSignals) -> Candidate | None:
    """Find that a hypervisor gave CPU time that this machine wanted to others: none of their programs is seen here.

    A machine from which as much is taken all the time is slow all the time: that explains nothing at one moment.
    """
    stolen, wanted = signals.within("cpu_steal_pct"), signals.within("cpu_pct")
    if stolen is None or not wanted or stolen < th.STOLEN_LEAST_PCT or stolen < th.STOLEN_SHARE * wanted:
        return None
    if not signals.is_steady and not risen(stolen, signals.typical("cpu_steal_pct"), th.STOLEN_LEAST_PCT):
        return None
    numbers = evidence(
        ("CPU that went to other virtual machines (steal)", stolen, "% of all cores"),
        *([] if signals.is_steady else [usually(signals.typical("cpu_steal_pct"), "%")]),
        ("CPU, all cores, with that", wanted, "%"),
    )
    share = stolen / wanted
    text = f"the hypervisor gave {100 * share:.0f} % of the CPU time that this machine wanted to other virtual machines"
    return Candidate("cpu-limit", STRONG if share >= th.STOLEN_MUCH_SHARE else LIKELY, text, numbers, (DEDICATED,))


def cores_shared(signals: IntervalSignals) -> Candidate | None:
    """Find that the training waited for cores and got less CPU than it usually does: others had the cores that it uses.

    Of all cores of the machine these may be few: those that its affinity leaves, or its cgroup's share. A program of
    its own that fills them makes it use more. Others must use more by half of what it lost: who is held on fewer cores
    waits for himself. Its cgroup says what it waited itself; what waits on other cores does not count, where that is
    known. A main process that idles waits for something else, on a machine that others keep busy.
    """
    name = _own_pressure(signals)
    pressure, usual_pressure = signals.within(name), signals.typical(name)
    own, usual = trainer_cpu(signals), usual_trainer_cpu(signals)
    if own is None or not usual or usual_pressure is None or own > th.LESS_CPU_SHARE * usual:
        return None
    if (signals.within("main_cpu_pct") or 0.0) < th.IDLE_CPU_PCT:
        return None
    more = _more_of_others(signals)
    if more is None or more < th.TOOK_SHARE * (usual - own):
        return None
    if not risen(pressure, usual_pressure, th.CPU_PRESSURE_PCT):
        return None
    programs = new_cpu_users(signals, more)
    numbers = evidence(
        *cpu_users_evidence(programs),
        ("time with a process waiting for a CPU core", pressure, "%"),
        usually(usual_pressure, "%"),
        ("CPU of the main process and its workers", own, "% of a core"),
        usually(usual, "% of a core"),
        ("more CPU of other processes than is typical", more, "% of a core"),
    )
    cores = usable_cores(signals)
    whose = "the CPU cores" if not cores else f"the {cores:g} CPU cores"
    text = f"{cpu_users_words(programs) or 'other processes'} ran on {whose} that training may use"
    return Candidate("input-cpu", LIKELY, text, numbers, cpu_users_advice(programs) or (SPARE_CORES,))


def _more_of_others(signals: IntervalSignals) -> float | None:
    """Return by how much others used more CPU than is typical (% of a core), None where that is not known."""
    now, cpu, own = others_cpu(signals), signals.typical("cpu_pct"), usual_trainer_cpu(signals)
    if now is None or cpu is None or own is None or not signals.cores:
        return None
    return now * signals.cores - (cpu * signals.cores - own)


def pinned_to_few_cores(signals: IntervalSignals) -> Candidate | None:
    """Find that a process of the training was held on fewer cores than before, by its affinity.

    Ranks share nothing of this: the fewest cores are those of the one that is late.
    """
    held = [
        (now, before)
        for name in ("main_cores", "worker_cores")
        if (now := signals.within(name)) is not None and (before := signals.typical(name)) and now < before - 0.5
    ]
    if not held:
        return None
    now, before = min(held)
    numbers = evidence(
        ("cores that a process of the training may run on (mean)", now, ""),
        usually(before, ""),
        ("time with a process waiting for a CPU core", signals.within("cpu_pressure_pct"), "%"),
    )
    text = f"a process of the training could use only {now:.0f} of {before:.0f} CPU cores"
    sure = STRONG if now <= th.FEW_CORES_SHARE * before else LIKELY
    return Candidate("cpu-limit", sure, text, numbers, _own_affinity(signals))


def own_cores_full(signals: IntervalSignals) -> Candidate | None:
    """Find that the training had fewer cores than it needs: it filled all that it may use by itself.

    A process of one thread needs a core: workers and a main process that are no more than the cores lack none. Workers
    that use more than a core each run threads of a library, one for each core of the machine in each of them.
    """
    trainer, cores = trainer_cpu(signals), usable_cores(signals)
    if trainer is None or not cores or not _fills(signals, trainer / cores):
        return None
    is_quota = signals.cpu_limit is not None and signals.cpu_limit <= cores  # of all processes in sum
    if trainer > th.MOST_OF_CORES_PCT * cores and not is_quota:
        return _of_one_process(signals, cores)
    workers, busiest = loading_workers(signals), signals.within("busiest_worker_cpu_pct") or 0.0
    threads = busiest > th.ONE_THREAD_PCT
    if workers and not threads and workers + max((signals.within("main_cpu_pct") or 0.0) / 100, 1.0) <= cores:
        return None
    numbers = evidence(
        ("CPU of the main process and its workers", trainer, "% of a core"),
        *([("CPU of the busiest worker", busiest, "% of a core")] if threads else []),
        ("cores that they may use", float(cores), ""),
        ("time with a process waiting for a CPU core", signals.within("cpu_pressure_pct"), "%"),
    )
    if threads:
        text = f"{workers:.0f} multi-threaded data-loader workers filled all {cores:g} CPU cores"
        return Candidate("input-cpu", OWN_CORES, text, numbers, (ONE_THREAD,))
    limited = bool(signals.cores and signals.cores > cores)
    text = f"the training used all {cores:g} CPU cores"
    if limited:
        text = f"training may use only {cores:g} of {signals.cores} CPU cores"
        text += " (its cgroup's CPU limit)" if is_quota else ""
    enough = _enough_cores(signals, trainer, cores)
    more = raise_cpu_limit(cores, enough) if limited and is_quota else _more_cores(cores if limited else None, enough)
    advice = (more,) if is_quota else _own_affinity(signals) or _unpin(signals, cores) or (more,)
    return Candidate("cpu-limit" if limited else "input-cpu", OWN_CORES, text, numbers, advice)


def capped_by_limit(signals: IntervalSignals) -> Candidate | None:
    """Find that a limit which nobody recorded gives the training no more CPU, on a machine that has more of it.

    Nobody waits for a core where most are free, unless he may not have it. A quota (of cgroup v1, or of a group that a
    container does not show) gives a process the same amount of CPU in each period, whatever it asks for. A main process
    that has a core all the time is not held: its steady steps take as much CPU each second, and others waited.
    """
    if (signals.within("main_cpu_pct") or 0.0) >= th.MAIN_FULL_PCT:
        return None
    name = _own_pressure(signals)
    pressure, cpu = signals.within(name), signals.within("cpu_pct")
    top, there = signals.cpu_ceiling(th.CEILING_NEAR)
    cores = usable_cores(signals)
    if pressure is None or cpu is None or not cores or there < th.CEILING_SHARE or pressure < th.CPU_PRESSURE_PCT:
        return None
    if cpu > th.CORES_FREE_PCT or not th.CEILING_LEAST_PCT <= top <= th.CORES_FREE_PCT * cores:
        return None
    numbers = evidence(
        ("CPU of the main process and its workers, at its limit", top, "% of a core"),
        ("time at that limit", 100 * there, "%"),
        ("time with a process waiting for a CPU core", pressure, "%"),
        ("CPU, all cores", cpu, "%"),
    )
    text = f"something limited the training to {top / 100:.1f} of {cores:g} CPU cores, though others were free"
    return Candidate("cpu-limit", STRONG if name.startswith("cgroup") else LIKELY, text, numbers)


def _fills(signals: IntervalSignals, used_pct: float) -> bool:
    """Tell whether the training filled its cores: nearly, or mostly while its processes waited for one another's."""
    waits = (signals.within(_own_pressure(signals)) or 0.0) >= th.CPU_PRESSURE_PCT
    return used_pct >= (th.CROWDED_CORES_PCT if waits else th.OWN_CORES_PCT)


def _own_pressure(signals: IntervalSignals) -> str:
    """Return the column that says how long the training waited for a core: its cgroup's, else the machine's."""
    name = "cgroup_cpu_pressure_pct"
    return name if signals.within(name) is not None else "cpu_pressure_pct"


def _of_one_process(signals: IntervalSignals, cores: float) -> Candidate | None:
    """Find that one of several processes lacks cores: all together use more than those of the one that has fewest.

    Which of them waits nobody recorded; that one does, the machine's CPU pressure says. It is a rank where there are
    several, else the main process or a worker.
    """
    pressure = signals.within("cpu_pressure_pct")
    if (pressure or 0.0) < th.RANK_PRESSURE_PCT or not signals.cores:
        return None
    numbers = evidence(
        ("cores that one of its processes may use", float(cores), ""),
        ("time with a process waiting for a CPU core", pressure, "%"),
    )
    place = setting_location_words(signals.setting_locations, AFFINITY)
    if signals.ranks > 1:
        text = f"one rank may use only {cores:g} of {signals.cores} CPU cores"
        short = f"Give each rank its share of the CPU cores{place}: one may use only {cores:g}"
        advice = Advice(f"{short}, and all others wait for it", short=short)
    else:
        text = f"a process of the training may use only {cores:g} of {signals.cores} CPU cores"
        short = f"Let each process use more CPU cores{place}: one may use only {cores:g}"
        advice = Advice(f"{short}. `taskset -cp PID` shows which ones", short=short)
    return Candidate("cpu-limit", OWN_CORES, text, numbers, (advice,))


def _enough_cores(signals: IntervalSignals, trainer: float, cores: float) -> int | None:
    """Return how many cores would keep up with the GPU by what the training uses (% of a core); None where not known.

    Without waiting for data it uses as much in less time. Cores are full from OWN_CORES_PCT on. Where the GPU is idle
    for longer than data is waited for, the main process itself lacks CPU: what it would use then is not known.
    """
    waited, util = signals.waited_share, signals.gpu_within("gpu_util_pct")
    if not signals.is_steady or not waited or waited >= 1 or signals.cores is None or util is None:
        return None
    if waited < th.IDLE_BY_WAITING * (1 - util / 100):
        return None
    enough = ceil(trainer / (1 - waited) / th.OWN_CORES_PCT)
    return enough if cores < enough <= signals.cores else None


def _more_cores(of: float | None, enough: int | None) -> Advice:
    """Return to give the training more cores, `enough` where that is known.

    `of` is how many it may use, None for all: nobody else had them.
    """
    short = "Give the training more CPU cores"
    if of is None:
        return Advice(short, short=short)
    more = f"{short} than the {of:g} that it may use"
    if enough is None:
        return Advice(f"{more}: {ALLOW_MORE_CORES}", short=more)
    more = f"{more}: about {enough} keep up with the GPU"
    return Advice(f"{more}. {ALLOW_MORE_CORES}", short=more)


def raise_cpu_limit(limit: float, enough: int | None = None) -> Advice:
    """Return to raise the limit of a cgroup on CPU time (cores), to `enough` where that is known."""
    short = f"Raise the CPU limit of {limit:g} cores (`limits.cpu`, `--cpus`)"
    short += "" if enough is None else f": about {enough} keep up with the GPU"
    return Advice(f"{short}. {CPU_LIMITS}", short=short)


def _own_affinity(signals: IntervalSignals) -> tuple[Advice, ...]:
    """Return which line of the user's code leaves a process so few cores, nothing where it is none of theirs."""
    place = setting_location_words(signals.setting_locations, AFFINITY)
    short = f"Let each process use more CPU cores{place}"
    return (Advice(f"{short}: code of yours sets its affinity", short=short),) if place else ()


def is_pinned(signals: IntervalSignals) -> bool:
    """Tell whether training may use fewer cores than the recorder beside it: it, or what starts it, has pinned it."""
    cores, given = usable_cores(signals), signals.usable_cores
    return cores is not None and given is not None and cores < given


def _unpin(signals: IntervalSignals, cores: float) -> tuple[Advice, ...]:
    """Return what to remove that pins training to so few cores, where the recorder beside it may use more.

    Variables of OpenMP leave one core. Where they were not looked at, they are named beside what else pins.
    """
    if not is_pinned(signals):
        return ()
    names = signals.thread_binding
    if names and cores <= th.PLACE_CORES:
        place = setting_location_words(signals.setting_locations, *names)
        variables = " and ".join(f"`{name}`" for name in names)
        leave = "they leave" if len(names) > 1 else "it leaves"
        short = f"Unset {variables}{place}: {leave} training {cores:g} of {signals.cores} CPU cores"
        return (Advice(f"{short}. OpenMP binds the thread that imports torch, and workers inherit that", short=short),)
    ways = BY_AFFINITY if names == () or cores > th.PLACE_CORES else (*BY_VARIABLES, *BY_AFFINITY)
    short = f"Remove what pins training to {cores:g} of {signals.cores} CPU cores: {', '.join(ways[:-1])} or {ways[-1]}"
    also = (
        "So do `GOMP_CPU_AFFINITY`, `KMP_AFFINITY`, `numactl`, and Slurm or Docker where they start only the training"
    )
    text = f"{short}. {also}. `taskset -cp PID` shows it"
    return (Advice(text, short=short),)


def lacks_cores_at_start(signals: IntervalSignals, *, began: bool) -> Candidate | None:
    """Find that a start-up filled the few cores that it may use, while its processes waited for one.

    Of a training that began, only where it is pinned: to be given few cores is the usual limit of a start-up. Where
    nobody recorded what it may use, one that filled a few cores together, while most were free, is limited to them.
    """
    trainer, cores = trainer_cpu(signals), usable_cores(signals)
    if trainer is None or not cores or (signals.within(_own_pressure(signals)) or 0.0) < th.CPU_PRESSURE_PCT:
        return None
    limited = capped_by_limit(signals)
    if limited is not None and not began and not is_pinned(signals):
        of = f"{signals.cpu_ceiling(th.CEILING_NEAR)[0] / 100:.1f}"
        short = f"Give the training more CPU cores than {of}"
        return replace(limited, advice=(Advice(f"{short}: {ALLOW_MORE_CORES}", short=short),))
    if trainer > th.MOST_OF_CORES_PCT * cores or (began and not is_pinned(signals)):
        return None
    found = own_cores_full(signals)
    return found if found is not None and found.name == "cpu-limit" else None


def cores_short(signals: IntervalSignals) -> bool:
    """Tell whether the training got fewer cores than it needs, taken by others or by a quota."""
    if is_in_unusual_place(signals):
        return False
    return any(find(signals) is not None for find in (cores_taken, cores_stolen, own_cores_full, capped_by_limit))

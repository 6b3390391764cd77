"""Configuration problem: shared memory, threads and cores that are not what the loader's workers need."""

from gpu_report.analyse.causes.confidence import LIKELY
from gpu_report.analyse.causes.host import ALLOW_MORE_CORES, raise_cpu_limit
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.setup.check import SHM, SetupIssue, host_mean, shm_room_gib
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.columns import column_values
from gpu_report.model import Advice, Cause
from gpu_report.wording import memory_words, setting_location_words

MORE_CORES = f"Give the training more CPU cores: {ALLOW_MORE_CORES}"
BUS_ERRORS = {"RuntimeError", "OSError"}  # what torch makes of a worker that met one, or of a file that has no room


def shared_memory(context: Context, training: Training) -> SetupIssue | None:
    """Find a /dev/shm that cannot hold the batches that the workers may leave there, or that did run full."""
    total, need = context.run.recording.shm_total_mib, _batches_mib(training)
    if total is None or need is None:
        return None
    lowest = min(column_values(context.run.host, "shm_free_mib", [training.span]).tolist(), default=None)
    full = lowest is not None and lowest < th.SHM_LEAST_SHARE * total
    if need <= total and not full:
        return None
    failed, larger = need > total and _failed(training), f"`--shm-size={shm_room_gib(need)}g`"
    workers = f"{training.workers} workers"
    text = f"{SHM} has {memory_words(total)}; the batches of {workers} may need {memory_words(need)}"
    if full:
        text = f"{SHM} was full ({memory_words(total)}): data-loader workers keep their batches there"
    return SetupIssue(
        "warning" if full or failed else "info",
        f"{text} (less: bus error)" if failed and not full else text,
        (full, failed) if full else (failed, workers, memory_words(need)),
        evidence(
            (f"size of {SHM}", total, "MiB"),
            ("least of it that was free", lowest, "MiB"),
            ("what full queues of batches take", need, "MiB"),
        ),
        (Advice(f"Start the container with {larger} or `--ipc=host`, or train with fewer workers"),),
    )


def threads(context: Context, training: Training) -> SetupIssue | None:
    """Find more threads for arithmetic than there are cores. One is no fault: ultralytics and torchrun set it."""
    asked = (training.quantity(name) for name in ("omp_num_threads", "torch_threads"))
    each = max((number for number in asked if number is not None), default=None)
    usable = context.run.recording.usable_cores
    if each is None or usable is None or each <= 1 or each * training.ranks_here <= usable:
        return None
    main, waited = host_mean(context, training, "main_cpu_pct"), _waited_for_cores(context, training)
    used = (main or 0.0) >= th.THREADS_USED_PCT and (waited or 0.0) >= th.CORES_WAITED_PCT
    place = setting_location_words(training.setting_locations, "threads")
    fit = max(int(usable) // training.ranks_here, 1)
    times = f" in each of {training.ranks_here} processes" if training.ranks_here > 1 else ""
    return SetupIssue(
        "warning" if used else "info",
        f"OMP_NUM_THREADS asks for {each:.0f} threads{times}; only {_cores(usable)} may be used",
        (each, training.ranks_here),
        evidence(
            ("CPU of the main process in training", main, "% of a core"),
            ("training time with a process waiting for a CPU core", waited, "%"),
        ),
        (Advice(f"Set OMP_NUM_THREADS={fit}{place}, or leave it to ultralytics, which sets 1"),),
    )


def cores(context: Context, training: Training) -> SetupIssue | None:
    """Find workers at the limit of the cores that a quota or an affinity leaves, which ultralytics does not see."""
    usable, shown = context.run.recording.usable_cores, context.run.recording.cores_online
    workers = training.quantity("workers")
    if usable is None or shown is None or workers is None or usable >= shown or workers * training.ranks_here <= usable:
        return None
    main, loader = (host_mean(context, training, name) for name in ("main_cpu_pct", "workers_cpu_pct"))
    waited = _waited_for_cores(context, training)
    if main is None or loader is None or waited is None:
        return None
    used = main * training.ranks_here + loader  # `main` is the busiest rank's
    if used < th.CORES_FULL_PCT * usable or waited < th.CORES_WAITED_PCT:
        return None
    all_workers = f"{workers * training.ranks_here:.0f} data-loader workers"
    # fewer workers load no more images: that is no advice
    is_quota = context.run.recording.cpu_limit == usable
    return SetupIssue(
        "warning",
        f"{all_workers} shared {_cores(usable)} (of {shown} in the machine) and needed more",
        (workers * training.ranks_here,),
        evidence(
            ("CPU of the main process and its workers in training", used, "% of a core"),
            ("training time with a process waiting for a CPU core", waited, "%"),
        ),
        (Advice(raise_cpu_limit(usable).text if is_quota else MORE_CORES),),
        Cause("cpu-limit", LIKELY, f"its processes used all {_cores(usable)} that they may use"),
    )


def _failed(training: Training) -> bool:
    """Tell whether an exception ended a training that a bus error becomes."""
    main = training.rank_group.main if training.rank_group else None
    return main is not None and main.ended == "exception" and main.error in BUS_ERRORS


def _batches_mib(training: Training) -> float | None:
    """Return what the queues of all loaders of this machine take when they are full: each worker's batches."""
    workers, prefetch, batch_mib = training.workers, training.quantity("prefetch"), training.batch_mib
    if not workers or prefetch is None or batch_mib is None:
        return None
    return workers / training.ranks_here * prefetch * batch_mib


def _waited_for_cores(context: Context, training: Training) -> float | None:
    """Return how long processes of the training waited for a core: its own cgroup tells best, else the machine."""
    own = host_mean(context, training, "cgroup_cpu_pressure_pct")
    return own if own is not None else host_mean(context, training, "cpu_pressure_pct")


def _cores(count: float) -> str:
    return f"{count:g} core" if count == 1 else f"{count:g} cores"

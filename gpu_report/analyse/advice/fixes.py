"""What to change, in the user's own arguments: values computed from the run, with what each is likely to reach.

A fix is offered only for an argument that stands in the run's own args.yaml (reference: ultralytics ends a run on an
argument that it does not know, and its own answers have named several that never existed).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import ceil, inf

from gpu_report.analyse.advice import thresholds as th
from gpu_report.analyse.advice.larger_batches import LargerBatches
from gpu_report.analyse.advice.run_settings import RunSettings
from gpu_report.analyse.causes import explain
from gpu_report.analyse.causes.host import cores_short
from gpu_report.analyse.causes.main_process import launches_too_much
from gpu_report.analyse.causes.slow_modes import is_slower_since_first, modes_that_slow
from gpu_report.analyse.causes.thresholds import WORKER_FULL_PCT
from gpu_report.analyse.rules.setup.check import SHM, shm_room_gib
from gpu_report.analyse.rules.thresholds import SHM_ROOM
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.model import Advice, Setting, SpeedupLimit
from gpu_report.wording import MIB_PER_GIB, amount, counted, memory_words

IN_MEMORY = frozenset({"ram", "True", "true"})  # values of `cache`


@dataclass(frozen=True)
class Fix:
    """An argument, its value now and the one to try, why in one sentence, and the epoch that it is likely to reach.

    `epoch_s` is the training part in seconds, None where it cannot be worked out. Then `short` may say it all. `also`
    are arguments that are set with it.
    """

    argument: str
    from_value: str
    to_value: str
    reason: str
    epoch_s: float | None = None
    short: str = ""
    also: tuple[Setting, ...] = ()

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Return all arguments that it sets."""
        return Setting(self.argument, self.from_value, self.to_value), *self.also


def epoch_without_data_wait_s(limit: SpeedupLimit) -> float:
    """Return the training part of an epoch (s) whose loader keeps up: a typical one without its waits, and some more.

    The shortest one is a limit: epochs differ without their waits, too. Where waits are unknown there is but the limit.
    """
    without_waits_s = limit.epoch_s_now - limit.waits_s if limit.waits_s else 0.0
    return min(th.REACHED * max(without_waits_s, limit.epoch_s_at_best), limit.epoch_s_now)


def more_workers(settings: RunSettings, limit: SpeedupLimit, signals: IntervalSignals) -> Fix | None:
    """Offer the loader workers that keep up with the GPU, as far as cores and ultralytics allow.

    Workers that are busy all the time deliver in proportion to their number, unless they wait for each other; so many
    are needed as the epoch now is longer than at best, and a little more.
    """
    now, free = max(settings.workers or 0, 1), settings.cores_free
    if settings.workers is None or free is None or not _may_help(settings, signals):
        return None
    needed = ceil(now * limit.speed_up_at_most * th.WORKERS_MARGIN)
    waits = limit.cause == "input-latency"  # then it is no matter of cores
    free = _workers_run_by(free, now, signals) if waits else free
    most = free if settings.workers_most is None else min(free, settings.workers_most)
    try_ = min(needed, most)
    if try_ <= now:
        return None
    expected_s = max(epoch_without_data_wait_s(limit), limit.epoch_s_now * now / try_)
    each = " per GPU" if settings.ranks > 1 else ""
    allowed = f"try {try_} first" if waits else f"the cores allow {try_}"
    allowed = allowed if most == free else f"ultralytics allows {try_}, its share of all cores"
    enough = f"{try_} would keep up with the GPU" if try_ == needed else f"{needed} would keep up, {allowed}"
    workers = counted(settings.workers, "data-loader worker")
    reason = f"{workers}{each} on {settings.cores} cores {'is' if settings.workers == 1 else 'are'} too few: {enough}"
    reason += _shared_memory(settings, try_)
    return Fix("workers", str(settings.workers), str(try_), reason, expected_s)


def _shared_memory(settings: RunSettings, workers: int) -> str:
    """Return what /dev/shm must hold for so many workers, where it does not: they would die of a bus error."""
    need_mib = settings.batches_mib(workers)
    if need_mib is None or settings.shm_mib is None or SHM_ROOM * need_mib <= settings.shm_mib:
        return ""
    has = f"{SHM} has only {memory_words(settings.shm_mib)}"
    return f". {has}: start the container with `--shm-size={shm_room_gib(need_mib)}g`, too"


def _workers_run_by(cores: int, workers: int, signals: IntervalSignals) -> int:
    """Return how many workers some cores run where these mostly wait: by what CPU each of them takes now."""
    each = (signals.within("workers_cpu_pct") or 0.0) / 100 / workers
    return min(int(cores / max(each, th.CORE_OF_A_WORKER)), th.MORE_AT_ONCE * workers)


def cache_in_memory(settings: RunSettings, limit: SpeedupLimit, signals: IntervalSignals) -> Fix | None:
    """Offer to keep the images in memory, where they fit: nothing is read or decoded after the first epoch."""
    needed_mib, free_mib = settings.cache_that_fits_mib, settings.memory_free_mib
    reading = signals.loader.reading if signals.loader is not None else None
    if needed_mib is None or free_mib is None or settings.cached or not settings.has("cache"):
        return None
    # without stacks nobody knows what workers that fill the cores compute
    if cores_short(signals) if reading is None else reading < th.READING_SHARE:
        return None
    held = f"{needed_mib / MIB_PER_GIB:.1f} GiB of images fit into the {free_mib / MIB_PER_GIB:.0f} GiB of free memory"
    if reading is not None:
        held = f"Reading and decoding images takes {100 * reading:.0f} % of the workers' time. {held}"
    return Fix("cache", str(settings.args.get("cache")), "ram", held, _without_reading_s(settings, limit, signals))


def cache_images(settings: RunSettings, signals: IntervalSignals) -> Advice | None:
    """Return to cache the images where workers mostly read and decode them: in memory if they fit, else on the disk."""
    loader = signals.loader
    if loader is None or loader.reading < th.READING_SHARE or settings.cached or not settings.has("cache"):
        return None
    to = "disk" if settings.cache_that_fits_mib is None else "ram"
    short = f"Cache the images (`cache={to}`)"
    why = f"reading and decoding takes {100 * loader.reading:.0f} % of the workers' time"
    return Advice(f"{short}: {why}. A format that decodes faster helps, too", "cache", "False", to, short=short)


def no_cache_in_memory(settings: RunSettings, _: SpeedupLimit, __: IntervalSignals) -> Fix | None:
    """Offer to keep no decoded images in memory that is short; what that reaches depends on what decodes them then.

    Ultralytics asks only whether they fit as the training begins: others may take that memory later. On a disk they are
    several times as large as the files that they come from.
    """
    now = str(settings.args.get("cache"))
    if now not in IN_MEMORY or settings.cache_mib is None:
        return None
    needed = settings.cache_mib / MIB_PER_GIB
    reason = f"up to {needed:.1f} GiB of decoded images are kept in host memory, which is short"
    return Fix("cache", now, "False", reason, short=f"Set `cache=False` (now {now}): host memory is short")


def larger_batch(settings: RunSettings, limit: SpeedupLimit, signals: IntervalSignals) -> Fix | None:
    """Offer a larger batch: fewer, larger kernels for the same images, which the main process launches as fast.

    Up to `nbs` images (64) the optimiser sees no difference, since ultralytics accumulates gradients up to there. What
    the main process does image by image takes as long for each, and so does the GPU once its SMs are full. No batch is
    offered that the loader could not feed.
    """
    batch, nominal = settings.batch, settings.args.get("nbs")
    full = limit.cause == "main-process"
    if full and is_slower_since_first(signals):
        return None
    if full and (modes_that_slow(signals) or launches_too_much(signals) or not explain(signals).is_launching):
        return None
    if not batch or not settings.has("batch") or not isinstance(nominal, int) or not settings.gpu_peak_mib:
        return None
    by_memory = th.BATCH_MEMORY_SHARE * (settings.gpu_total_mib or 0.0) / settings.gpu_peak_mib * batch
    by_images = (settings.images or 0) / th.BATCHES_AT_LEAST
    batches, most = LargerBatches(settings, limit, signals, batch, nominal), min(by_memory, by_images)
    found = batches.worth_trying(most)
    fed = _with_more_workers(batches, most, best_s=found[1] if found else limit.epoch_s_now)
    return fed or (None if found is None else _of_batch(batches, *found))


def _of_batch(batches: LargerBatches, try_: int, expected_s: float) -> Fix:
    reason = f"a batch of {batches.batch} is too small for this GPU"
    steps = f"with {try_} the optimizer steps as often as now, every {batches.nominal} images (`nbs`)"
    return Fix("batch", str(batches.batch), str(try_), f"{reason}; {steps}", expected_s)


def _with_more_workers(batches: LargerBatches, most: float, best_s: float) -> Fix | None:
    """Offer a larger batch together with the workers that feed it, where that is faster than an epoch of `best_s`."""
    settings, signals = batches.settings, batches.signals
    workers_most = _most_workers(settings, signals)
    if not settings.workers or workers_most is None or workers_most <= settings.workers or not batches.workers_compute:
        return None
    found = batches.fed_by(workers_most).worth_trying(most)
    workers = settings.workers if found is None else batches.workers_for(found[0], workers_most)
    if found is None or workers == settings.workers:
        return None
    expected_s = batches.fed_by(workers).epoch_s(found[0])
    if not batches.is_worth(expected_s, best_s):
        return None
    fix = _of_batch(batches, found[0], expected_s)
    fed = f"{counted(settings.workers, 'data-loader worker')} could not feed it: {workers} would"
    return replace(fix, reason=f"{fix.reason}. {fed}", also=(Setting("workers", str(settings.workers), str(workers)),))


def _may_help(settings: RunSettings, signals: IntervalSignals) -> bool:
    """Tell whether more workers can deliver more: not where they lack cores, or wait for what all of them share."""
    shares = settings.loader_rate is not None or (signals.loader is not None and signals.loader.waits_for_shared)
    return settings.has("workers") and not cores_short(signals) and not shares


def _most_workers(settings: RunSettings, signals: IntervalSignals) -> int | None:
    """Return how many workers the cores and ultralytics allow, None where that is not known or more would not help."""
    if settings.workers is None or settings.cores_free is None or not _may_help(settings, signals):
        return None
    return settings.cores_free if settings.workers_most is None else min(settings.cores_free, settings.workers_most)


def workers_for_small_steps(settings: RunSettings, limit: SpeedupLimit, signals: IntervalSignals) -> Fix | None:
    """Offer more workers where steps are small, and the trainer waits for data in between: those waits go.

    Workers load at the ends of epochs, too: as many are needed as epochs get shorter, and a little more.
    """
    now, most, whole_s = settings.workers, _most_workers(settings, signals), limit.whole_s
    if not now or most is None or now >= most or whole_s < th.WAITS_LEAST * (whole_s - limit.waits_s):
        return None
    try_ = min(max(ceil(now * whole_s / (whole_s - limit.waits_s) * th.WORKERS_MARGIN), now + 1), most)
    reason = f"{counted(now, 'data-loader worker')} kept the trainer waiting for {amount(limit.waits_s, 's')} an epoch"
    return Fix("workers", str(now), str(try_), reason, limit.epoch_s_now - limit.waits_s)


Offer = Callable[[RunSettings, SpeedupLimit, IntervalSignals], Fix | None]

# What is worth trying against each cause, in order. A cause that no argument can remove has none.
# Images in memory do little for workers that compute: two of them took 17.0 s an epoch without and 14.3 s with
# (sample_runs/ab-workers-2, ab-workers-2-ram), so that it is what is left where the cores are used up.
FIXES: Mapping[str, tuple[Offer, ...]] = {
    "input-cpu": (more_workers, cache_in_memory),
    "input-storage": (cache_in_memory,),
    "input-latency": (more_workers, cache_in_memory),
    "cpu-limit": (cache_in_memory,),
    "memory-pressure": (no_cache_in_memory,),
    "launch-bound": (larger_batch, workers_for_small_steps),
    "main-process": (larger_batch,),
}


def find_fix(
    settings: RunSettings, limit: SpeedupLimit, signals: IntervalSignals, opposed: Callable[[Setting], bool]
) -> Fix | None:
    """Return what to try against a limit's cause, None where nothing can be said; nothing that something is opposed to.

    That is the first, or one that reaches far more, where stacks say what the data-loader workers do.
    """
    offers = (offer(settings, limit, signals) for offer in FIXES.get(limit.cause, ()))
    found = [fix for fix in offers if fix is not None and not any(map(opposed, fix.settings))]
    if not found or signals.loader is None or found[0].epoch_s is None:
        return next(iter(found), None)
    best = min(found, key=lambda fix: fix.epoch_s or inf)
    return best if (best.epoch_s or inf) < th.MUCH_FASTER_SHARE * found[0].epoch_s else found[0]


def _without_reading_s(settings: RunSettings, limit: SpeedupLimit, signals: IntervalSignals) -> float | None:
    """Return the epoch whose workers never read: what they computed for it besides, shared among them.

    Where they computed all the time, less of it remains by reading and decoding, too: as much as their stacks say. None
    where these are not known.
    """
    cpu, busiest = signals.within("workers_cpu_pct"), signals.within("busiest_worker_cpu_pct")
    if cpu is None or busiest is None or not settings.workers:
        return None
    if busiest < WORKER_FULL_PCT:
        return max(limit.epoch_s_at_best, limit.epoch_s_now * cpu / 100 / (settings.workers * settings.ranks))
    if signals.loader is None:
        return None
    return max(epoch_without_data_wait_s(limit), limit.epoch_s_now * (1 - signals.loader.reading))

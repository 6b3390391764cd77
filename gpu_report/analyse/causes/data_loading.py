"""Causes in the loader: its storage, its CPU, workers that nothing answers."""

from gpu_report.analyse.causes import thresholds as th
from gpu_report.analyse.causes.candidate import (
    Candidate,
    idle,
    loading_workers,
    main_fills_one_core,
    main_waits,
    never_waits_for_data,
    others_cpu,
    risen,
    waits_for_data,
    waits_for_loader,
    workers_have_spare_cpu,
)
from gpu_report.analyse.causes.confidence import LIKELY, POSSIBLE, STRONG, SUPPORTED, WEAK
from gpu_report.analyse.causes.cpu_users import use_other_cores
from gpu_report.analyse.causes.image_storage import image_storage
from gpu_report.analyse.causes.slower_storage import advice_on_remote, read_words, stood_words
from gpu_report.analyse.evidence import evidence, usually
from gpu_report.analyse.signals.host.kernel_events import cache_dropped
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.thresholds import IDLE_SHARE, MOSTLY_SHARE
from gpu_report.model import Advice, Evidence, KernelEvent
from gpu_report.wording import counted, setting_location_words

LOOK_AT_WORKERS = Advice(
    "Watch the data-loader workers in `top`. Near 100 % of a core each they lack CPU, well under it images come late",
    short="Find what the data-loader workers wait for (`top` shows their CPU)",
)

# Of workers that have nothing left to do: an exception in the thread that sends batches loses one, and ends nothing.
LOST_BATCH = Advice(
    "Look for an error of a data-loader worker in the output: they wait for work, and a batch never came. A full "
    "`/dev/shm` does that, for one (`df -h /dev/shm`)",
    short="Look for an error of a data-loader worker in the output: a batch never came",
)
WAITED_KEY = "waited_for_data_pct"  # of evidence: of the interval, what training waited for data


def input_storage(signals: IntervalSignals) -> Candidate | None:
    """Find that the loader waited for a disk: pressure of io, with workers blocked on a device or bytes being read."""
    pressure, full = signals.within("io_pressure_pct"), signals.within("io_full_pressure_pct")
    blocked, read = (
        signals.within("workers_blocked"),
        _most(signals.within("trainer_read_mib_s"), signals.within("disk_read_mib_s")),
    )
    waited = risen(pressure, signals.typical("io_pressure_pct"), th.IO_PRESSURE_PCT)
    touched = (blocked or 0.0) >= th.WORKERS_BLOCKED or (read or 0.0) >= th.READ_MIB_S
    if not waited or not touched or main_fills_one_core(signals) or never_waits_for_data(signals):
        return None
    numbers = evidence(
        ("time with a process waiting for input or output", pressure, "%"),
        ("time with all processes waiting for input or output", full, "%"),
        ("workers blocked on a device (mean)", blocked, ""),
        ("read from storage by all programs", read, "MiB/s"),
    )
    dropped, sure = cache_dropped(signals.kernel), (blocked or 0.0) >= th.WORKERS_BLOCKED
    text = f"the data loader waited for {_where(signals) if sure else 'storage'}"
    if dropped is None and (stood := stood_words(signals)):
        text = stood
    sure = sure or dropped is not None
    if dropped is not None:
        text += (
            f": {_who(dropped)} emptied the page cache{_often(dropped)}, so that files were read from the disk again"
        )
    advice = advice_on_remote(signals) if dropped is None else (_keep_cache(dropped),)
    return Candidate("input-storage", STRONG if sure else LIKELY, text, numbers, advice)


def workers_stuck(signals: IntervalSignals) -> Candidate | None:
    """Find workers with time to spare in state D for much of it: they wait for a filesystem, whatever disks read.

    Of 9p, FUSE and network drives the kernel counts neither pressure nor bytes: none there is no proof against them.
    """
    blocked, there = signals.within("workers_blocked"), loading_workers(signals)
    if blocked is None or not there or blocked < max(th.STUCK_SHARE * there, th.WORKERS_BLOCKED):
        return None
    if never_waits_for_data(signals) or main_fills_one_core(signals) or not workers_have_spare_cpu(signals):
        return None
    main = signals.within("main_cpu_pct") or 0.0
    if signals.waited_share is None and main >= th.MAIN_FULL_PCT:  # who waits for data leaves its core
        return None
    is_new = risen(blocked, signals.typical("workers_blocked"), th.WORKERS_BLOCKED)
    if not is_new and not signals.is_steady and not waits_for_data(signals):  # so it was while utilisation was higher
        return None
    if (signals.within("memory_pressure_pct") or 0.0) >= th.MEMORY_PRESSURE_PCT or signals.within("swap_in_mib_s"):
        return None
    wait = signals.waited_share
    numbers = evidence(
        *(() if wait is None else (_waited(wait),)),
        (f"workers in uninterruptible sleep (state D), of {there:.0f}, mean", blocked, ""),
        ("CPU of all workers", signals.within("workers_cpu_pct"), "% of a core"),
        ("time with a process waiting for input or output", signals.within("io_pressure_pct"), "%"),
    )
    text = stood_words(signals) or f"the data-loader workers waited for {_where(signals)}"
    return Candidate("input-storage", STRONG, text, numbers, advice_on_remote(signals))


def _where(signals: IntervalSignals) -> str:
    """Return what the loader waited for; of a disk of this machine that it waits for all the time what that gives."""
    storage, read = image_storage(signals), signals.within("trainer_read_mib_s")
    if storage is None:
        return "storage"
    if not signals.is_steady or not storage.device or read is None or read < th.READ_MIB_S:
        return storage.words
    return f"{storage.words}, which gave {read_words(read)}"


def mapped_files(signals: IntervalSignals) -> Candidate | None:
    """Find that workers, with time to spare, waited for pages of files that they map into memory.

    No pressure shows it where those lie on a network drive, or behind a program (FUSE). Pages that came back from swap
    are of no file.
    """
    wait, there = signals.waited_share, loading_workers(signals)
    faults = signals.within("workers_major_faults")
    if (
        wait is None
        or not waits_for_data(signals)
        or faults is None
        or not there
        or not workers_have_spare_cpu(signals)
    ):
        return None
    if faults < th.MAJOR_FAULTS_PER_S * there or _swapped_in(signals) >= th.SWAPPED_SHARE * faults:
        return None
    numbers = evidence(
        _waited(wait),
        (f"pages that all {there:.0f} workers waited for", faults, "a second"),
        ("CPU of all workers", signals.within("workers_cpu_pct"), "% of a core"),
    )
    text = "the data-loader workers waited for page faults: files mapped into memory were read from disk"
    return Candidate("input-storage", STRONG, text, numbers)


def _swapped_in(signals: IntervalSignals) -> float:
    """Return how many pages a second came back from swap, for whichever process."""
    return (signals.within("swap_in_mib_s") or 0.0) * th.PAGES_OF_A_MIB


def loader_cpu_bound(signals: IntervalSignals) -> Candidate | None:
    """Find the loader's workers at their limit: a core each, or most of it while the main process waited for them.

    One that is full while the others wait for it holds them all up: batches come in order.
    """
    busiest, total = signals.within("busiest_worker_cpu_pct"), signals.within("workers_cpu_pct")
    waited = waits_for_data(signals)
    there = loading_workers(signals)
    if busiest is None or total is None or signals.loader_workers == 0 or never_waits_for_data(signals):
        return None
    if _asks_one(signals, there):
        return None
    is_full = busiest >= th.WORKER_FULL_PCT
    are_full = total >= th.WORKERS_FULL_PCT * min(there, signals.usable_cores or signals.cores or there)
    if not (is_full or (waited and there)) or not (are_full or (waited and is_full)):
        return None
    numbers = evidence(
        ("CPU of the busiest worker", busiest, "% of a core"),
        ("CPU of all workers", total, "% of a core"),
        ("CPU, all cores", signals.within("cpu_pct"), "%"),
    )
    text = f"{_workers(signals, there)} could not keep up" if are_full else "one data-loader worker at a time was full"
    return Candidate("input-cpu", SUPPORTED if are_full else LIKELY, text, numbers, _slow_images(signals))


def workers_always_busy(signals: IntervalSignals) -> bool:
    """Tell whether all workers use a core each all the time: those whose queue is full wait."""
    total, there = signals.within("workers_cpu_pct"), loading_workers(signals)
    return bool(there) and total is not None and total >= th.WORKER_FULL_PCT * there


def _workers(signals: IntervalSignals, there: float) -> str:
    """Return how many workers loaded, those of all ranks, and how many that is for each where there are several."""
    number = max(round(there), 1)
    each = f" ({number // signals.ranks} per GPU)" if signals.ranks > 1 and number % signals.ranks == 0 else ""
    return f"{counted(number, 'data-loader worker')}{each}"


def loader_in_main(signals: IntervalSignals) -> Candidate | None:
    """Find that there is no worker: the main process loads the data itself, and nothing else goes on meanwhile."""
    wait = signals.waited_share
    if signals.loader_workers != 0 or wait is None or wait < th.DATA_CAME_SHARE:
        return None
    main = signals.within("main_cpu_pct")
    computes = main is None or main >= th.LOADS_CPU_SHARE * 100 * wait
    numbers = evidence(
        ("the main process loaded data", 100 * wait, "% of this time"),
        ("CPU of the main process", main, "% of a core"),
    )
    text = "the main process loaded the data itself, without any worker"
    advice = _slow_images(signals) if computes else ()
    return Candidate("input-cpu" if computes else "input-latency", SUPPORTED, text, numbers, advice)


def _slow_images(signals: IntervalSignals) -> tuple[Advice, ...]:
    """Return what to do about images that take long only now and then, where no other program had the cores.

    Or about workers, where some of them are gone. A loader at its limit kept up before: what it loaded then takes
    longer. None of a limit that lasts.
    """
    others = others_cpu(signals) or 0.0
    theirs = others >= th.OTHERS_CPU_PCT and not use_other_cores(signals, others * (signals.cores or 0))
    if signals.is_steady or theirs:
        return ()
    left, usual = round(loading_workers(signals)), round(_usual_workers(signals))
    if left < usual:
        short = f"Find why {usual - left} of {usual} data-loader workers ended"
        return (
            Advice(f"{short}. One that is killed (host memory, a full `/dev/shm`) loads nothing more", short=short),
        )
    again = ". With `rect=True` images come by shape, so the same ones come together in each epoch"
    short = "Find why some images took longer to load"
    why = "large files, a slow format, or your own augmentation"
    return (Advice(f"{short} ({why}){again if signals.is_rect else ''}", short=short),)


def _usual_workers(signals: IntervalSignals) -> float:
    usual = signals.typical("workers") or 0.0
    return usual if not signals.loader_workers else min(usual, signals.loader_workers)


def loader_idle(signals: IntervalSignals) -> Candidate | None:
    """Find that workers went idle before the GPU did: what they read from did not answer, and the queue ran dry.

    Where the main process stood by its stacks decides: in its loader, or elsewhere. That it waits for them all the time
    is no stall: the images come, and too slowly.
    """
    main, workers = signals.within("main_cpu_pct"), signals.within("workers_cpu_pct")
    lead, in_loader = signals.workers_lead_s(), signals.idle_location.in_loader if signals.idle_location else None
    if signals.is_steady or main is None or workers is None or not idle(signals) or never_waits_for_data(signals):
        return None
    if (lead is None and in_loader is None) or (in_loader is not None and in_loader < MOSTLY_SHARE):
        return None
    surge = signals.workers_surge()
    first, refilled = lead is not None and lead >= th.LEAD_S, surge is not None and surge >= th.SURGE_FACTOR
    if not first and not refilled and in_loader is None:
        return None
    numbers = evidence(
        (
            "the main process waited for the loader",
            None if in_loader is None else 100 * in_loader,
            "% of the idle time",
        ),
        ("workers idle before the GPU fell", lead, "s"),
        ("CPU of all workers", workers, "% of a core"),
        usually(signals.typical("workers_cpu_pct"), "% of a core"),
        ("CPU of all workers right after it, compared with typical", surge, "times as much"),
    )
    text = "the data-loader workers blocked first, using neither CPU nor disk (network drive, lock, sleep)"
    sure = STRONG if in_loader is not None else SUPPORTED if first and refilled else POSSIBLE
    return Candidate("input-stalled", sure, text, numbers)


def loader_hung(signals: IntervalSignals) -> Candidate | None:
    """Find that no image came at all: the trainer was in its loader throughout, and its GPU did nothing."""
    idle_location, util_pct = signals.idle_location, signals.gpu_within("gpu_util_pct")
    if (
        idle_location is None
        or idle_location.in_loader < th.HUNG_SHARE
        or util_pct is None
        or util_pct > th.HUNG_UTIL_PCT
    ):
        return None
    # a batch was counted, or is of a validation, whose batches are not
    if not signals.is_steady or signals.step_s is not None or signals.phases.get("validation"):
        return None
    if not loading_workers(signals) or not workers_have_spare_cpu(signals):
        return None
    numbers = evidence(
        ("the main process waited for the loader", 100 * idle_location.in_loader, "% of this time"),
        ("CPU of all workers", signals.within("workers_cpu_pct"), "% of a core"),
    )
    lost = () if signals.loader is not None else (LOST_BATCH,)
    return Candidate("input-stalled", STRONG, "the data-loader workers delivered no more images", numbers, lost)


def loader_latency(signals: IntervalSignals) -> Candidate | None:
    """Find that the trainer waited for workers that themselves waited most of the time, for neither CPU nor disk.

    Workers that stand still use next to no CPU, too. Where it is not seen that they do, images come, only slowly.
    """
    wait, could = signals.waited_share, 100 * loading_workers(signals)
    workers = signals.within("workers_cpu_pct")
    if wait is None or not waits_for_data(signals) or workers is None or not main_waits(signals):
        return None
    pressures = (signals.within(f"{kind}_pressure_pct") or 0.0 for kind in ("io", "cpu", "memory"))
    may_stall = workers < th.LATENCY_WORKERS_LEAST_SHARE * could or signals.workers_lead_s() is not None
    if _stand_still(signals):
        return None
    if (
        not could
        or not workers_have_spare_cpu(signals)
        or any(pressure >= th.QUIET_PRESSURE_PCT for pressure in pressures)
    ):
        return None
    numbers = evidence(
        _waited(wait),
        (f"CPU of all {could / 100:.0f} workers meanwhile", workers, "% of a core"),
        ("time in which a process waited for input or output", signals.within("io_pressure_pct"), "%"),
    )
    unsure = LIKELY if waits_for_loader(signals) else POSSIBLE
    sure = unsure if may_stall and not signals.is_steady else SUPPORTED
    return Candidate("input-latency", sure, _why_slow(signals), numbers)


def many_tensors(signals: IntervalSignals) -> Candidate | None:
    """Find batches of so many tensors that to take them from the workers fills much of each step.

    One thread of the main process does that, and keeps Python's lock from the one that trains: whether batches come
    late, or steps are slow, depends on how many are fetched in advance.
    """
    count, share = signals.batch_tensors or 0.0, handed_over_share(signals)
    if not signals.is_steady or share < th.HANDED_OVER_SHARE:
        return None
    numbers = evidence(
        ("tensors of a batch", count, ""),
        ("to hand them over takes, by what one takes", 1000 * _hand_over_s(signals), "ms a batch"),
        ("a training step takes", 1000 * (signals.step_s or 0.0), "ms"),
        ("training waited for data", None if signals.waited_share is None else 100 * signals.waited_share, "%"),
        ("CPU of the main process", signals.within("main_cpu_pct"), "% of a core"),
    )
    text = f"each batch was handed over as {count:,.0f} small tensors, one by one"
    return Candidate(
        "many-tensors", STRONG if share >= MOSTLY_SHARE else SUPPORTED, text, numbers, _one_tensor(signals)
    )


def handed_over_share(signals: IntervalSignals) -> float:
    """Return the share (0 to 1) of a step that handing over its many tensors takes, 0 of few, or where not known.

    Of a training that waits for them it is their time, else the CPU time that its main process lacks.
    """
    if (signals.batch_tensors or 0.0) < th.MANY_TENSORS or not signals.loader_workers or not signals.step_s:
        return 0.0
    return min(_hand_over_s(signals) / signals.step_s, 1.0)


def _hand_over_s(signals: IntervalSignals) -> float:
    return (signals.batch_tensors or 0.0) * (th.HAND_OVER_WAITS_S if waits_for_data(signals) else th.HAND_OVER_S)


def _one_tensor(signals: IntervalSignals) -> tuple[Advice, ...]:
    key = f" of '{signals.batch_key}'" if signals.batch_key else ""
    place = setting_location_words(signals.setting_locations, "batch_tensors")
    short = f"Hand over one tensor{key} for each batch, not {signals.batch_tensors or 0:,.0f}{place}"
    why = "Let your data set return NumPy arrays or numbers, and stack them in `collate_fn`"
    return (Advice(f"{short}. {why}. Each tensor takes a shared-memory file of its own", short=short),)


def waited_for_data(signals: IntervalSignals) -> Candidate | None:
    """Find that training waited for data, which is known, where nothing shows what its workers waited for.

    A machine that others keep busy hides it: their pressure is none of the loader's. So does a recorder that sees no
    processes of the training, in a container of its own.
    """
    wait, workers = signals.waited_share, signals.within("workers_cpu_pct")
    if wait is None or not waits_for_data(signals) or never_waits_for_data(signals):
        return None
    unseen = signals.typical("main_cpu_pct") is None and signals.within("main_cpu_pct") is None
    if not unseen and not main_waits(signals):
        return None
    numbers = evidence(
        _waited(wait),
        ("CPU of all workers meanwhile", workers, "% of a core"),
    )
    stood_still = workers is not None and workers < th.LATENCY_WORKERS_LEAST_SHARE * 100 * loading_workers(signals)
    name = "input-stalled" if stood_still and not signals.is_steady else "input-latency"
    text = "the training waited for data; what its loader waited for is unknown"
    return Candidate(name, WEAK, text, numbers, (LOOK_AT_WORKERS,) if unseen else ())


def loader_asks_process(signals: IntervalSignals) -> Candidate | None:
    """Find that the workers waited for one process that answers them all, one after the other."""
    wait, loader = signals.waited_share, signals.loader
    asks = loader is not None and _asks_one(signals, loading_workers(signals))
    if loader is None or not asks or wait is None or not waits_for_data(signals):
        return None
    numbers = evidence(
        _waited(wait),
        ("of that, the workers waited for another process's answer", 100 * loader.asking, "%"),
        ("CPU of the busiest process of the loader", signals.within("busiest_worker_cpu_pct"), "% of a core"),
    )
    text = "the data-loader workers waited for one process that answers them all"
    fix = "Give each worker its own copy of what it asks another process for"
    advice = Advice(f"{fix} (a `multiprocessing` manager answers one request at a time)", short=fix)
    return Candidate("input-latency", STRONG, text, numbers, (advice,))


def _asks_one(signals: IntervalSignals, workers: float) -> bool:
    """Tell whether workers wait for one process, and are not full themselves; that process counts as one of them."""
    if signals.loader is None or not signals.loader.waits_for_process:
        return False
    total, busiest = signals.within("workers_cpu_pct") or 0.0, signals.within("busiest_worker_cpu_pct") or 0.0
    return total - busiest < th.WORKER_FULL_PCT * max(workers, 1.0)


def _why_slow(signals: IntervalSignals) -> str:
    """Return what workers waited for that used neither CPU nor disk: a lock, where their stacks show one."""
    if signals.loader is None:
        return "images were slow to arrive (remote storage, lock)"
    if signals.loader.waits_for_lock:
        return "the data-loader workers waited for a lock"
    if not _workers_idle(signals):
        return "images were slow to arrive, with CPU and disk to spare"
    return "images were slow to arrive, using neither CPU nor disk"


def _workers_idle(signals: IntervalSignals) -> bool:
    """Tell whether all workers together used next to no CPU: with spare CPU they may still fill many cores."""
    workers = signals.within("workers_cpu_pct")
    return workers is not None and workers < th.LATENCY_WORKERS_LEAST_SHARE * 100 * loading_workers(signals)


def loader_idle_at_times(signals: IntervalSignals) -> Candidate | None:
    """Find that workers stalled, too, while the trainer waited: again and again something held them up."""
    waiting, there = signals.within("workers_cpu_pct"), loading_workers(signals)
    could = 100 * min(there, signals.usable_cores or signals.cores or there)
    if not signals.waits or waiting is None or not could or waiting > th.WAITING_WORKERS_SHARE * could:
        return None
    numbers = evidence(
        (f"CPU of all {there:.0f} workers while training waited", waiting, "% of a core"),
        ("time in which a process waited for input or output", signals.within("io_pressure_pct"), "%"),
    )
    without = ", with no CPU or disk in use" if _workers_idle(signals) else ""
    text = f"data-loader workers were blocked again and again{without}"
    return Candidate("input-stalled", SUPPORTED if _stand_still(signals) else POSSIBLE, text, numbers)


def _stand_still(signals: IntervalSignals) -> bool:
    """Tell whether workers idle while the trainer waits, and work at other times: more of them would stand still, too.

    Those of images that are slow to arrive use as little CPU at all times.
    """
    waiting, working = signals.within("workers_cpu_pct"), signals.typical("workers_cpu_pct")
    return signals.waits and waiting is not None and working is not None and waiting < IDLE_SHARE * working


def _waited(share: float) -> Evidence:
    return Evidence("training waited for data", 100 * share, "% of this time", key=WAITED_KEY)


def _most(*values: float | None) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _keep_cache(event: KernelEvent) -> Advice:
    """Return what to do about who emptied the page cache: a faster disk would not help."""
    short = f"Stop {_who(event)} from emptying the page cache"
    why = "After that each image is read from the disk again, however fast the disk is"
    return Advice(f"{short} (/proc/sys/vm/drop_caches), which it did{_often(event)}. {why}", short=short)


def _who(event: KernelEvent) -> str:
    return event.who("a process").replace("`", "'")  # which would make code of it, to be copied


def _often(event: KernelEvent) -> str:
    return f" {event.count} times" if event.count > 1 else ""
